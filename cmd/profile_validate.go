package cmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/profile"
)

type validateOptions struct {
	names []string
	all   bool
	file  string
}

func newProfileValidate(a *app) *cobra.Command {
	opts := validateOptions{}
	c := &cobra.Command{
		Use:   "validate [NAME...]",
		Short: "List all that is wrong with profiles",
		Long: "List every problem of the current profile, or of those named, one a line: FILE:LINE:COLUMN: CODE message (hint). " +
			"The status is 2 if there is one. Variables that mean nothing are listed too and do not count. No world is opened; " +
			"see afield doctor for that.",
		Args: cobra.ArbitraryArgs,
		ValidArgsFunction: func(c *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
			return a.completeProfile(c, nil, word)
		},
	}
	f := c.Flags()
	f.BoolVar(&opts.all, "all", false, "check every profile")
	f.StringVar(&opts.file, "file", "", "check this `file` by itself, above the defaults (default: none)")
	c.RunE = a.run(func(_ context.Context, args []string) error {
		opts.names = args
		if len(args) > 0 && (opts.all || opts.file != "") || opts.all && opts.file != "" {
			return usage("NAME, --all and --file do not go together")
		}
		return runValidate(a, opts)
	})
	return c
}

func runValidate(a *app, opts validateOptions) error {
	compositions, err := composeEach(a, opts)
	if err != nil {
		return err
	}
	var problems []profile.Problem
	for _, c := range compositions {
		problems = addProblems(problems, c.Problems)
	}
	listed := append(unknownVariables(compositions[0]), problems...)
	if err := writeProblems(a, listed); err != nil {
		return err
	}
	if len(problems) > 0 {
		return statusError{statusOf(problems[0].Code)}
	}
	return nil
}

// composeEach composes what is to be checked; there is at least one.
func composeEach(a *app, opts validateOptions) ([]*profile.Composition, error) {
	a.flags.quiet = true // the unknown variables are in the list
	req, err := a.request()
	if err != nil {
		return nil, err
	}
	if opts.file != "" {
		req.DefaultConfig, req.Files = true, []string{opts.file}
		return []*profile.Composition{profile.Compose(req)}, nil
	}
	if opts.all {
		opts.names = profile.NewPlaces(a.Environ).Names()
	}
	if len(opts.names) == 0 {
		c, err := a.compose()
		return []*profile.Composition{c}, err
	}
	var out []*profile.Composition
	for _, name := range opts.names {
		req.Name, req.Named = name, true
		out = append(out, profile.Compose(req))
	}
	return out, nil
}

// addProblems leaves out what stands in the list already: profiles share the
// project's file and the environment.
func addProblems(list, more []profile.Problem) []profile.Problem {
	seen := map[profile.Problem]bool{}
	for _, p := range list {
		seen[p] = true
	}
	for _, p := range more {
		if !seen[p] {
			list = append(list, p)
		}
	}
	return list
}

func unknownVariables(c *profile.Composition) []profile.Problem {
	var out []profile.Problem
	for _, name := range c.UnknownEnv {
		p := profile.Problem{Code: fault.Usage, Origin: profile.Origin{Layer: profile.LayerEnv, Source: name}, Message: "the variable means nothing"}
		if like := profile.UnknownVariableHint(name); like != "" {
			p.Hint = "did you mean " + like + "?"
		}
		out = append(out, p)
	}
	return out
}

func writeProblems(a *app, problems []profile.Problem) error {
	if a.flags.json {
		return writeJSON(a.Out, newProblemResults(problems))
	}
	var b strings.Builder
	for _, p := range problems {
		fmt.Fprintln(&b, oneLine(p.Line()))
	}
	_, err := a.Out.Write([]byte(b.String()))
	return err
}
