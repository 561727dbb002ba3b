package cmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/remotefs"
	"github.com/afield-dev/afield/pkg/tree"
)

// rmResult is the JSON of fs rm.
type rmResult struct {
	Target  targetResult  `json:"target"`
	Type    remotefs.Type `json:"type"`
	Entries *int          `json:"entries"` // of a directory: only with --dry-run
	Bytes   *int64        `json:"bytes"`
	DryRun  bool          `json:"dryRun"`
}

func newFSRm(a *app) *cobra.Command {
	opts := tree.RemoveOptions{}
	c := &cobra.Command{
		Use:   "rm PATH...",
		Short: "Remove files, links and directories",
		Long: "Remove files and links, with --recursive directories with all that is in them. A link is removed itself. " +
			"The root, the home and the working directory and what holds them are refused. With several paths the first failure ends it.",
		Example:           "    afield fs rm -r --dry-run build\n    afield fs rm old.txt --if-version \"$v\"",
		Args:              atLeast(1, "one PATH or more"),
		ValidArgsFunction: a.completePaths,
	}
	f := c.Flags()
	f.BoolVarP(&opts.Recursive, "recursive", "r", false, "remove directories with all that is in them")
	f.StringVar(&opts.Version, "if-version", "", "fail unless the entry has this `version` (default: no guard)")
	f.BoolVar(&opts.DryRun, "dry-run", false, "remove nothing; say what would be removed")
	c.RunE = a.run(func(ctx context.Context, args []string) error {
		if opts.Version != "" && len(args) > 1 {
			return usage("--if-version takes one PATH")
		}
		if err := firstOf(checkGuard(f), checkPaths(args)); err != nil {
			return err
		}
		return a.withTreeOf(ctx, func(w *world, t *tree.Tree, fs remotefs.FS) error {
			return each(a, args, func(p string) (rmResult, error) { return runFSRm(ctx, a, w, t, p, opts) })
		})
	})
	return c
}

func runFSRm(ctx context.Context, a *app, w *world, t *tree.Tree, p string, opts tree.RemoveOptions) (rmResult, error) {
	removed := func(tree.Removed) {}
	if !opts.DryRun {
		removed = w.rememberRemoval(ctx, p)
	}
	r, err := t.Remove(ctx, p, opts)
	if err != nil {
		return rmResult{}, remotefs.Advise(err)
	}
	removed(r)
	out := rmResult{Target: newTargetResult(w.Files(), r.Target), Type: r.Type, DryRun: opts.DryRun}
	if opts.DryRun || r.Type != remotefs.TypeDirectory {
		out.Entries, out.Bytes = &r.Entries, &r.Bytes
	}
	if opts.DryRun && !a.flags.json {
		_, err = fmt.Fprintf(a.Out, "%s\t%d entries, %d bytes\n", visible(r.Target.Display), r.Entries, r.Bytes)
	}
	return out, err
}
