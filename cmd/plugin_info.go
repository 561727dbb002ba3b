package cmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/plugin"
)

func newPluginInfo(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "info ID|SOURCE",
		Short: "Describe a plugin",
		Long: "Describe an installed plugin, or what a source would install: its manifest, its platforms, the config of its " +
			"providers, its rows and what they replace, its digests and its place. Nothing is installed and nothing is run.",
		Args:              exactly(1, "one ID or SOURCE"),
		ValidArgsFunction: a.completePlugin,
		RunE:              a.run(func(ctx context.Context, args []string) error { return runPluginInfo(ctx, a, args[0]) }),
	}
}

func runPluginInfo(ctx context.Context, a *app, what string) error {
	p, err := a.pluginsOf()
	if err != nil {
		return err
	}
	i, err := p.host.Info(ctx, p.name, what)
	if err != nil {
		return err
	}
	if a.flags.json {
		return writeJSON(a.Out, i)
	}
	writePluginInfo(a.Out, i)
	return nil
}

// writePluginInfo writes what a person wants to know. Texts of the plugin cannot
// drive the terminal (case 87).
func writePluginInfo(w io.Writer, i plugin.Info) {
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(w, "%-10s %s\n", name, visible(text))
		}
	}
	line("id", i.ID)
	line("version", i.Version)
	line("title", i.Title)
	line("homepage", i.Homepage)
	line("source", i.Source)
	line("platforms", strings.Join(i.Platforms, " "))
	for _, digest := range []*string{i.Integrity, i.Tree} {
		if digest != nil {
			line("digest", *digest)
		}
	}
	if i.Dir != nil {
		line("directory", *i.Dir)
	}
	if i.Linked {
		line("linked", "used in place, unverified")
	}
	for _, p := range i.Providers {
		line("provider", fmt.Sprintf("%s: %s, level %s", p.Name, strings.Join(p.Services, " and "), p.Level))
		line("gets", strings.Join(p.Env, " "))
		for _, f := range p.Config {
			line("config", configWords(f))
		}
	}
	for _, row := range i.Rows {
		text, _ := json.Marshal(row)
		line("row", string(text))
	}
	line("replaces", strings.Join(i.Replaces, " "))
	for _, key := range sortedNotes(i.Notes) {
		line("note", key+": "+i.Notes[key])
	}
}

func configWords(f plugin.InfoField) string {
	text := f.Key
	if f.Doc != "" {
		text += ": " + f.Doc
	}
	switch {
	case f.Required:
		text += " (required)"
	case f.Default != nil:
		text += fmt.Sprintf(" (default: %v)", f.Default)
	}
	if f.Secret {
		text += " (secret)"
	}
	return text
}

func sortedNotes(notes map[string]string) []string {
	var keys []string
	for key := range notes {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
