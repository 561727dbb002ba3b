package plugin

import (
	"context"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/profile"
)

// RolledBack is what plugin rollback did.
type RolledBack struct {
	ID      string `json:"id"`
	Profile string `json:"profile"`
	From    string `json:"from"` // versions
	To      string `json:"to"`
}

// Rollback brings the version before the present one back, from the store and
// without network (case 99). The present one is kept as the version before, so
// that a second rollback returns. The tree is hashed first, and what would not
// work is refused.
func (h *Host) Rollback(ctx context.Context, name, id string, dry bool, compose func(profile.Plugged) *profile.Composition) (RolledBack, error) {
	r := RolledBack{ID: id, Profile: name}
	err := h.change(ctx, name, dry, func(l *Lock) error {
		e := l.find(id)
		if e == nil {
			return notInstalled(name, id)
		}
		if e.Previous == nil {
			return fault.New(fault.PluginNotFound, "rollback", id, "no version of %s before %s is kept", id, e.Version)
		}
		back, err := h.previousOf(*e)
		if err != nil {
			return err
		}
		r.From, r.To = e.Version, back.Version
		*e = back
		t := transaction{host: h, lock: l, compose: compose}
		_, err = t.composed()
		return err
	})
	return r, err
}

// previousOf gives the entry of the version before.
func (h *Host) previousOf(e Entry) (Entry, error) {
	if err := h.verifyTree(e.Previous.Tree); err != nil {
		return e, err
	}
	back := e
	back.Tree, back.Version = e.Previous.Tree, e.Previous.Version
	back.Link, back.Resolved, back.Tag, back.Integrity, back.Platforms = "", e.Previous.Resolved, e.Previous.Tag, e.Previous.Integrity, e.Previous.Platforms
	if src, err := ParseSource(e.Previous.Source, "/"); err == nil {
		back.Source, back.Origin = e.Previous.Source, src.Kind
		if back.Origin == KindArchive && back.Integrity == "" {
			back.Origin = KindDirectory
		}
	}
	back.Previous = nil
	if e.Link == "" {
		back.Previous = e.previous()
	}
	m, err := h.manifestOf(back)
	if err != nil {
		return e, err
	}
	want, err := h.readList(back.Tree)
	if err != nil {
		return e, ioFault(err, "read", h.treeDir(back.Tree)+".list")
	}
	back.Files, back.Bytes = len(want.Files), want.Bytes
	back.Manifest.Services = words(m.Services())
	return back, h.fits(&m)
}
