package cmd

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/profile"
)

func newProfile(a *app) *cobra.Command {
	return newGroup("profile", "Show, check and choose profiles",
		newProfileList(a), newProfileShow(a), newProfileExplain(a), newProfileValidate(a), newProfilePath(a),
		newProfileUse(a), newProfileInit(a), newProfileImportDsh(a), newProfileTrust(a), newProfileUntrust(a), newProfileTrusted(a))
}

// completeProfile completes the name of a profile.
func (a *app) completeProfile(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, name := range profile.NewPlaces(a.Environ).Names() {
		if len(args) == 0 && strings.HasPrefix(name, word) {
			names = append(names, name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeProfileFlag completes the value of --profile.
func (a *app) completeProfileFlag(c *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
	return a.completeProfile(c, nil, word)
}

// atMost takes n positional arguments or fewer.
func atMost(n int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > n {
			return usage("%s takes %s, got %d argument(s)", c.CommandPath(), what, len(args)).WithHint("%s", seeHelp(c))
		}
		return nil
	}
}

// first gives the first argument, or "".
func first(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// problemResult is one thing that is wrong with a profile.
type problemResult struct {
	Code    fault.Code `json:"code"`
	File    *string    `json:"file"`
	Line    *int       `json:"line"`
	Column  *int       `json:"column"`
	Path    *string    `json:"path"`
	Message string     `json:"message"`
	Hint    *string    `json:"hint"`
}

func newProblemResults(problems []profile.Problem) []problemResult {
	out := make([]problemResult, len(problems))
	for i, p := range problems {
		o := newOriginResult(p.Origin)
		out[i] = problemResult{p.Code, o.File, o.Line, o.Column, orNull(p.Path), p.Message, orNull(p.Hint)}
	}
	return out
}

// originResult is where a value was written: a file with its place, or the
// variable, plugin or number of the flag.
type originResult struct {
	Layer  string  `json:"layer"`
	Source *string `json:"source"`
	File   *string `json:"file"`
	Line   *int    `json:"line"`
	Column *int    `json:"column"`
}

func newOriginResult(o profile.Origin) originResult {
	r := originResult{Layer: o.Layer.String(), Source: orNull(o.Source)}
	switch o.Layer {
	case profile.LayerSystem, profile.LayerUser, profile.LayerProject, profile.LayerFile:
		r.File = r.Source
	}
	if o.Line > 0 {
		r.Line = &o.Line
	}
	if o.Column > 0 {
		r.Column = &o.Column
	}
	return r
}

// invalid writes the problems of a composition on stderr and gives the status
// for it: what could be shown has been shown.
func (a *app) invalid(c *profile.Composition) error {
	if len(c.Problems) == 0 {
		return nil
	}
	if a.flags.json {
		return c.Err()
	}
	for _, p := range c.Problems {
		fmt.Fprintln(a.Err, "afield: "+oneLine(p.Line()))
	}
	return statusError{statusOf(c.Problems[0].Code)}
}
