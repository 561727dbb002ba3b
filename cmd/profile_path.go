package cmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/profile"
)

// sourceResult is a file that takes part in a profile, or would if it were
// there.
type sourceResult struct {
	Layer   string  `json:"layer"`
	Path    string  `json:"path"`
	Exists  bool    `json:"exists"`
	Trusted *bool   `json:"trusted"`
	Mode    *string `json:"mode"`
}

func newProfilePath(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "path [NAME]",
		Short: "List the files of a profile",
		Long: "List every file that is read for the profile, lowest layer first: layer, path, whether it is there, its mode, and " +
			"for a project's file whether it is trusted.",
		Args:              atMost(1, "at most one NAME"),
		ValidArgsFunction: a.completeProfile,
		RunE: a.run(func(_ context.Context, args []string) error {
			c, err := a.composeNamed(first(args))
			if err != nil {
				return err
			}
			return runProfilePath(a, c.Sources)
		}),
	}
}

func runProfilePath(a *app, sources []profile.Source) error {
	list := make([]sourceResult, len(sources))
	for i, s := range sources {
		list[i] = sourceResult{s.Layer.String(), s.Path, s.Exists, s.Trusted, modeOrNull(s.Mode)}
	}
	if a.flags.json {
		return writeJSON(a.Out, list)
	}
	var b strings.Builder
	for _, s := range list {
		state := "missing"
		switch {
		case s.Trusted != nil && *s.Trusted:
			state = "trusted"
		case s.Trusted != nil:
			state = "untrusted"
		case s.Exists:
			state = "exists"
		}
		mode := "-"
		if s.Mode != nil {
			mode = *s.Mode
		}
		fmt.Fprintf(&b, "%-8s  %-9s  %-4s  %s\n", s.Layer, state, mode, visible(s.Path))
	}
	_, err := a.Out.Write([]byte(b.String()))
	return err
}
