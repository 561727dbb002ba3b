package cmd

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/profile"
)

// fileResult names a profile and the file that was written for it.
type fileResult struct {
	Name string `json:"name"`
	File string `json:"file"`
}

func newProfileUse(a *app) *cobra.Command {
	return &cobra.Command{
		Use:               "use NAME",
		Short:             "Make a profile the default",
		Long:              "Make NAME the profile that is used when nothing else names one. In config.yaml only that line changes.",
		Args:              exactly(1, "one NAME"),
		ValidArgsFunction: a.completeProfile,
		RunE:              a.run(func(_ context.Context, args []string) error { return runProfileUse(a, args[0]) }),
	}
}

func runProfileUse(a *app, name string) error {
	places := profile.NewPlaces(a.Environ)
	names := places.Names()
	if !slices.Contains(names, name) {
		return fault.New(fault.ProfileNotFound, "use", name, "there is no profile %q", name).
			WithHint("profiles are %s", strings.Join(names, ", "))
	}
	file, err := places.Use(name)
	if err != nil {
		return err
	}
	if a.flags.json {
		return writeJSON(a.Out, fileResult{name, file})
	}
	a.note("the default profile is now %s (%s)", name, places.Shorten(file))
	return nil
}
