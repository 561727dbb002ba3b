package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/remotefs"
	"github.com/afield-dev/afield/pkg/tree"
)

// chmodResult is the JSON of fs chmod.
type chmodResult struct {
	Target targetResult `json:"target"`
	Mode   string       `json:"mode"`
}

func newFSChmod(a *app) *cobra.Command {
	recursive := false
	c := &cobra.Command{
		Use:   "chmod MODE PATH...",
		Short: "Set permission bits",
		Long:  "Set the permission bits of what each PATH leads to. MODE is octal digits, up to 7777.",
		Args:  atLeast(2, "MODE and one PATH or more"),
	}
	c.Flags().BoolVarP(&recursive, "recursive", "r", false, "those of everything below, too; links are left alone")
	c.RunE = a.run(func(ctx context.Context, args []string) error {
		mode, err := parseMode(args[0])
		if err = firstOf(err, checkPaths(args[1:])); err != nil {
			return err
		}
		return a.withTree(ctx, func(t *tree.Tree, fs remotefs.FS) error {
			return each(a, args[1:], func(p string) (chmodResult, error) {
				target, err := t.Chmod(ctx, p, mode, recursive)
				return chmodResult{newTargetResult(fs, target), octal(mode)}, err
			})
		})
	})
	return c
}
