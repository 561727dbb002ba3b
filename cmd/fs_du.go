package cmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/remotefs"
	"github.com/afield-dev/afield/pkg/tree"
)

// duResult is the JSON of fs du.
type duResult struct {
	Target      targetResult `json:"target"`
	Bytes       int64        `json:"bytes"`
	Files       int          `json:"files"`
	Directories int          `json:"directories"`
	Links       int          `json:"links"`
	Others      int          `json:"others"`
	Unreadable  int          `json:"unreadable"`
}

func newFSDu(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "du [PATH...]",
		Short: "Sum up what is below directories",
		Long: "Sum up what is below each directory: the bytes of the content of regular files, not the blocks of the disk, " +
			"and how many entries of each kind there are. Links are not followed. What could not be read is counted " +
			"and said. PATH defaults to the working directory.",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completePaths,
	}
	c.RunE = a.run(func(ctx context.Context, args []string) error {
		if len(args) == 0 {
			args = []string{"."}
		}
		if err := checkPaths(args); err != nil {
			return err
		}
		return a.withTree(ctx, func(t *tree.Tree, fs remotefs.FS) error {
			return each(a, args, func(p string) (duResult, error) { return runFSDu(ctx, a, t, fs, p) })
		})
	})
	return c
}

func runFSDu(ctx context.Context, a *app, t *tree.Tree, fs remotefs.FS, p string) (duResult, error) {
	r := duResult{}
	target, err := t.Walk(ctx, p, remotefs.WalkOptions{}, func(n remotefs.Node) error {
		r.add(n)
		if n.Err != nil {
			a.note("warning: %s: %s", n.Path, reasonOf(n.Err))
		}
		return nil
	})
	if err != nil {
		return r, err
	}
	r.Target = newTargetResult(fs, target)
	if !a.flags.json {
		_, err = fmt.Fprintf(a.Out, "%d\t%s\n", r.Bytes, visible(target.Display))
	}
	return r, err
}

func (r *duResult) add(n remotefs.Node) {
	switch {
	case n.Err != nil:
		r.Unreadable++
	case n.Type == remotefs.TypeFile:
		r.Files++
		r.Bytes += n.Size
	case n.Type == remotefs.TypeDirectory:
		r.Directories++
	case n.Type == remotefs.TypeSymlink:
		r.Links++
	default:
		r.Others++
	}
}
