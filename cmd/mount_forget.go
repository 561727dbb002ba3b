package cmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/mount"
)

type mountForgetOptions struct {
	callFlags
	paths []string
	all   bool
}

func newMountForget(a *app) *cobra.Command {
	opts := mountForgetOptions{}
	c := &cobra.Command{
		Use:   "forget PATH...",
		Short: "Drop what the session knows of files",
		Long: "Drop what the session knows of files, so that the next read of each prints its whole window. " +
			"A file that the session does not know is no error.",
		Example:           "    afield mount forget main.go\n    afield mount forget --all",
		Args:              atLeast(0, "PATH..."),
		ValidArgsFunction: a.completePath,
	}
	c.Flags().BoolVar(&opts.all, "all", false, "forget every file of the session")
	opts.addCall(c.Flags())
	c.RunE = a.run(func(ctx context.Context, args []string) error {
		opts.paths = args
		if err := opts.check(); err != nil {
			return err
		}
		with := func(m *mount.Mount, call mount.Call) error { return runMountForget(ctx, a, m, call, opts) }
		if opts.all {
			return a.withLedger(opts.callFlags, with)
		}
		return a.withMount(ctx, opts.callFlags, with)
	})
	return c
}

func (o *mountForgetOptions) check() error {
	if o.all == (len(o.paths) > 0) {
		return usage("mount forget takes PATH... or --all")
	}
	for _, p := range o.paths {
		if err := checkBlank(p); err != nil {
			return err
		}
	}
	return nil
}

func runMountForget(ctx context.Context, a *app, m *mount.Mount, call mount.Call, opts mountForgetOptions) error {
	answer, err := m.Forget(ctx, opts.paths, call)
	if err != nil {
		return err
	}
	return a.answer(answer, fmt.Sprintf("forgot %d file(s)", answer.Count))
}
