package cmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/afield-dev/afield/pkg/mount"
	"github.com/afield-dev/afield/pkg/remotefs"
)

type fsWriteOptions struct {
	path       string
	content    string
	hasContent bool
	from       string
	bytes      bool
	ifAbsent   bool
	ifVersion  string
	mode       fileMode
	inPlace    bool
	basis      bool
	diff       bool
	policy     observedOptions
}

// writeResult is the JSON of fs write.
type writeResult struct {
	Target    targetResult       `json:"target"`
	Operation remotefs.Operation `json:"operation"`
	Version   string             `json:"version"`
	Bytes     int64              `json:"bytes"`
	Diff      []hunkResult       `json:"diff"`
	*basisResult
	Mount *mount.WroteAnswer `json:"mount,omitempty"` // with a session
}

// basisResult is what --basis adds. Before is null where there is no prior text
// to show.
type basisResult struct {
	Before *string `json:"before"`
	After  *string `json:"after"`
}

func newFSWrite(a *app) *cobra.Command {
	opts := fsWriteOptions{mode: fileMode{-1}}
	c := &cobra.Command{
		Use:   "write PATH",
		Short: "Store a file in one step",
		Long: "Store a file: the content is staged beside the target, flushed to disk, and published in one step, so " +
			"that a reader sees the old file or the new one. Content comes from standard input unless --content or " +
			"--from names another source. Missing parent directories are made.\n\n" +
			"With --if-absent an existing file is never replaced; with --if-version only the given version is. " +
			"Of many writers with one guard exactly one wins.",
		Example: "    generate | afield fs write --if-absent out/report.md\n" +
			"    afield fs write --if-version \"$v\" --content 'hello' greeting.txt",
		Args:              exactly(1, "one PATH"),
		ValidArgsFunction: a.completePath,
	}
	f := c.Flags()
	f.StringVar(&opts.content, "content", "", "store this `text` (default: standard input)")
	f.SetAnnotation("content", rawFlags, []string{""})
	f.StringVar(&opts.from, "from", "", "store this `file` of the host, - for standard input (default: standard input)")
	f.BoolVar(&opts.bytes, "bytes", false, "store raw bytes, which need not be text")
	f.BoolVar(&opts.ifAbsent, "if-absent", false, "fail if anything has this name")
	f.StringVar(&opts.ifVersion, "if-version", "", "fail unless the file has this `version` (default: no guard)")
	f.Var(&opts.mode, "mode", "mode of the file, `octal` digits (default: that of the replaced file; 0666 minus the umask for a new one)")
	f.BoolVar(&opts.inPlace, "in-place", false, "write through the open file instead of replacing it; not atomic")
	f.BoolVar(&opts.basis, "basis", false, "with --json: add the text before and after")
	f.BoolVar(&opts.diff, "diff", false, "show the change as a unified diff")
	addObservedFlags(f, &opts.policy)
	c.RunE = a.run(func(ctx context.Context, args []string) error {
		opts.path, opts.hasContent = args[0], f.Changed("content")
		if err := opts.check(f); err != nil {
			return err
		}
		return a.withObserved(ctx, opts.policy, func(o observed) error { return runFSWrite(ctx, a, o, opts) })
	})
	return c
}

// check refuses what can be told from the command line alone.
func (o *fsWriteOptions) check(f *pflag.FlagSet) error {
	return firstOf(
		checkBlank(o.path),
		exclusive(f, "content", "from"),
		exclusive(f, "if-absent", "if-version"),
		exclusive(f, "if-absent", "in-place"),
		checkGuard(f),
		o.policy.check(f),
	)
}

func (o *fsWriteOptions) request(basisMax int64) remotefs.WriteRequest {
	w := remotefs.WriteRequest{
		Raw: o.bytes, Mode: o.mode.bits, InPlace: o.inPlace,
	}
	if o.basis || o.diff {
		w.BasisMax = basisMax
	}
	switch {
	case o.ifAbsent:
		w.Intent = remotefs.IntentCreate
	case o.ifVersion != "":
		w.Intent, w.Version = remotefs.IntentReplace, o.ifVersion
	}
	return w
}

func runFSWrite(ctx context.Context, a *app, o observed, opts fsWriteOptions) error {
	src, err := a.openContent(opts)
	if err != nil {
		return err
	}
	defer src.close()
	hook, err := a.newMountHook()
	if err != nil {
		return err
	}
	bar := a.startProgress("write", src.size)
	defer bar.stop()
	w := opts.request(o.world.profile.FSBlock.DiffBasisMaxBytes)
	w.Content, w.Size = hook.tee(bar.reader(src.Reader)), src.size
	out, err := o.WriteText(ctx, remotefs.AtPath(opts.path, ""), w)
	bar.stop()
	if err != nil {
		return remotefs.Advise(withBytesHint(err))
	}
	return a.writeWriteResult(o.fs, out, opts, hook.wrote(ctx, o.world, o.fs, out.Target))
}

func (a *app) writeWriteResult(fs remotefs.FS, out remotefs.WriteOutcome, opts fsWriteOptions, known *mount.WroteAnswer) error {
	var hunks []hunkResult
	if opts.diff {
		hunks = newHunks(out.Target.Display, out.Before, out.After)
	}
	if a.flags.json {
		r := writeResult{newTargetResult(fs, out.Target), out.Operation, out.Version, out.Bytes, hunks, nil, known}
		if opts.basis {
			r.basisResult = &basisResult{out.Before, out.After}
		}
		return writeJSON(a.Out, r)
	}
	word := "Updated file"
	if out.Operation == remotefs.OpCreate {
		word = "Created file"
	}
	_, err := fmt.Fprintf(a.Out, "<path>%s</path>\n<type>file</type>\n<content>\n%s\n</content>\n", out.Target.Display, word)
	if err != nil || !opts.diff {
		return err
	}
	return a.writeDiff(out.Target.Display, out.Before, out.After)
}
