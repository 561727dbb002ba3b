package cmd

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/remotefs"
	"github.com/afield-dev/afield/pkg/tree"
)

type fsTouchOptions struct {
	at       string
	noCreate bool
}

func newFSTouch(a *app) *cobra.Command {
	opts := fsTouchOptions{}
	c := &cobra.Command{
		Use:   "touch PATH...",
		Short: "Set the time of modification, or make empty files",
		Long: "Set the time of modification of what each PATH leads to, by default to the world's now, and make an empty " +
			"file where nothing is.",
		Args:              atLeast(1, "one PATH or more"),
		ValidArgsFunction: a.completePaths,
	}
	f := c.Flags()
	f.StringVar(&opts.at, "at", "", "the `time`, RFC 3339 such as 2024-05-01T12:00:00Z (default: now)")
	f.BoolVar(&opts.noCreate, "no-create", false, "fail where nothing is")
	c.RunE = a.run(func(ctx context.Context, args []string) error {
		at, err := opts.time()
		if err = firstOf(err, checkPaths(args)); err != nil {
			return err
		}
		return a.withTree(ctx, func(t *tree.Tree, fs remotefs.FS) error {
			return each(a, args, func(p string) (madeResult, error) {
				m, err := t.Touch(ctx, p, at, opts.noCreate)
				return madeResult{newTargetResult(fs, m.Target), m.Made}, err
			})
		})
	})
	return c
}

func (o *fsTouchOptions) time() (time.Time, error) {
	if o.at == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339Nano, o.at)
	if err != nil || at.IsZero() {
		return time.Time{}, usage("--at must be a time such as 2024-05-01T12:00:00Z, got %q", o.at)
	}
	return at, nil
}
