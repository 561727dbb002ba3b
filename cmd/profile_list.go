package cmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/profile"
)

// listedProfile is one profile of the list.
type listedProfile struct {
	Name     string   `json:"name"`
	Layers   []string `json:"layers"`
	Backend  *string  `json:"backend"`
	Services []string `json:"services"`
	Valid    bool     `json:"valid"`
	Problem  *string  `json:"problem"`
	Current  bool     `json:"current"`
	Why      *string  `json:"why"`
}

func newProfileList(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the profiles",
		Long: "List the profiles: which layers have them, the backend, whether they are valid, and which one is current. " +
			"Each is looked at by itself, without the project's file, the environment and flags.",
		Args: none,
		RunE: a.run(func(context.Context, []string) error { return runProfileList(a) }),
	}
}

func runProfileList(a *app) error {
	current, err := a.compose()
	if err != nil {
		return err
	}
	req, err := a.request()
	if err != nil {
		return err
	}
	list := []listedProfile{}
	for _, name := range current.Places.Names() {
		req.Name, req.Named, req.Alone = name, true, true
		p := newListedProfile(profile.Compose(req))
		if name == current.Name {
			p.Current, p.Why = true, &current.Why
		}
		list = append(list, p)
	}
	if a.flags.json {
		return writeJSON(a.Out, list)
	}
	return writeProfileList(a, list)
}

func newListedProfile(c *profile.Composition) listedProfile {
	p := listedProfile{Name: c.Name, Layers: []string{}, Services: []string{}, Valid: len(c.Problems) == 0}
	for _, s := range c.Sources {
		if s.Exists && strings.HasSuffix(s.Path, "/profiles/"+c.Name+".yaml") {
			p.Layers = append(p.Layers, s.Layer.String())
		}
	}
	if len(p.Layers) == 0 {
		p.Layers = append(p.Layers, profile.LayerDefault.String())
	}
	if !p.Valid {
		line := c.Problems[0].Line()
		p.Problem = &line
	}
	var names []string
	for _, s := range []backend.Service{backend.ServiceFS, backend.ServiceExec} {
		name := c.ProviderOf(s)
		if name == "" {
			continue
		}
		p.Services = append(p.Services, string(s))
		if len(names) == 0 || names[0] != name {
			names = append(names, name)
		}
	}
	p.Backend = orNull(strings.Join(names, "+"))
	return p
}

func writeProfileList(a *app, list []listedProfile) error {
	width := 0
	for _, p := range list {
		width = max(width, len(p.Name))
	}
	var b strings.Builder
	for _, p := range list {
		mark, state := " ", "ok"
		if p.Current {
			mark = "*"
		}
		if p.Problem != nil {
			state = *p.Problem
		}
		name := "-"
		if p.Backend != nil {
			name = *p.Backend
		}
		fmt.Fprintf(&b, "%s %-*s  %-14s  %-8s  %s\n", mark, width, p.Name, strings.Join(p.Layers, ","), name, oneLine(state))
	}
	_, err := a.Out.Write([]byte(b.String()))
	return err
}
