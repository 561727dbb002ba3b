package cmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/plugin"
)

func newPluginVerify(a *app) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:               "verify [ID...]",
		Short:             "Hash installed plugins against the lock",
		Long:              "Hash every file of the profile's plugins, or of those named, and list each that deviates from what was installed.",
		Args:              anything,
		ValidArgsFunction: a.completePlugin,
	}
	c.Flags().BoolVar(&all, "all", false, "the plugins of all profiles")
	c.RunE = a.run(func(_ context.Context, args []string) error {
		if all && len(args) > 0 {
			return usage("--all and an ID cannot be used together")
		}
		return runPluginVerify(a, args, all)
	})
	return c
}

// anything takes any number of arguments.
func anything(*cobra.Command, []string) error { return nil }

func runPluginVerify(a *app, ids []string, all bool) error {
	p, err := a.pluginsOf()
	if err != nil {
		return err
	}
	names := []string{p.name}
	if all {
		names = p.host.Profiles()
	}
	found := []plugin.Verified{}
	for _, name := range names {
		list, err := p.host.Verify(name, ids)
		if err != nil {
			return err
		}
		found = append(found, list...)
	}
	bad, err := writeVerified(a, found)
	if err != nil || bad == 0 {
		return err
	}
	return fault.New(fault.PluginTampered, "verify", "", "%d of %d plugins are not as they were installed", bad, len(found)).
		WithHint("add them again")
}

// writeVerified prints what was found and counts what is bad.
func writeVerified(a *app, found []plugin.Verified) (bad int, err error) {
	for _, v := range found {
		if !v.OK {
			bad++
		}
	}
	if a.flags.json {
		return bad, writeJSON(a.Out, found)
	}
	for _, v := range found {
		state := "ok"
		switch {
		case v.Linked:
			state = "linked, unverified"
		case !v.OK:
			state = "changed"
		}
		fmt.Fprintf(a.Out, "%s %s: %s\n", v.ID, v.Version, state)
		for _, d := range v.Deviations {
			fmt.Fprintf(a.Out, "  %s\n", visible(d))
		}
	}
	return bad, nil
}
