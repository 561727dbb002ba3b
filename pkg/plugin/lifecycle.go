package plugin

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/profile"
)

// Listed is what plugin list says of one plugin. State is "ok", or why it
// cannot be used.
type Listed struct {
	ID       string   `json:"id"`
	Version  string   `json:"version"`
	Source   string   `json:"source"`
	Services []string `json:"services"`
	Active   bool     `json:"active"`
	Linked   bool     `json:"linked"`
	Platform string   `json:"platform"`
	State    string   `json:"state"`
	// Latest is the newest version that the source means; nil = not asked for,
	// or not known.
	Latest *string `json:"latest"`
}

// List gives the plugins of a profile in the order of their patches. It starts
// nothing and changes nothing (cases 95 and 102).
func (h *Host) List(name string) ([]Listed, error) {
	l, _, err := readLock(h.Places, name)
	if err != nil {
		return nil, err
	}
	out := []Listed{}
	for _, e := range l.Plugins {
		x := Listed{
			ID: e.ID, Version: e.Version, Source: e.Source, Services: e.Manifest.Services, Active: e.Active,
			Linked: e.Link != "", Platform: h.Platform, State: "ok",
		}
		m, err := h.manifestOf(e)
		switch {
		case err != nil:
			x.State = err.Error()
		case h.fits(&m) != nil:
			x.State = h.fits(&m).Error()
		case x.Linked:
			x.Version, x.State = m.Version, "linked, unverified"
		}
		out = append(out, x)
	}
	return out, nil
}

// Info is what plugin info says of one plugin, installed or not.
type Info struct {
	Installed bool              `json:"installed"`
	ID        string            `json:"id"`
	Version   string            `json:"version"`
	Title     string            `json:"title"`
	Homepage  string            `json:"homepage"`
	Source    string            `json:"source"`
	Platforms []string          `json:"platforms"`
	Providers []InfoProvider    `json:"providers"`
	Rows      []map[string]any  `json:"rows"`
	Replaces  []string          `json:"replaces"`
	Notes     map[string]string `json:"notes"`
	Integrity *string           `json:"integrity"`
	Tree      *string           `json:"tree"`
	Active    bool              `json:"active"`
	Linked    bool              `json:"linked"`
	Dir       *string           `json:"dir"`
}

// InfoProvider is a provider of an Info.
type InfoProvider struct {
	Name     string      `json:"name"`
	Services []string    `json:"services"`
	Level    string      `json:"level"`
	Env      []string    `json:"env"`
	Config   []InfoField `json:"config"`
}

// InfoField is a key of a provider's config.
type InfoField struct {
	Key      string `json:"key"`
	Doc      string `json:"doc"`
	Required bool   `json:"required"`
	Secret   bool   `json:"secret"`
	Default  any    `json:"default"`
}

// Info describes an installed plugin, or what a source would install. Nothing
// is installed, and nothing of it is run.
func (h *Host) Info(ctx context.Context, name, idOrSource string) (Info, error) {
	if ValidID(idOrSource) {
		l, _, err := readLock(h.Places, name)
		if err != nil {
			return Info{}, err
		}
		e := l.find(idOrSource)
		if e == nil {
			return Info{}, notInstalled(name, idOrSource)
		}
		m, err := h.manifestOf(*e)
		if err != nil {
			return Info{}, err
		}
		dir := h.dirOf(*e)
		i := newInfo(m, *e)
		i.Installed, i.Active, i.Dir = true, e.Active, &dir
		return i, nil
	}
	src, err := ParseSource(idOrSource, h.Dir)
	if err != nil {
		return Info{}, err
	}
	s, err := h.stage(ctx, true)
	if err != nil {
		return Info{}, err
	}
	defer s.remove()
	c, err := h.take(ctx, src, filepath.Join(s.dir, "a"), AddOptions{DryRun: true})
	if err != nil {
		return Info{}, err
	}
	return newInfo(c.manifest, c.entry), nil
}

func newInfo(m Manifest, e Entry) Info {
	i := Info{
		ID: e.ID, Version: m.Version, Title: m.Title, Homepage: m.Homepage, Source: e.Source, Platforms: m.Platforms(),
		Rows: m.Rows, Replaces: orEmpty(m.replaced()), Notes: m.Notes, Linked: e.Link != "", Integrity: orNil(e.Integrity), Tree: orNil(e.Tree),
	}
	for _, o := range m.Providers {
		p := InfoProvider{Name: e.ID + "/" + o.Name, Services: words(o.Services), Level: o.Level, Env: orEmpty(o.Env), Config: []InfoField{}}
		for _, f := range o.Config {
			p.Config = append(p.Config, InfoField{f.Key, f.Doc, f.Required, f.Secret, f.Default})
		}
		i.Providers = append(i.Providers, p)
	}
	return i
}

func orNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func notInstalled(name, id string) error {
	return fault.New(fault.PluginNotFound, "plugin", id, "the profile %s has no plugin %s", name, quotePath(id)).
		WithHint("afield plugin list shows those it has")
}

// change edits the lock of a profile under its lock file.
func (h *Host) change(ctx context.Context, name string, dry bool, edit func(*Lock) error) error {
	if h.Places.Config == "" {
		return fault.New(fault.PluginIO, "plugin", "", "there is no configuration directory").WithHint("set AFIELD_CONFIG_DIR")
	}
	if !dry {
		lock, err := holdProfile(ctx, h.Places, name)
		if err != nil {
			return err
		}
		defer lock.release()
	}
	l, before, err := readLock(h.Places, name)
	if err != nil {
		return err
	}
	was := slices.Clone(l.Plugins)
	if err := edit(l); err != nil || dry || reflect.DeepEqual(was, l.Plugins) {
		return err
	}
	return commit(h.Places, l, before)
}

