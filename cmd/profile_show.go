package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/profile"
)

// showResult is the JSON of profile show and --dump-config. Profile is the tree
// in the long form of the profile format.
type showResult struct {
	Name     string          `json:"name"`
	Why      string          `json:"why"`
	Digest   string          `json:"digest"`
	Valid    bool            `json:"valid"`
	Profile  map[string]any  `json:"profile"`
	Problems []problemResult `json:"problems"`
}

func newProfileShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "show [NAME]",
		Short: "Print the composed profile",
		Long: "Print the profile as all layers, the environment and the flags of this command line compose it: YAML, with the " +
			"origin of each value beside it. Secrets are printed as the references that were written. What is printed can " +
			"be given to --profile-file.",
		Args:              atMost(1, "at most one NAME"),
		ValidArgsFunction: a.completeProfile,
		RunE: a.run(func(_ context.Context, args []string) error {
			c, err := a.composeNamed(first(args))
			if err != nil {
				return err
			}
			return runShow(a, c)
		}),
	}
}

// runShow prints a composition, also a broken one, and then fails for what is
// wrong with it.
func runShow(a *app, c *profile.Composition) error {
	err := writeShown(a, c)
	if err != nil {
		return err
	}
	return a.invalid(c)
}

func writeShown(a *app, c *profile.Composition) error {
	if !a.flags.json {
		return c.Dump(a.Out)
	}
	return writeJSON(a.Out, showResult{
		Name: c.Name, Why: c.Why, Digest: c.Digest(), Valid: len(c.Problems) == 0,
		Profile: c.Tree(), Problems: newProblemResults(c.Problems),
	})
}

// runDump answers --dump-config and --dump-default-config.
func runDump(a *app) error {
	c, err := a.compose()
	if err != nil {
		return err
	}
	return runShow(a, c)
}
