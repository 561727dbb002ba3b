package plugin

import (
	"context"
	"maps"
	"path/filepath"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/backend/all"
	"github.com/afield-dev/afield/pkg/provider"
)

// Tried is a plugin that can be started without being part of a profile.
type Tried struct {
	ID string
	// Providers are named in full.
	Providers []backend.Provider
	host      *Host
	x         installed
	staging   *staging
}

// Try makes an installed plugin, or that of a source, ready to be started. A
// directory is used in place. Close removes what was unpacked.
func (h *Host) Try(ctx context.Context, name, idOrSource string) (*Tried, error) {
	if ValidID(idOrSource) {
		l, _, err := readLock(h.Places, name)
		if err != nil {
			return nil, err
		}
		e := l.find(idOrSource)
		if e == nil {
			return nil, notInstalled(name, idOrSource)
		}
		m, err := h.manifestOf(*e)
		if err != nil {
			return nil, err
		}
		return h.tried(installed{*e, m}, nil), nil
	}
	src, err := ParseSource(idOrSource, h.Dir)
	if err != nil {
		return nil, err
	}
	s, err := h.stage(ctx, true)
	if err != nil {
		return nil, err
	}
	c, err := h.take(ctx, src, filepath.Join(s.dir, "a"), AddOptions{DryRun: true, Link: src.Kind == KindArchive && !isArchiveName(src.Text)})
	if err != nil {
		s.remove()
		return nil, err
	}
	c.entry.Link = c.dir
	return h.tried(c.installed, s), nil
}

func (h *Host) tried(x installed, s *staging) *Tried {
	t := &Tried{ID: x.entry.ID, host: h, x: x, staging: s}
	for _, o := range x.manifest.Providers {
		t.Providers = append(t.Providers, h.provider(x, o))
	}
	return t
}

// Program gives how the first provider is started, and with what its world
// opens.
func (t *Tried) Program(ctx context.Context, req backend.OpenRequest) (all.Program, provider.OpenParams, error) {
	o := t.x.manifest.Providers[0]
	if _, ok := o.Config.Field("cwd"); !ok {
		req.Config = maps.Clone(req.Config)
		delete(req.Config, "cwd")
	}
	secrets, err := secretsOf(ctx, o, req)
	if err != nil {
		return all.Program{}, provider.OpenParams{}, err
	}
	p, err := t.host.program(ctx, t.host.dirOf(t.x.entry), t.x, o)
	return p, provider.OpenParams{World: "w", Provider: o.Name, Config: req.Config, Secrets: secrets, Cwd: provider.Raw(req.Cwd)}, err
}

// Close removes what was unpacked.
func (t *Tried) Close() {
	if t.staging != nil {
		t.staging.remove()
	}
}
