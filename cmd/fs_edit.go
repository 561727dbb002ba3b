package cmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/afield-dev/afield/pkg/mount"
	"github.com/afield-dev/afield/pkg/remotefs"
)

type fsEditOptions struct {
	path         string
	edit         remotefs.Edit
	oldFile      string
	newFile      string
	editsFile    string
	ifVersion    string
	normalizeEOL bool
	dryRun       bool
	diff         bool
	inPlace      bool
	basis        bool
	policy       observedOptions
}

// editResult is the JSON of fs edit.
type editResult struct {
	Target       targetResult       `json:"target"`
	Operation    remotefs.Operation `json:"operation"`
	Version      string             `json:"version"`
	Bytes        int64              `json:"bytes"`
	Diff         []hunkResult       `json:"diff"`
	Replacements int                `json:"replacements"`
	*basisResult
	Mount *mount.EditedAnswer `json:"mount,omitempty"` // with a session
}

func newFSEdit(a *app) *cobra.Command {
	opts := fsEditOptions{}
	c := &cobra.Command{
		Use:   "edit PATH",
		Short: "Replace literal text in a file",
		Long: "Replace literal text in a file, in one step. The old text must be there exactly once, unless --all is " +
			"given. Nothing in either text has a special meaning. A line feed in them matches and becomes the line end " +
			"of the file; every byte outside the matches stays as it is.\n\n" +
			"--edits names a JSON file with a list of edits, each applied to the result of those before it; all of " +
			"them are published together, or none is:\n\n" +
			"    [{\"old\": \"one\", \"new\": \"two\"}, {\"old\": \"x\", \"new\": \"y\", \"all\": true}]",
		Example: "    afield fs edit main.go --old 'fmt.Println(a)' --new 'log.Println(a)' --diff\n" +
			"    afield fs edit main.go --edits edits.json --if-version \"$v\"",
		Args:              exactly(1, "one PATH"),
		ValidArgsFunction: a.completePath,
	}
	f := c.Flags()
	f.StringVar(&opts.edit.Old, "old", "", "the `text` to replace (required, or --old-file or --edits)")
	f.StringVar(&opts.edit.New, "new", "", "the `text` to put there, which may be empty (required, or --new-file or --edits)")
	f.BoolVar(&opts.edit.All, "all", false, "replace every occurrence")
	f.StringVar(&opts.oldFile, "old-file", "", "take the old text from this `file` of the host, - for standard input (default: none)")
	f.StringVar(&opts.newFile, "new-file", "", "take the new text from this `file` of the host, - for standard input (default: none)")
	f.StringVar(&opts.editsFile, "edits", "", "take a list of edits from this JSON `file` of the host, - for standard input (default: none)")
	f.StringVar(&opts.ifVersion, "if-version", "", "fail unless the file has this `version` (default: no guard)")
	f.BoolVar(&opts.normalizeEOL, "normalize-eol", false, "store the whole file in its dominant line ending")
	f.BoolVar(&opts.dryRun, "dry-run", false, "change nothing; the outcome is what an edit would give")
	f.BoolVar(&opts.diff, "diff", false, "show the change as a unified diff")
	f.BoolVar(&opts.inPlace, "in-place", false, "write through the open file instead of replacing it; not atomic")
	f.BoolVar(&opts.basis, "basis", false, "with --json: add the text before and after")
	addObservedFlags(f, &opts.policy)
	c.RunE = a.run(func(ctx context.Context, args []string) error {
		opts.path = args[0]
		if err := opts.check(f); err != nil {
			return err
		}
		edits, err := a.readEdits(ctx, opts)
		if err != nil {
			return err
		}
		return a.withObserved(ctx, opts.policy, func(o observed) error { return runFSEdit(ctx, a, o, opts, edits) })
	})
	return c
}

// check refuses what can be told from the command line alone.
func (o *fsEditOptions) check(f *pflag.FlagSet) error {
	if o.oldFile == "-" && o.newFile == "-" {
		return usage("--old-file and --new-file cannot both be standard input")
	}
	return firstOf(
		checkBlank(o.path),
		oneOf(f, "old", "old-file", "edits"),
		exclusive(f, "old", "old-file", "edits"),
		exclusive(f, "new", "new-file", "edits"),
		exclusive(f, "all", "edits"),
		o.needNew(f),
		checkGuard(f),
		o.policy.check(f),
	)
}

// needNew wants the new text where there is an old one.
func (o *fsEditOptions) needNew(f *pflag.FlagSet) error {
	if o.editsFile != "" {
		return nil
	}
	return oneOf(f, "new", "new-file")
}

func runFSEdit(ctx context.Context, a *app, o observed, opts fsEditOptions, edits []remotefs.Edit) error {
	req := remotefs.EditRequest{
		Edits: edits, Version: opts.ifVersion, NormalizeEOL: opts.normalizeEOL,
		DryRun: opts.dryRun, InPlace: opts.inPlace,
	}
	if opts.basis || opts.diff {
		req.BasisMax = o.world.profile.FSBlock.DiffBasisMaxBytes
	}
	hook, err := a.newMountHook()
	if err != nil {
		return err
	}
	out, err := o.EditText(ctx, remotefs.AtPath(opts.path, ""), req)
	if err != nil {
		return remotefs.Advise(err)
	}
	var stale *mount.EditedAnswer
	if !opts.dryRun {
		stale = hook.edited(ctx, o.world, o.fs, out.Target)
	}
	if a.flags.json {
		r := newEditResult(o.fs, out, opts)
		r.Mount = stale
		return writeJSON(a.Out, r)
	}
	if _, err := fmt.Fprintln(a.Out, editSentence(out, opts)); err != nil || !opts.diff {
		return err
	}
	return a.writeDiff(out.Target.Display, out.Before, out.After)
}

func newEditResult(fs remotefs.FS, out remotefs.EditOutcome, opts fsEditOptions) editResult {
	r := editResult{Target: newTargetResult(fs, out.Target), Operation: remotefs.OpUpdate,
		Version: out.Version, Bytes: out.Bytes, Replacements: out.Replacements}
	if opts.diff {
		r.Diff = newHunks(out.Target.Display, out.Before, out.After)
	}
	if opts.basis {
		r.basisResult = &basisResult{out.Before, out.After}
	}
	return r
}

// editSentence is what remotefs.md 16 says of an edit.
func editSentence(out remotefs.EditOutcome, opts fsEditOptions) string {
	switch {
	case opts.dryRun:
		return fmt.Sprintf("The file %s would be updated: %d replacement(s). Nothing was changed.", out.Target.Display, out.Replacements)
	case opts.edit.All:
		return fmt.Sprintf("The file %s has been updated. All occurrences were successfully replaced.", out.Target.Display)
	}
	return fmt.Sprintf("The file %s has been updated successfully.", out.Target.Display)
}
