package cmd

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

func newPluginList(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the plugins of the profile",
		Long:  "List the plugins of the profile in the order in which their patches apply. Nothing is started and no network is used.",
		Args:  none,
		RunE:  a.run(func(context.Context, []string) error { return runPluginList(a) }),
	}
}

func runPluginList(a *app) error {
	p, err := a.pluginsOf()
	if err != nil {
		return err
	}
	list, err := p.host.List(p.name)
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
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", x.ID, x.Version, strings.Join(x.Services, ","), active, visible(x.State), visible(x.Source))
	}
	return w.Flush()
}
