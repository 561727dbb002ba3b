package cmd

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/profile"
)

// explainResult is the JSON of profile explain.
type explainResult struct {
	Name   string       `json:"name"`
	Digest string       `json:"digest"`
	Values []leafResult `json:"values"`
}

// leafResult is one value with its origin, and what it took the place of,
// nearest first.
type leafResult struct {
	Path  string `json:"path"`
	Value any    `json:"value"`
	originResult
	Secret bool         `json:"secret"`
	Note   *string      `json:"note"`
	Over   []pastResult `json:"over"`
}

type pastResult struct {
	Value any `json:"value"`
	originResult
}

func newProfileExplain(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "explain [NAME] [PATH]",
		Short: "Say where each value of the profile comes from",
		Long: "Print every value of the composed profile, or those at PATH, with its origin and all that it took the place " +
			"of. A single argument is the name of a profile if there is one of that name, else a PATH.",
		Example: "    afield profile explain fs.readLimit\n    afield profile explain ci world.config.host",
		Args:    atMost(2, "at most NAME and PATH"),
		RunE: a.run(func(_ context.Context, args []string) error {
			name, path := splitExplain(a, args)
			c, err := a.composeNamed(name)
			if err != nil {
				return err
			}
			return runExplain(a, c, path)
		}),
	}
}

func splitExplain(a *app, args []string) (name, path string) {
	switch {
	case len(args) == 2:
		return args[0], args[1]
	case len(args) == 1 && slices.Contains(profile.NewPlaces(a.Environ).Names(), args[0]):
		return args[0], ""
	}
	return "", first(args)
}

func runExplain(a *app, c *profile.Composition, path string) error {
	leaves := c.Explain(path)
	if len(leaves) == 0 {
		if err := a.invalid(c); err != nil {
			return err
		}
		return fault.New(fault.ProfilePathNotFound, "explain", path, "the profile %s has no value %q", c.Name, path).
			WithHint("see afield profile show")
	}
	if err := writeLeaves(a, c, leaves); err != nil {
		return err
	}
	return a.invalid(c)
}

func writeLeaves(a *app, c *profile.Composition, leaves []profile.Leaf) error {
	if a.flags.json {
		return writeJSON(a.Out, explainResult{c.Name, c.Digest(), newLeafResults(leaves)})
	}
	var b strings.Builder
	for _, l := range leaves {
		fmt.Fprintf(&b, "%s = %s\n    %s", l.Path, plainText(l.Value), l.Origin)
		if l.Note != "" {
			b.WriteString(" (" + l.Note + ")")
		}
		if l.Secret {
			b.WriteString(", secret")
		}
		b.WriteByte('\n')
		for _, o := range l.Over {
			fmt.Fprintf(&b, "    over %s: %s\n", o.Origin, plainText(o.Value))
		}
	}
	_, err := a.Out.Write([]byte(b.String()))
	return err
}

// plainText gives a value on one line.
func plainText(v any) string {
	if s, ok := v.(string); ok && s != "" && oneLine(s) == s {
		return s
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}

func newLeafResults(leaves []profile.Leaf) []leafResult {
	out := make([]leafResult, len(leaves))
	for i, l := range leaves {
		out[i] = leafResult{Path: l.Path, Value: l.Value, originResult: newOriginResult(l.Origin),
			Secret: l.Secret, Note: orNull(l.Note), Over: []pastResult{}}
		for _, o := range l.Over {
			out[i].Over = append(out[i].Over, pastResult{o.Value, newOriginResult(o.Origin)})
		}
	}
	return out
}
