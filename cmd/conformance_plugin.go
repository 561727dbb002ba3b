package cmd

import (
	"context"
	"io"
	"os"

	"github.com/afield-dev/afield/pkg/plugin"
	"github.com/afield-dev/afield/pkg/profile"
	"github.com/afield-dev/afield/pkg/provider/providertest"
)

// tryPlugin makes this invocation's world that of a plugin's first provider,
// whether the plugin is installed or not. The profile's own rows are off.
func (a *app) tryPlugin(ctx context.Context, what string) (*plugin.Tried, error) {
	p, err := a.pluginsOf()
	if err != nil {
		return nil, err
	}
	tried, err := p.host.Try(ctx, p.name, what)
	if err != nil {
		return nil, err
	}
	first := []profile.Override{{Text: "backend=" + tried.Providers[0].Name}}
	a.flags.overrides = append(first, a.flags.overrides...)
	a.tried, a.composed = tried.Providers, nil
	return tried, nil
}

// protocol runs the suite of the protocol against the program of a plugin.
func (r *conformanceRun) protocol(ctx context.Context, tried *plugin.Tried, only string) error {
	if only != "" && only != "protocol" {
		return nil
	}
	c, err := r.app.compose()
	if err != nil {
		return err
	}
	p, err := c.Profile()
	if err != nil {
		return err
	}
	row := p.Exec
	if row == nil {
		row = p.FS
	}
	req, err := r.app.openRequest(p, row)
	if err != nil {
		return err
	}
	program, open, err := tried.Program(ctx, req)
	if err != nil {
		return err
	}
	if program.Dir, err = os.MkdirTemp("", "afield-conformance"); err != nil {
		return err
	}
	defer os.RemoveAll(program.Dir)
	return providertest.Check(ctx, providertest.Backend{
		Dial: func(ctx context.Context) (io.ReadWriteCloser, error) { return program.Dial(ctx, req) }, Open: open,
	}, func(v providertest.Verdict) {
		outcome := "passed"
		if v.Reason != "" {
			outcome = "failed"
		}
		r.add(v.Case.ID, v.Case.Name, outcome, v.Reason, v.Duration)
	})
}
