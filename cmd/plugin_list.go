package cmd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/plugin"
)

func newPluginList(a *app) *cobra.Command {
	var outdated bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List the plugins of the profile",
		Long: "List the plugins of the profile in the order in which their patches apply. Nothing is started, and only " +
			"--outdated uses the network.",
		Args: none,
		RunE: a.run(func(ctx context.Context, _ []string) error { return runPluginList(ctx, a, outdated) }),
	}
	c.Flags().BoolVar(&outdated, "outdated", false, "ask the sources for newer versions, and list those that have one")
	return c
}

// listed gives the plugins of the profile; outdated those with a newer version,
// and those that could not be asked for.
func (p pluginProfile) listed(ctx context.Context, outdated bool) ([]plugin.Listed, error) {
	if !outdated {
		return p.host.List(p.name)
	}
	all, err := p.host.Outdated(ctx, p.name, p.compose)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(x plugin.Listed) bool {
		return x.State == "ok" && (x.Latest == nil || *x.Latest == x.Version) || x.Linked
	}), nil
}

func runPluginList(ctx context.Context, a *app, outdated bool) error {
	p, err := a.pluginsOf()
	if err != nil {
		return err
	}
	list, err := p.listed(ctx, outdated)
	if err != nil {
		return err
	}
	if a.flags.json {
		return writeJSON(a.Out, list)
	}
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	for _, x := range list {
		active := "active"
		if !x.Active {
			active = "inactive"
		}
		version := x.Version
		if x.Latest != nil {
			version += " < " + *x.Latest
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", x.ID, version, strings.Join(x.Services, ","), active, visible(x.State), visible(x.Source))
	}
	return w.Flush()
}
