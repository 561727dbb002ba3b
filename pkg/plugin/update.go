package plugin

import (
	"context"
	"slices"
	"strings"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/profile"
)

// UpdateOptions are the flags of plugin update.
type UpdateOptions struct {
	IDs []string // none = all
	To  string   // a version, dist-tag or tag for the one plugin
	// The rest is as in AddOptions.
	NoStart, AcceptChanged, Yes, DryRun bool
	Confirm                             func(id string, adds []string) bool
}

// Updated is what an update did to one plugin.
type Updated struct {
	ID      string `json:"id"`
	From    string `json:"from"` // versions
	To      string `json:"to"`
	Changed bool   `json:"changed"`
	Err     error  `json:"-"` // why it stayed as it was
}

// Update brings plugins to the newest version that their sources mean, each on
// its own: the old one stays until the new one is committed, and one that fails
// does not stop the others (case 97). Whether a plugin is active stays.
func (h *Host) Update(ctx context.Context, name string, o UpdateOptions, compose func(profile.Plugged) *profile.Composition) ([]Updated, error) {
	if o.To != "" && len(o.IDs) != 1 {
		return nil, fault.New(fault.Usage, "update", "", "--to goes with one ID only")
	}
	l, _, err := readLock(h.Places, name)
	if err != nil {
		return nil, err
	}
	for _, id := range o.IDs {
		if l.find(id) == nil {
			return nil, notInstalled(name, id)
		}
	}
	out := []Updated{}
	for _, e := range l.Plugins {
		if ctx.Err() != nil {
			return out, aborted(ctx, "update")
		}
		if len(o.IDs) == 0 || slices.Contains(o.IDs, e.ID) {
			out = append(out, h.update(ctx, name, e, o, compose))
		}
	}
	return out, nil
}

func (h *Host) update(ctx context.Context, name string, e Entry, o UpdateOptions, compose func(profile.Plugged) *profile.Composition) Updated {
	u := Updated{ID: e.ID, From: e.Version, To: e.Version}
	if e.Link != "" {
		return u
	}
	add := AddOptions{
		NoStart: o.NoStart, AcceptChanged: o.AcceptChanged, Yes: o.Yes, Confirm: o.Confirm, DryRun: o.DryRun,
		As: e.ID, Replace: true, updates: true, registry: registryIn(compose(profile.Plugged{})),
	}
	src, err := sourceAt(e, o.To)
	if err == nil && src.remote() {
		add.from, err = h.newest(ctx, src, e, add)
	}
	if err != nil || src.remote() && add.from == nil {
		u.Err = err
		return u
	}
	add.Sources = []string{src.Text}
	r, err := h.Add(ctx, name, add, compose)
	if err != nil {
		u.Err = err
		return u
	}
	u.To = r.Added[0].Version
	u.Changed = r.Added[0].tree != e.Tree
	return u
}

// sourceAt gives the source of an installed plugin, at another version if one is
// asked for.
func sourceAt(e Entry, to string) (Source, error) {
	text := e.Source
	if to != "" {
		src, err := ParseSource(text, "/")
		if err != nil {
			return src, err
		}
		if src.Kind != KindNPM && src.Kind != KindGitHub {
			return src, fault.New(fault.Usage, "update", e.ID, "--to is for packages and releases, and %s is from %s", e.ID, quotePath(text))
		}
		text = src.Name + "@" + to
		if src.Asset != "" {
			text += "#" + src.Asset
		}
	}
	return ParseSource(text, "/")
}

// newest asks where the archive is now; nil = what is installed is it.
func (h *Host) newest(ctx context.Context, src Source, e Entry, o AddOptions) (*place, error) {
	p, err := h.locate(ctx, src, o)
	if err != nil {
		return nil, err
	}
	same := src.Kind == KindNPM && p.version == e.Version && p.integrity == e.Integrity || src.Kind == KindGitHub && p.version == e.Tag && p.resolved == e.Resolved
	if same && src.Text == e.Source && h.verifyTree(h.treeOf(e)) == nil {
		return nil, nil
	}
	return &p, nil
}

// Outdated lists the plugins of a profile with the newest version that their
// sources mean, which is asked for over the network.
func (h *Host) Outdated(ctx context.Context, name string, compose func(profile.Plugged) *profile.Composition) ([]Listed, error) {
	list, err := h.List(name)
	if err != nil {
		return nil, err
	}
	l, _, err := readLock(h.Places, name)
	if err != nil {
		return nil, err
	}
	o := AddOptions{registry: registryIn(compose(profile.Plugged{}))}
	for i := range list {
		e := l.find(list[i].ID)
		if e == nil {
			continue
		}
		src, err := ParseSource(e.Source, "/")
		if err != nil || e.Link != "" || src.Kind != KindNPM && src.Kind != KindGitHub {
			continue
		}
		p, err := h.locate(ctx, src, o)
		if err != nil {
			list[i].State = "cannot ask for its newest version: " + err.Error()
			continue
		}
		latest := strings.TrimPrefix(p.version, "v")
		list[i].Latest = &latest
	}
	return list, nil
}
