package cmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

// activeResult is the JSON of plugin enable and disable.
type activeResult struct {
	ID      string `json:"id"`
	Profile string `json:"profile"`
	Active  bool   `json:"active"`
	Changed bool   `json:"changed"`
}

func newPluginEnable(a *app) *cobra.Command {
	return newPluginActive(a, "enable", true, "Let a plugin's patch apply",
		"Let the patch of an installed plugin apply to the profile, in its old place. What would not work is refused.")
}

func newPluginDisable(a *app) *cobra.Command {
	return newPluginActive(a, "disable", false, "Take a plugin's patch out",
		"Take the patch of a plugin out of the profile. The plugin stays, and rows that name its providers go on working.")
}

func newPluginActive(a *app, name string, active bool, short, long string) *cobra.Command {
	var dry bool
	c := &cobra.Command{
		Use: name + " ID", Short: short, Long: long, Args: exactly(1, "one ID"), ValidArgsFunction: a.completePlugin,
	}
	c.Flags().BoolVar(&dry, "dry-run", false, "check everything and change nothing")
	c.RunE = a.run(func(ctx context.Context, args []string) error { return runPluginActive(ctx, a, args[0], active, dry) })
	return c
}

func runPluginActive(ctx context.Context, a *app, id string, active, dry bool) error {
	p, err := a.pluginsOf()
	if err != nil {
		return err
	}
	changed, err := p.host.SetActive(ctx, p.name, id, active, dry, p.compose)
	if err != nil {
		return err
	}
	if a.flags.json {
		return writeJSON(a.Out, activeResult{id, p.name, active, changed})
	}
	word := "disabled"
	if active {
		word = "enabled"
	}
	fmt.Fprintf(a.Out, "%s is %s in %s\n", id, word, p.name)
	return nil
}
