package plugin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/plugin/download"
	"github.com/afield-dev/afield/pkg/profile"
)

// Synced is what a sync did for one plugin.
type Synced struct {
	ID      string `json:"id"`
	Version string `json:"version"`
	Fetched bool   `json:"fetched"` // it was not in the store, or not whole
	Linked  bool   `json:"linked"`
}

// Sync makes the store match the lock of a profile: the exact versions, also
// when there are newer ones (case 69), by the archive of this platform. frozen
// refuses what the lock cannot prove, and never changes the lock; without it a
// missing digest of this platform is recorded.
func (h *Host) Sync(ctx context.Context, name string, frozen, dry bool, compose func(profile.Plugged) *profile.Composition) ([]Synced, error) {
	var out []Synced
	work := func(l *Lock) error {
		for i := range l.Plugins {
			s, err := h.sync(ctx, &l.Plugins[i], frozen, dry, registryIn(compose(profile.Plugged{})))
			if err != nil {
				return err
			}
			out = append(out, s)
		}
		if dry {
			return nil
		}
		t := transaction{host: h, lock: l, compose: compose}
		c, err := t.composition()
		if err == nil {
			err = c.Err()
		}
		return err
	}
	if !dry {
		if err := h.prepare(); err != nil {
			return nil, err
		}
	}
	if !frozen {
		return out, orWork(h.change(ctx, name, dry, work), &out)
	}
	l, _, err := readLock(h.Places, name)
	if err != nil {
		return nil, err
	}
	return out, orWork(work(l), &out)
}

// orWork gives the error, and an empty list instead of none.
func orWork(err error, out *[]Synced) error {
	if *out == nil {
		*out = []Synced{}
	}
	return err
}

// on gives the archive for a platform.
func (e Entry) on(platform string) Packed {
	system, _, _ := strings.Cut(platform, "/")
	for _, key := range []string{platform, system + "/any", "any"} {
		if p, ok := e.Platforms[key]; ok {
			return p
		}
	}
	return Packed{}
}

// treeOf gives the tree of an installed plugin on this platform: that of the
// lock, or, where the lock was made on a platform with another archive, the one
// that a sync has unpacked here.
func (h *Host) treeOf(e Entry) string {
	p := e.on(h.Platform)
	if p.Integrity == "" || p.Integrity == e.Integrity {
		return e.Tree
	}
	content, err := os.ReadFile(h.aliasPath(p))
	if digest := strings.TrimSpace(string(content)); err == nil && isDigest(digest) {
		return digest
	}
	return e.Tree
}

func (h *Host) aliasPath(p Packed) string {
	sum := sha256.Sum256([]byte(p.Integrity))
	return filepath.Join(h.storeDir(), hex.EncodeToString(sum[:])+".tree")
}

// sync brings one plugin into the store.
func (h *Host) sync(ctx context.Context, e *Entry, frozen, dry bool, registry string) (Synced, error) {
	s := Synced{ID: e.ID, Version: e.Version, Linked: e.Link != ""}
	if s.Linked {
		if frozen {
			return s, refused(e, "link", "it is used in place, and the lock holds no digest of it").WithHint("add it from an archive")
		}
		return s, nil
	}
	src, err := e.lockedSource()
	if err != nil {
		return s, err
	}
	own := e.on(h.Platform)
	if src.Kind != KindDirectory && own.Integrity == "" && frozen {
		return s, refused(e, "platforms", "it has no digest for "+h.Platform).WithHint("run afield plugin sync without --frozen there once")
	}
	other := own.Integrity != "" && own.Integrity != e.Integrity
	_, err = os.Stat(h.aliasPath(own))
	if present := !other || err == nil; present && h.verifyTree(h.treeOf(*e)) == nil {
		return s, nil
	}
	s.Fetched = true
	if dry {
		return s, nil
	}
	return s, h.restore(ctx, e, src, own, registry)
}

