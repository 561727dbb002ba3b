package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/remotefs"
	"github.com/afield-dev/afield/pkg/tree"
)

type fsMkdirOptions struct {
	parents bool
	mode    fileMode
}

func newFSMkdir(a *app) *cobra.Command {
	opts := fsMkdirOptions{mode: fileMode{-1}}
	c := &cobra.Command{
		Use:   "mkdir PATH...",
		Short: "Make directories",
		Long: "Make directories. Something that has the name already is an error, FS_NOT_OBSERVED; with --parents a " +
			"directory that is there is none, and what is missing above it is made, too.",
		Args:              atLeast(1, "one PATH or more"),
		ValidArgsFunction: a.completePaths,
	}
	f := c.Flags()
	f.BoolVarP(&opts.parents, "parents", "p", false, "make what is missing above, and accept a directory that is there")
	f.Var(&opts.mode, "mode", "mode of the directory, `octal` digits (default: 0777 minus the umask)")
	c.RunE = a.run(func(ctx context.Context, args []string) error {
		if err := checkPaths(args); err != nil {
			return err
		}
		return a.withTree(ctx, func(t *tree.Tree, fs remotefs.FS) error {
			return each(a, args, func(p string) (madeResult, error) {
				m, err := t.Mkdir(ctx, p, opts.mode.bits, opts.parents)
				return madeResult{newTargetResult(fs, m.Target), m.Made}, err
			})
		})
	})
	return c
}
