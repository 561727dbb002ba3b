package cmd

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
	"github.com/afield-dev/afield/pkg/search"
	"github.com/afield-dev/afield/pkg/transfer"
)

type transferOptions struct {
	checksum, delete, dryRun, gitIgnore bool
	include, exclude                    []string
	sources                             []string
	target                              string
	into                                bool // the target is a directory that the sources go into
}

// transferEvent is a line of the JSON of fs push and fs pull.
type transferEvent struct {
	Type       string        `json:"type"` // sent, deleted, skipped or retried
	Path       string        `json:"path"`
	PathBase64 *string       `json:"pathBase64"`
	Kind       remotefs.Type `json:"kind"`
	Bytes      int64         `json:"bytes"`
	Reason     *string       `json:"reason"`
}

// transferSummary is the last line.
type transferSummary struct {
	Type      string `json:"type"` // "summary"
	Sent      int    `json:"sent"`
	Bytes     int64  `json:"bytes"`
	Unchanged int    `json:"unchanged"`
	Deleted   int    `json:"deleted"`
	Skipped   int    `json:"skipped"`
	Retried   int    `json:"retried"`
	DryRun    bool   `json:"dryRun"`
}

const transferLong = "Links are carried over as links; modes and times, too. Files whose size, time and mode are equal are passed " +
	"over, with --checksum those whose content is equal. Every file is compared by SHA-256 and published in one step, so " +
	"an interrupted transfer leaves old or new files, and another run goes on from there. What is left out, such as " +
	"devices, is said. Owners and hard links are not carried over.\n\nOne source gets exactly the name of the target; with several, " +
	"or a slash at the end of the target, they go into it under their own names. With --json a line for each entry " +
	"and a summary at the end."

func newFSPush(a *app) *cobra.Command {
	opts := transferOptions{}
	c := &cobra.Command{
		Use:               "push LOCAL... REMOTE",
		Short:             "Copy files and trees of the host into the world",
		Long:              "Copy files and trees of this host into the world; - is standard input, for a file. " + transferLong,
		Example:           "    afield fs push src /srv/app --delete --dry-run\n    tar c . | afield fs push - backup.tar",
		Args:              atLeast(2, "LOCAL... and REMOTE"),
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
	}
	addTransferFlags(c.Flags(), &opts)
	c.RunE = a.run(func(ctx context.Context, args []string) error {
		if err := opts.check(args); err != nil {
			return err
		}
		return a.withWorld(ctx, func(w *world) error { return runFSPush(ctx, a, w, opts) })
	})
	return c
}

func newFSPull(a *app) *cobra.Command {
	opts := transferOptions{}
	c := &cobra.Command{
		Use:   "pull REMOTE... LOCAL",
		Short: "Copy files and trees of the world to the host",
		Long: "Copy files and trees of the world to this host; - is standard output, for a file. Nothing is written outside " +
			"of LOCAL, whatever the world sends. " + transferLong,
		Example:           "    afield fs pull /var/log/app logs --include '*.log'\n    afield fs pull backup.tar - | tar t",
		Args:              atLeast(2, "REMOTE... and LOCAL"),
		ValidArgsFunction: a.completePaths,
	}
	addTransferFlags(c.Flags(), &opts)
	c.RunE = a.run(func(ctx context.Context, args []string) error {
		if err := opts.check(args); err != nil {
			return err
		}
		return a.withWorld(ctx, func(w *world) error { return runFSPull(ctx, a, w, opts) })
	})
	return c
}

func addTransferFlags(f *pflag.FlagSet, o *transferOptions) {
	f.BoolVar(&o.checksum, "checksum", false, "compare files of one size by content instead of time")
	f.BoolVar(&o.delete, "delete", false, "remove from the target what the source lacks")
	f.BoolVar(&o.dryRun, "dry-run", false, "change nothing; say what would be done")
	f.StringArrayVar(&o.include, "include", nil, "take only files of this `glob`, may be repeated (default: all)")
	f.StringArrayVar(&o.exclude, "exclude", nil, "leave out what matches this `glob`, may be repeated (default: nothing)")
	f.BoolVar(&o.gitIgnore, "gitignore", false, "leave out what the .gitignore files of the source leave out, and .git (push)")
}