// lockedSource reads the source of an entry and holds the other fields of the
// lock against it (case 71).
func (e *Entry) lockedSource() (Source, error) {
	src, err := ParseSource(e.Source, "/")
	if err != nil {
		return src, refused(e, "source", "it is none")
	}
	if e.Origin == KindDirectory && src.Kind == KindArchive {
		src.Kind = KindDirectory
	}
	same := e.Resolved == src.Name
	switch src.Kind {
	case KindDirectory:
		same = e.Resolved == ""
	case KindGitHub:
		same = strings.Contains(e.Resolved, "/"+strings.TrimPrefix(src.Name, "github:")+"/")
	case KindNPM:
		same = e.Resolved != ""
	}
	if !same || src.Kind != e.Origin {
		return src, refused(e, "source", "it is "+quotePath(e.Source)+", which is not where "+quotePath(e.Resolved)+" comes from")
	}
	return src, nil
}

func refused(e *Entry, field, reason string) *fault.Error {
	return fault.New(fault.PluginIntegrity, "sync", e.ID, "the lock of the plugin %s is refused, field %s: %s", e.ID, field, reason)
}

// restore fetches the archive that the lock names, holds it against the lock,
// and puts it into the store.
func (h *Host) restore(ctx context.Context, e *Entry, src Source, own Packed, registry string) error {
	st, err := h.stage(ctx, false)
	if err != nil {
		return err
	}
	defer st.remove()
	o := AddOptions{As: e.ID, Inactive: !e.Active, registry: registry}
	if src.Kind != KindDirectory {
		p, err := h.lockedPlace(ctx, src, *e, own)
		if err != nil {
			return err
		}
		o.from = &p
	}
	c, err := h.take(ctx, src, filepath.Join(st.dir, "a"), o)
	if err != nil {
		return err
	}
	if c.entry.Version != e.Version || c.entry.Manifest.ID != e.Manifest.ID {
		return refused(e, "version", "the archive is "+c.entry.Manifest.ID+" "+c.entry.Version+" and the lock says "+e.Manifest.ID+" "+e.Version)
	}
	other := own.Integrity != "" && own.Integrity != e.Integrity
	if !other && c.tree.Digest != e.Tree {
		return refused(e, "tree", "the unpacked files are "+c.tree.Digest+" and the lock says "+e.Tree)
	}
	store, err := hold(ctx, filepath.Join(h.Places.Data, ".lock"), true)
	if err != nil {
		return err
	}
	defer store.release()
	t := transaction{host: h, all: []*candidate{c}}
	if err := t.publish(); err != nil {
		return err
	}
	if other {
		return replaceFile(h.aliasPath(own), []byte(c.tree.Digest+"\n"), 0o600, nil)
	}
	if own.Integrity == "" && e.Platforms != nil {
		e.Platforms = maps.Clone(e.Platforms)
		e.Platforms[h.Platform] = Packed{Resolved: c.entry.Resolved, Integrity: c.entry.Integrity}
	}
	return nil
}

// lockedPlace gives the archive that the lock names.
func (h *Host) lockedPlace(ctx context.Context, src Source, e Entry, own Packed) (place, error) {
	if own.Resolved == "" {
		own.Resolved = e.Resolved
	}
	p := place{resolved: own.Resolved, version: e.Tag, integrity: own.Integrity, said: "the lock (field integrity)", request: download.Request{URL: own.Resolved}}
	if isIntegrity(own.Integrity) {
		p.digest = own.Integrity
	}
	if h.Offline && p.digest == "" && src.remote() {
		return p, fault.New(fault.PluginFetchFailed, "sync", e.ID, "offline: the archive %s of %s is not in the cache", orNone(own.Integrity), quotePath(own.Resolved))
	}
	switch {
	case src.Kind == KindNPM:
		config, client, err := h.npmConfig()
		if err != nil {
			return p, err
		}
		p.client, p.request.Credential = client, config.Authorization
	case src.Kind == KindGitHub && h.githubToken(nil) != "" && !h.Offline:
		src.Spec, src.Asset = e.Tag, path.Base(own.Resolved)
		now, err := h.locateRelease(ctx, src)
		if err != nil {
			return p, err
		}
		p.request, p.client = now.request, now.client
	case src.Kind == KindAddress:
		p.request.Plain = own.Integrity != ""
	}
	return p, nil
}
