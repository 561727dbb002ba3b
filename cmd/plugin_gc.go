package cmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

func newPluginGC(a *app) *cobra.Command {
	var dry bool
	c := &cobra.Command{
		Use:   "gc",
		Short: "Remove plugins that no profile has",
		Long:  "Remove from the store what no profile has and no running process uses.",
		Args:  none,
	}
	c.Flags().BoolVar(&dry, "dry-run", false, "remove nothing")
	c.RunE = a.run(func(ctx context.Context, _ []string) error { return runPluginGC(ctx, a, dry) })
	return c
}

func runPluginGC(ctx context.Context, a *app, dry bool) error {
	p, err := a.pluginsOf()
	if err != nil {
		return err
	}
	r, err := p.host.Collect(ctx, dry)
	if err != nil {
		return err
	}
	if a.flags.json {
		return writeJSON(a.Out, r)
	}
	for _, digest := range r.Removed {
		fmt.Fprintln(a.Out, digest)
	}
	return nil
}