func (o *transferOptions) check(args []string) error {
	if err := checkPaths(args); err != nil {
		return err
	}
	o.sources, o.target = args[:len(args)-1], args[len(args)-1]
	o.into = len(o.sources) > 1 || strings.HasSuffix(o.target, "/")
	for _, g := range append(o.include[:len(o.include):len(o.include)], o.exclude...) {
		if !doublestar.ValidatePattern(g) {
			return usage("%q is no glob", g)
		}
	}
	for _, s := range o.sources {
		if s == "-" && (len(o.sources) > 1 || o.into) {
			return usage("- goes to the name of one file")
		}
	}
	if o.target == "-" && len(o.sources) > 1 {
		return usage("- takes one file")
	}
	return nil
}

// keep says which paths take part; nil = all.
func (o *transferOptions) keep(ignore *search.Ignore) func(p string, dir bool) bool {
	if len(o.include)+len(o.exclude) == 0 && ignore == nil {
		return nil
	}
	matches := func(globs []string, p string) bool {
		for _, g := range globs {
			if !strings.Contains(g, "/") {
				g = "**/" + g
			}
			if doublestar.MatchUnvalidated(strings.TrimPrefix(g, "/"), p) {
				return true
			}
		}
		return false
	}
	return func(p string, dir bool) bool {
		switch {
		case matches(o.exclude, p):
			return false
		case ignore != nil && (path.Base(p) == ".git" || ignore.Ignored(p, dir)):
			return false
		}
		return dir || len(o.include) == 0 || matches(o.include, p)
	}
}

// hostIgnore reads the .gitignore files of a directory of the host.
func hostIgnore(dir string) *search.Ignore {
	texts := map[string][]string{}
	_ = filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err == nil && d.Name() == ".git" && d.IsDir() {
			return filepath.SkipDir
		}
		if err == nil && d.Name() == ".gitignore" && d.Type().IsRegular() {
			if b, err := os.ReadFile(p); err == nil {
				rel, _ := filepath.Rel(dir, p)
				texts[strings.TrimSuffix(strings.TrimSuffix(rel, ".gitignore"), "/")] = []string{string(b)}
			}
		}
		return nil
	})
	return search.NewIgnore(texts)
}

// runFSPush copies each source.
func runFSPush(ctx context.Context, a *app, w *world, opts transferOptions) error {
	if opts.sources[0] == "-" {
		return a.pushStream(ctx, w, opts.target)
	}
	return a.transfer(opts, func(t transfer.Options, source string) (transfer.Summary, error) {
		abs, err := a.hostPath(source)
		if err != nil {
			return transfer.Summary{}, err
		}
		st, err := os.Stat(abs)
		if err != nil {
			return transfer.Summary{}, hostError(err, "read", source)
		}
		target := opts.target
		if opts.into {
			target = path.Join(target, filepath.Base(abs))
		}
		if opts.gitIgnore && st.IsDir() {
			t.Keep = opts.keep(hostIgnore(abs))
		}
		return a.pushOne(ctx, w, abs, st.IsDir(), target, t)
	})
}

func (a *app) pushOne(ctx context.Context, w *world, abs string, dir bool, target string, t transfer.Options) (transfer.Summary, error) {
	dst, done, err := a.worldPlace(ctx, w, target, dir, true, t.DryRun)
	if err != nil {
		return transfer.Summary{}, err
	}
	defer done()
	if dir {
		src, err := transfer.NewHost(abs, false, hostWalker())
		if err != nil {
			return transfer.Summary{}, hostError(err, "read", abs)
		}
		defer src.Close()
		return transfer.Run(ctx, src, dst, t)
	}
	src, err := transfer.NewHost(filepath.Dir(abs), false, hostWalker(), filepath.Base(abs))
	if err != nil {
		return transfer.Summary{}, hostError(err, "read", abs)
	}
	defer src.Close()
	src.Rename(path.Base(target))
	return transfer.Run(ctx, src, dst, t)
}

// pushStream stores standard input as a file.
func (a *app) pushStream(ctx context.Context, w *world, target string) error {
	fs, err := w.files()
	if err != nil {
		return err
	}
	bar := a.startProgress("push", -1)
	defer bar.stop()
	out, err := fs.WriteText(ctx, remotefs.AtPath(target, ""), remotefs.WriteRequest{Content: bar.reader(a.In), Size: -1, Raw: true, Mode: -1})
	bar.stop()
	if err != nil || !a.flags.json {
		return err
	}
	return writeJSON(a.Out, transferSummary{Type: "summary", Sent: 1, Bytes: out.Bytes})
}

