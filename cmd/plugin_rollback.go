package cmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

func newPluginRollback(a *app) *cobra.Command {
	var dry bool
	c := &cobra.Command{
		Use:   "rollback ID",
		Short: "Bring the version before back",
		Long: "Bring the version of a plugin that was installed before the present one back. It is kept in the store, so no " +
			"network is needed; a second rollback returns.",
		Args:              exactly(1, "one ID"),
		ValidArgsFunction: a.completePlugin,
	}
	c.Flags().BoolVar(&dry, "dry-run", false, "check everything and change nothing")
	c.RunE = a.run(func(ctx context.Context, args []string) error { return runPluginRollback(ctx, a, args[0], dry) })
	return c
}

func runPluginRollback(ctx context.Context, a *app, id string, dry bool) error {
	p, err := a.pluginsOf()
	if err != nil {
		return err
	}
	r, err := p.host.Rollback(ctx, p.name, id, dry, p.compose)
	if err != nil {
		return err
	}
	if a.flags.json {
		return writeJSON(a.Out, r)
	}
	fmt.Fprintf(a.Out, "%s is %s again, after %s\n", r.ID, r.To, r.From)
	return nil
}