// Remove takes plugins out of a profile. It needs neither network nor an intact
// plugin; other profiles keep theirs (case 94). It gives the ids that it found.
// With purge, what their providers keep on this machine goes too.
func (h *Host) Remove(ctx context.Context, name string, ids []string, ifPresent, purge, dry bool) ([]string, error) {
	for _, id := range ids {
		if !ValidID(id) {
			return nil, fault.New(fault.Usage, "remove", id, "%s is not the id of a plugin", quotePath(id))
		}
	}
	removed := []string{}
	err := h.change(ctx, name, dry, func(l *Lock) error {
		for _, id := range ids {
			if l.find(id) == nil && !ifPresent {
				return notInstalled(name, id)
			}
		}
		l.Plugins = slices.DeleteFunc(l.Plugins, func(e Entry) bool {
			if !slices.Contains(ids, e.ID) {
				return false
			}
			removed = append(removed, e.ID)
			return true
		})
		return nil
	})
	if err != nil || !purge || dry {
		return removed, err
	}
	for _, id := range removed {
		if err := removeTree(filepath.Join(h.Places.State, "plugins", id)); err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// SetActive takes the patch of a plugin in or out; its place in the order stays
// (case 96). What would not work is refused, and nothing changes.
func (h *Host) SetActive(ctx context.Context, name, id string, active, dry bool, compose func(profile.Plugged) *profile.Composition) (changed bool, err error) {
	err = h.change(ctx, name, dry, func(l *Lock) error {
		e := l.find(id)
		if e == nil {
			return notInstalled(name, id)
		}
		if e.Active == active {
			return nil
		}
		e.Active, changed = active, true
		if !active {
			return nil // whatever is wrong with a profile, a plugin can be taken out of it
		}
		t := transaction{host: h, lock: l, compose: compose}
		_, err := t.composed()
		return err
	})
	return changed, err
}

// Verified is what plugin verify says of one plugin.
type Verified struct {
	ID         string   `json:"id"`
	Version    string   `json:"version"`
	Profile    string   `json:"profile"`
	OK         bool     `json:"ok"`
	Linked     bool     `json:"linked"`
	Deviations []string `json:"deviations"`
}

// Verify hashes every file of installed plugins and lists what deviates from
// the lock. No ids are all of them.
func (h *Host) Verify(name string, ids []string) ([]Verified, error) {
	l, _, err := readLock(h.Places, name)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if l.find(id) == nil {
			return nil, notInstalled(name, id)
		}
	}
	out := []Verified{}
	for _, e := range l.Plugins {
		if len(ids) > 0 && !slices.Contains(ids, e.ID) {
			continue
		}
		v := Verified{ID: e.ID, Version: e.Version, Profile: name, Linked: e.Link != "", Deviations: []string{}}
		if !v.Linked {
			found, err := h.deviations(h.treeOf(e))
			if err != nil {
				found = []string{err.Error()}
			}
			v.Deviations = append(v.Deviations, found...)
		}
		v.OK = len(v.Deviations) == 0
		out = append(out, v)
	}
	return out, nil
}

// Profiles gives the names of the profiles that have plugins.
func (h *Host) Profiles() []string {
	var out []string
	found, _ := os.ReadDir(filepath.Join(h.Places.Config, "profiles"))
	for _, f := range found {
		if name, ok := strings.CutSuffix(f.Name(), ".plugins.json"); ok && profile.ValidName(name) {
			out = append(out, name)
		}
	}
	return out
}

// Collected is what plugin gc removed.
type Collected struct {
	Removed []string `json:"removed"` // digests
	Kept    int      `json:"kept"`
}

// Collect removes the trees that no profile names and no running process uses
// (case 100). It waits for installations that are about to commit.
func (h *Host) Collect(ctx context.Context, dry bool) (Collected, error) {
	c := Collected{Removed: []string{}}
	if _, err := os.Stat(h.storeDir()); err != nil {
		return c, nil
	}
	if err := h.prepare(); err != nil {
		return c, err
	}
	store, err := hold(ctx, filepath.Join(h.Places.Data, ".lock"), false)
	if err != nil {
		return c, err
	}
	defer store.release()
	needed := map[string]bool{}
	for _, name := range h.Profiles() {
		l, _, err := readLock(h.Places, name)
		if err != nil {
			return c, err
		}
		for _, e := range l.Plugins {
			needed[e.Tree], needed[h.treeOf(e)] = true, true
			if e.Previous != nil {
				needed[e.Previous.Tree] = true
			}
		}
	}
	entries, err := os.ReadDir(h.storeDir())
	if err != nil {
		return c, ioFault(err, "read", h.storeDir())
	}
	digests := map[string]bool{}
	for _, e := range entries {
		digest, _, _ := strings.Cut(e.Name(), ".")
		digests[digest] = isDigest(digest)
	}
	for _, digest := range sortedKeys(digests) {
		switch {
		case !digests[digest]:
		case needed[digest]:
			c.Kept++
		default:
			if err := h.collect(digest, dry, &c); err != nil {
				return c, err
			}
		}
	}
	return c, nil
}

// collect removes one tree, unless a process uses it.
func (h *Host) collect(digest string, dry bool, c *Collected) error {
	using, free, err := tryAlone(h.treeDir(digest) + ".used")
	if err != nil {
		return err
	}
	if !free {
		c.Kept++
		return nil
	}
	defer using.release()
	if _, err := os.Stat(h.treeDir(digest)); err == nil {
		c.Removed = append(c.Removed, digest)
	}
	if dry {
		return nil
	}
	if err := removeTree(h.treeDir(digest)); err != nil {
		return err
	}
	for _, beside := range []string{".list", ".stamps", ".used"} {
		os.Remove(h.treeDir(digest) + beside)
	}
	return nil
}
