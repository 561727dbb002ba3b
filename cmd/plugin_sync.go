package cmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/plugin"
)

// syncedResult is the JSON of plugin sync.
type syncedResult struct {
	Synced  []plugin.Synced `json:"synced"`
	Profile string          `json:"profile"`
}

func newPluginSync(a *app) *cobra.Command {
	var frozen, dry, offline bool
	c := &cobra.Command{
		Use:   "sync",
		Short: "Make the store match the profile's lock",
		Long: "Fetch what the profile's lock names and the store does not have: exactly those versions and bytes. With --frozen " +
			"the lock is never changed, and what it cannot prove is refused: a linked plugin, a platform without a digest.",
		Args: none,
	}
	f := c.Flags()
	f.BoolVar(&frozen, "frozen", false, "never change the lock, and refuse what it cannot prove")
	f.BoolVar(&dry, "dry-run", false, "say what would be fetched, and fetch nothing")
	f.BoolVar(&offline, "offline", false, "use the download cache and this machine only")
	c.RunE = a.run(func(ctx context.Context, _ []string) error { return runPluginSync(ctx, a, frozen, dry, offline) })
	return c
}

func runPluginSync(ctx context.Context, a *app, frozen, dry, offline bool) error {
	p, err := a.pluginsOf()
	if err != nil {
		return err
	}
	p.host.Offline = p.host.Offline || offline
	list, err := p.host.Sync(ctx, p.name, frozen, dry, p.compose)
	if err != nil {
		return err
	}
	if a.flags.json {
		return writeJSON(a.Out, syncedResult{list, p.name})
	}
	for _, s := range list {
		state := "there"
		switch {
		case s.Linked:
			state = "linked, unverified"
		case s.Fetched && dry:
			state = "would be fetched"
		case s.Fetched:
			state = "fetched"
		}
		fmt.Fprintf(a.Out, "%s %s: %s\n", s.ID, s.Version, state)
	}
	return nil
}
