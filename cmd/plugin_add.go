package cmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/plugin"
)

func newPluginAdd(a *app) *cobra.Command {
	var o plugin.AddOptions
	var offline bool
	c := &cobra.Command{
		Use:   "add SOURCE...",
		Short: "Install plugins into the profile",
		Long: "Install plugins into the profile: all of them, or none. A source is [npm:]NAME[@SPEC], github:OWNER/REPO[@TAG][#ASSET], " +
			"https://HOST/x.tgz, file:PATH, a path that ends in .tgz or .tar.gz, or a directory such as ./x. Packages come from the " +
			"registry that npm is configured with; releases from GITHUB_API_URL (default: https://api.github.com) with GH_TOKEN or " +
			"GITHUB_TOKEN. Everything is checked before anything changes, and nothing of a plugin is run but its " +
			"provider, once, to hear that it is what the manifest says.",
		Args: atLeast(1, "one SOURCE or more"),
	}
	f := c.Flags()
	f.BoolVar(&o.Inactive, "no-activate", false, "leave the profile's rows as they are")
	f.BoolVar(&o.Replace, "replace", false, "take the place of a plugin with this id from another source")
	f.BoolVar(&o.NoStart, "no-start", false, "do not start the provider to check it")
	f.BoolVar(&o.Link, "link", false, "use a directory in place, unverified")
	f.StringVar(&o.Integrity, "integrity", "", "the `digest` that the archive must have, sha512-… (default: none is required)")
	f.BoolVar(&o.AcceptChanged, "accept-changed", false, "accept other bytes than those seen before under this source and version")
	f.Int64Var(&o.MaxUnpacked, "max-unpacked", plugin.StandardLimits().Total, "`bytes` that the files of one plugin may have")
	f.StringVar(&o.As, "as", "", "install under this `id` (default: that of the manifest)")
	f.BoolVar(&o.Yes, "yes", false, "agree to services, variables and programs that a new version adds")
	f.BoolVar(&o.DryRun, "dry-run", false, "check everything and change nothing")
	f.BoolVar(&offline, "offline", false, "use the download cache and this machine only")
	c.RunE = a.run(func(ctx context.Context, args []string) error {
		o.Sources = args
		if o.MaxUnpacked < 1 {
			return usage("--max-unpacked must be at least 1")
		}
		return runPluginAdd(ctx, a, o, offline)
	})
	return c
}

func runPluginAdd(ctx context.Context, a *app, o plugin.AddOptions, offline bool) error {
	p, err := a.pluginsOf()
	if err != nil {
		return err
	}
	p.host.Offline = p.host.Offline || offline
	o.Confirm = a.confirmer()
	r, err := p.host.Add(ctx, p.name, o, p.compose)
	if err != nil {
		return err
	}
	if a.flags.json {
		return writeJSON(a.Out, r)
	}
	for _, w := range r.Warnings {
		a.note("warning: %s", w)
	}
	verb := "added"
	if o.DryRun {
		verb = "would add"
	}
	for _, x := range r.Added {
		fmt.Fprintf(a.Out, "%s %s %s (%s) to %s\n", verb, x.ID, x.Version, strings.Join(x.Services, ", "), r.Profile)
	}
	return nil
}
