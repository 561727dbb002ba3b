package cmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/remotefs"
	"github.com/afield-dev/afield/pkg/tree"
)

type fsMvOptions struct {
	noReplace bool
	dryRun    bool
	recursive bool // of fs cp
	moves     bool // fs mv
}

// movedResult is the JSON of fs mv and fs cp.
type movedResult struct {
	From     targetResult  `json:"from"`
	Target   targetResult  `json:"target"`
	Type     remotefs.Type `json:"type"`
	Replaced bool          `json:"replaced"`
	DryRun   bool          `json:"dryRun"`
}

func newFSMv(a *app) *cobra.Command {
	opts := fsMvOptions{moves: true}
	c := &cobra.Command{
		Use:   "mv FROM TO",
		Short: "Move an entry to another name",
		Long: "Move an entry in one step. TO is the new name itself: a directory there is an error. A file there is " +
			"replaced, unless --no-replace forbids it. Links are moved themselves.",
		Args:              exactly(2, "FROM and TO"),
		ValidArgsFunction: a.completePaths,
	}
	f := c.Flags()
	f.BoolVar(&opts.noReplace, "no-replace", false, "fail if anything has the new name")
	f.BoolVar(&opts.dryRun, "dry-run", false, "move nothing; say what would be done")
	c.RunE = a.run(func(ctx context.Context, args []string) error {
		return a.runMove(ctx, args, opts, func(t *tree.Tree) (tree.Moved, error) {
			return t.Move(ctx, args[0], args[1], opts.noReplace, opts.dryRun)
		})
	})
	return c
}

func newFSCp(a *app) *cobra.Command {
	opts := fsMvOptions{}
	c := &cobra.Command{
		Use:   "cp FROM TO",
		Short: "Copy an entry inside the world",
		Long: "Copy a file, or with --recursive a directory with all that is in it, inside the world: with modes and " +
			"times, links as links, staged beside TO and published in one step. TO is the new name itself; a file " +
			"there is replaced unless --no-replace forbids it, and a directory replaces nothing.",
		Args:              exactly(2, "FROM and TO"),
		ValidArgsFunction: a.completePaths,
	}
	f := c.Flags()
	f.BoolVarP(&opts.recursive, "recursive", "r", false, "copy a directory with all that is in it, and links as links")
	f.BoolVar(&opts.noReplace, "no-replace", false, "fail if anything has the new name")
	c.RunE = a.run(func(ctx context.Context, args []string) error {
		return a.runMove(ctx, args, opts, func(t *tree.Tree) (tree.Moved, error) {
			return t.Copy(ctx, args[0], args[1], opts.recursive, opts.noReplace)
		})
	})
	return c
}

// runMove does a move or copy and writes its result.
func (a *app) runMove(ctx context.Context, args []string, opts fsMvOptions, do func(*tree.Tree) (tree.Moved, error)) error {
	if err := checkPaths(args); err != nil {
		return err
	}
	return a.withTreeOf(ctx, func(w *world, t *tree.Tree, fs remotefs.FS) error {
		m, err := do(t)
		if err == nil && opts.moves && !opts.dryRun {
			w.rememberMove(ctx, m)
		}
		switch {
		case err != nil:
			return err
		case a.flags.json:
			return writeJSON(a.Out, movedResult{newTargetResult(fs, m.From), newTargetResult(fs, m.To), m.Type, m.Replaced, opts.dryRun})
		case opts.dryRun:
			_, err = fmt.Fprintf(a.Out, "%s -> %s\n", visible(m.From.Display), visible(m.To.Display))
		}
		return err
	})
}