// runFSPull copies each source.
func runFSPull(ctx context.Context, a *app, w *world, opts transferOptions) error {
	if opts.target == "-" {
		return a.pullStream(ctx, w, opts.sources[0])
	}
	return a.transfer(opts, func(t transfer.Options, source string) (transfer.Summary, error) {
		target := opts.target
		if opts.into {
			target = filepath.Join(target, path.Base(path.Clean(source)))
		}
		abs, err := a.hostPath(target)
		if err != nil {
			return transfer.Summary{}, err
		}
		_, info, err := w.Files().Stat(ctx, remotefs.AtPath(source, ""))
		switch {
		case err != nil:
			return transfer.Summary{}, err
		case info == nil:
			return transfer.Summary{}, fault.New(fault.FSNotFound, "pull", source, "cannot pull %q: not found", source)
		}
		return a.pullOne(ctx, w, source, info.Type == remotefs.TypeDirectory, abs, t)
	})
}

func (a *app) pullOne(ctx context.Context, w *world, source string, dir bool, abs string, t transfer.Options) (transfer.Summary, error) {
	src, done, err := a.worldPlace(ctx, w, source, dir, false, t.DryRun)
	if err != nil {
		return transfer.Summary{}, err
	}
	defer done()
	var only []string
	if !dir {
		only = []string{filepath.Base(abs)}
		abs = filepath.Dir(abs)
		src.Rename(only[0])
	}
	if _, err := os.Stat(abs); t.DryRun && os.IsNotExist(err) {
		return transfer.Run(ctx, src, transfer.Absent(abs), t)
	}
	dst, err := transfer.NewHost(abs, !t.DryRun, hostWalker(), only...)
	if err != nil {
		return transfer.Summary{}, hostError(err, "write", abs)
	}
	defer dst.Close()
	return transfer.Run(ctx, src, dst, t)
}

// pullStream writes a file of the world to standard output.
func (a *app) pullStream(ctx context.Context, w *world, source string) error {
	src, done, err := a.worldPlace(ctx, w, source, false, false, false)
	if err != nil {
		return err
	}
	defer done()
	bar := a.startProgress("pull", -1)
	defer bar.stop()
	return transfer.Stream(ctx, src, path.Base(source), bar.writer(a.Out))
}

// transfer does f for every source and reports.
func (a *app) transfer(opts transferOptions, f func(transfer.Options, string) (transfer.Summary, error)) error {
	bar := a.startProgress("transfer", -1)
	defer bar.stop()
	var failed error
	t := transfer.Options{Checksum: opts.checksum, Delete: opts.delete, DryRun: opts.dryRun, Keep: opts.keep(nil),
		Progress: func(n int64) {
			if bar != nil {
				bar.add(int(n))
			}
		},
		Event: func(e transfer.Event) { failed = firstOf(failed, a.transferEvent(e, opts.dryRun)) },
	}
	total := transferSummary{Type: "summary", DryRun: opts.dryRun}
	for _, source := range opts.sources {
		s, err := f(t, source)
		total.add(s)
		if err = firstOf(failed, err); err != nil {
			return err
		}
	}
	bar.stop()
	if a.flags.json {
		return writeJSON(a.Out, total)
	}
	a.note("%d sent (%d bytes), %d unchanged, %d deleted, %d skipped", total.Sent, total.Bytes, total.Unchanged, total.Deleted, total.Skipped)
	return nil
}

func (s *transferSummary) add(t transfer.Summary) {
	s.Sent += t.Sent
	s.Bytes += t.Bytes
	s.Unchanged += t.Unchanged
	s.Deleted += t.Deleted
	s.Skipped += t.Skipped
	s.Retried += t.Retried
}

// transferEvent reports one entry: a line of JSON, a word about what is left out
// or tried again, and with --dry-run each entry.
func (a *app) transferEvent(e transfer.Event, dryRun bool) error {
	if a.flags.json {
		return writeJSON(a.Out, transferEvent{string(e.Kind), lossy(e.Path), base64OrNull([]byte(e.Path)), e.Type, e.Bytes, orNull(e.Reason)})
	}
	name := visible(lossy(e.Path))
	switch {
	case e.Kind == transfer.Skipped || e.Kind == transfer.Retried:
		a.note("%s: %s: %s", e.Kind, name, e.Reason)
	case dryRun && e.Kind == transfer.Deleted:
		_, err := fmt.Fprintf(a.Out, "delete %s\n", name)
		return err
	case dryRun:
		_, err := fmt.Fprintf(a.Out, "send %s\n", name)
		return err
	}
	return nil
}
