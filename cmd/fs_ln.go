package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/remotefs"
	"github.com/afield-dev/afield/pkg/tree"
)

// linkResult is the JSON of fs ln.
type linkResult struct {
	Target     targetResult `json:"target"`
	LinkTarget string       `json:"linkTarget"`
}

func newFSLn(a *app) *cobra.Command {
	symbolic := false
	c := &cobra.Command{
		Use:   "ln -s TEXT PATH",
		Short: "Make a symbolic link",
		Long: "Make a symbolic link at PATH that holds TEXT, which is not looked at and may lead nowhere. Nothing is " +
			"replaced: something that has the name is FS_NOT_OBSERVED.",
		Args: exactly(2, "TEXT and PATH"),
	}
	c.Flags().BoolVarP(&symbolic, "symbolic", "s", false, "make a symbolic link (required: there are no others)")
	c.RunE = a.run(func(ctx context.Context, args []string) error {
		if !symbolic {
			return usage("only symbolic links can be made: -s is required")
		}
		if args[0] == "" {
			return usage("TEXT must not be empty")
		}
		if err := checkBlank(args[1]); err != nil {
			return err
		}
		return a.withTree(ctx, func(t *tree.Tree, fs remotefs.FS) error {
			return each(a, args[1:], func(p string) (linkResult, error) {
				target, err := t.Link(ctx, args[0], p)
				return linkResult{newTargetResult(fs, target), args[0]}, err
			})
		})
	})
	return c
}
