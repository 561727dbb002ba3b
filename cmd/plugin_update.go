package cmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/plugin"
)

// updatedResult is one plugin in the JSON of plugin update.
type updatedResult struct {
	plugin.Updated
	Error *failure `json:"error"`
}

func newPluginUpdate(a *app) *cobra.Command {
	var o plugin.UpdateOptions
	var offline bool
	c := &cobra.Command{
		Use:   "update [ID...]",
		Short: "Bring plugins to their newest version",
		Long: "Bring plugins to the newest version that their sources mean, each on its own: the old version stays until the new " +
			"one is committed, and the status is that of the worst failure. Whether a plugin is active stays as it is. A version " +
			"that adds services, variables or programs needs --yes, or agreement at a terminal.",
		Args: anything, ValidArgsFunction: a.completePlugin,
	}
	f := c.Flags()
	f.StringVar(&o.To, "to", "", "the `version`, dist-tag or tag for the one ID (default: what the source means)")
	f.BoolVar(&o.NoStart, "no-start", false, "do not start the providers to check them")
	f.BoolVar(&o.AcceptChanged, "accept-changed", false, "accept other bytes than those seen before under one source and version")
	f.BoolVar(&o.Yes, "yes", false, "agree to what new versions add")
	f.BoolVar(&o.DryRun, "dry-run", false, "check everything and change nothing")
	f.BoolVar(&offline, "offline", false, "use the download cache and this machine only")
	c.RunE = a.run(func(ctx context.Context, ids []string) error {
		o.IDs = ids
		return runPluginUpdate(ctx, a, o, offline)
	})
	return c
}

func runPluginUpdate(ctx context.Context, a *app, o plugin.UpdateOptions, offline bool) error {
	p, err := a.pluginsOf()
	if err != nil {
		return err
	}
	p.host.Offline = p.host.Offline || offline
	o.Confirm = a.confirmer()
	all, err := p.host.Update(ctx, p.name, o, p.compose)
	if err != nil {
		return err
	}
	if err := writeUpdated(a, all, o.DryRun); err != nil {
		return err
	}
	return worst(all)
}

func writeUpdated(a *app, all []plugin.Updated, dry bool) error {
	if a.flags.json {
		out := []updatedResult{}
		for _, u := range all {
			r := updatedResult{Updated: u}
			if u.Err != nil {
				f := newFailure(a.masked(u.Err), exitStatus(u.Err))
				r.Error = &f
			}
			out = append(out, r)
		}
		return writeJSON(a.Out, out)
	}
	for _, u := range all {
		switch {
		case u.Err != nil:
			a.note("%s stays at %s: %s", u.ID, u.From, visible(a.masked(u.Err).Error()))
		case !u.Changed:
			fmt.Fprintf(a.Out, "%s %s is up to date\n", u.ID, u.From)
		case dry:
			fmt.Fprintf(a.Out, "would update %s from %s to %s\n", u.ID, u.From, u.To)
		default:
			fmt.Fprintf(a.Out, "updated %s from %s to %s\n", u.ID, u.From, u.To)
		}
	}
	return nil
}

// worst gives the failure with the highest status, named as one of several.
func worst(all []plugin.Updated) error {
	var found error
	count := 0
	for _, u := range all {
		if u.Err == nil {
			continue
		}
		count++
		if found == nil || exitStatus(u.Err) > exitStatus(found) {
			found = u.Err
		}
	}
	var f *fault.Error
	if count < 2 || !errors.As(found, &f) {
		return found
	}
	return fault.Wrap(found, f.Code, f.Op, f.Path, "%d plugins were not updated; the worst: %s", count, f.Message).WithHint("%s", f.Hint)
}
