package cmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

type pluginRemoveOptions struct{ ifPresent, purge, dryRun bool }

// removedResult is the JSON of plugin remove.
type removedResult struct {
	Removed []string `json:"removed"`
	Profile string   `json:"profile"`
}

func newPluginRemove(a *app) *cobra.Command {
	var o pluginRemoveOptions
	c := &cobra.Command{
		Use:               "remove ID...",
		Short:             "Take plugins out of the profile",
		Long:              "Take plugins out of the profile. Other profiles keep theirs; plugin gc removes what none has.",
		Args:              atLeast(1, "one ID or more"),
		ValidArgsFunction: a.completePlugin,
	}
	f := c.Flags()
	f.BoolVar(&o.ifPresent, "if-present", false, "an ID that is not installed is no error")
	f.BoolVar(&o.purge, "purge", false, "remove what the plugin's providers keep on this machine, too")
	f.BoolVar(&o.dryRun, "dry-run", false, "change nothing")
	c.RunE = a.run(func(ctx context.Context, args []string) error { return runPluginRemove(ctx, a, args, o) })
	return c
}

func runPluginRemove(ctx context.Context, a *app, ids []string, o pluginRemoveOptions) error {
	p, err := a.pluginsOf()
	if err != nil {
		return err
	}
	removed, err := p.host.Remove(ctx, p.name, ids, o.ifPresent, o.purge, o.dryRun)
	if err != nil {
		return err
	}
	if a.flags.json {
		return writeJSON(a.Out, removedResult{removed, p.name})
	}
	for _, id := range removed {
		fmt.Fprintf(a.Out, "removed %s from %s\n", id, p.name)
	}
	return nil
}
