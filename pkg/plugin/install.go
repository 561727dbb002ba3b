package plugin

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/profile"
)

// AddOptions are the flags of plugin add.
type AddOptions struct {
	Sources       []string
	Inactive      bool   // install without the patch
	Replace       bool   // an installed plugin of the id from another origin
	NoStart       bool   // leave the start check out
	Link          bool   // use a directory in place
	Integrity     string // sha512-… that the one archive must have
	AcceptChanged bool
	MaxUnpacked   int64  // bytes of all files; 0 = the standard
	As            string // another id for the one plugin
	DryRun        bool
	Yes           bool // what an update adds is agreed to
	// Confirm asks whether what an update adds is agreed to; nil = nobody can be
	// asked.
	Confirm func(id string, adds []string) bool

	registry string // plugins.registry of the profile
	updates  bool   // an installed plugin: its place and whether it is active stay
	from     *place // where the archive is, instead of asking
}

// AddResult is what an installation did.
type AddResult struct {
	Added    []Added  `json:"added"`
	Profile  string   `json:"profile"`
	Digest   string   `json:"digest"` // of the composed profile
	Warnings []string `json:"warnings"`
}

// Added is one plugin of an AddResult. Active says that its patch is applied,
// Effective that its rows serve something then.
type Added struct {
	ID        string   `json:"id"`
	Version   string   `json:"version"`
	Source    string   `json:"source"`
	Resolved  *string  `json:"resolved"`
	Integrity *string  `json:"integrity"`
	Platform  string   `json:"platform"`
	Rows      []string `json:"rows"`
	Replaces  []string `json:"replaces"`
	Services  []string `json:"services"`
	Active    bool     `json:"active"`
	Effective bool     `json:"effective"`
	Started   bool     `json:"started"`
	Linked    bool     `json:"linked"`

	tree string
}

// candidate is a plugin on its way.
type candidate struct {
	installed
	source  Source
	place   place
	tree    Tree
	dir     string // where it is now
	started bool
}

// Add installs plugins into a profile, all or none (T-1 to T-12). compose lays
// the profile together with what Plugged would give afterwards; it is asked
// before anything changes.
func (h *Host) Add(ctx context.Context, name string, o AddOptions, compose func(profile.Plugged) *profile.Composition) (AddResult, error) {
	sources, err := h.checkAdd(o, compose(profile.Plugged{}))
	if err != nil {
		return AddResult{}, err
	}
	if !o.DryRun {
		if err := h.prepare(); err != nil {
			return AddResult{}, err
		}
		h.at("T-1")
		lock, err := holdProfile(ctx, h.Places, name)
		if err != nil {
			return AddResult{}, err
		}
		defer lock.release()
	}
	h.at("T-2")
	l, before, err := readLock(h.Places, name)
	if err != nil {
		return AddResult{}, err
	}
	h.at("T-3")
	s, err := h.stage(ctx, o.DryRun)
	if err != nil {
		return AddResult{}, err
	}
	defer s.remove()
	o.registry = registryIn(compose(profile.Plugged{}))
	var all []*candidate
	for i, src := range sources {
		c, err := h.take(ctx, src, filepath.Join(s.dir, string(rune('a'+i))), o)
		if err != nil {
			return AddResult{}, err
		}
		all = append(all, c)
	}
	t := transaction{host: h, options: o, lock: l, before: before, all: all, compose: compose, startDir: s.dir}
	return t.run(ctx)
}

// checkAdd checks what can be checked before any file is looked at.
func (h *Host) checkAdd(o AddOptions, c *profile.Composition) ([]Source, error) {
	if len(o.Sources) > 20 {
		return nil, fault.New(fault.Usage, "add", "", "more than 20 sources at once are not accepted")
	}
	if len(o.Sources) > 1 && (o.As != "" || o.Integrity != "") {
		return nil, fault.New(fault.Usage, "add", "", "--as and --integrity go with one source only")
	}
	if o.As != "" && (!ValidID(o.As) || isBuiltIn(o.As)) {
		return nil, fault.New(fault.Usage, "add", "", "--as must be 1 to 32 of a-z 0-9 - and no built-in provider")
	}
	if o.Integrity != "" && !isIntegrity(o.Integrity) {
		return nil, fault.New(fault.Usage, "add", "", "--integrity must be sha512- and the digest in base64")
	}
	for _, p := range c.Problems {
		if p.Code == fault.ProfileNotFound {
			return nil, c.Err()
		}
	}
	if !profile.ValidName(c.Name) {
		return nil, c.Err()
	}
	var sources []Source
	for _, text := range o.Sources {
		s, err := ParseSource(text, h.Dir)
		if err == nil {
			err = s.allowed(allowedSources(c))
		}
		if err != nil {
			return nil, err
		}
		sources = append(sources, s)
	}
	return sources, nil
}

// allowedSources gives plugins.sources of the profile, nil = everything.
func allowedSources(c *profile.Composition) []string {
	block, _ := c.Tree()["plugins"].(map[string]any)
	list, ok := block["sources"].([]any)
	if !ok {
		return nil
	}
	out := []string{}
	for _, v := range list {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// registryIn gives plugins.registry of the profile, "" = none.
func registryIn(c *profile.Composition) string {
	block, _ := c.Tree()["plugins"].(map[string]any)
	registry, _ := block["registry"].(string)
	return registry
}

// take fetches one source, checks it, unpacks it and reads its manifest (T-3 to
// T-6).
func (h *Host) take(ctx context.Context, src Source, dir string, o AddOptions) (*candidate, error) {
	c := &candidate{source: src, dir: dir}
	c.entry = Entry{Source: src.Text, Active: !o.Inactive, AddedAt: time.Now().UTC().Truncate(time.Second)}
	if err := h.fetch(ctx, c, o); err != nil {
		return nil, err
	}
	h.at("T-6")
	root, err := os.OpenRoot(c.dir)
	if err != nil {
		return nil, ioFault(err, "open", c.dir)
	}
	defer root.Close()
	m, err := readManifest(root)
	if err != nil {
		return nil, err
	}
	c.entry.Manifest = EntryManifest{ID: m.ID, Services: words(m.Services()), Protocol: 1}
	c.entry.ID, c.entry.Version, c.entry.Origin = m.ID, m.Version, src.Kind
	if o.As != "" {
		c.entry.ID = o.As
	}
	c.manifest = m.as(c.entry.ID)
	c.entry.Tree, c.entry.Files, c.entry.Bytes = c.tree.Digest, len(c.tree.Files), c.tree.Bytes
	if c.entry.Integrity != "" {
		c.entry.Platforms = map[string]Packed{}
		for _, p := range m.Platforms() {
			c.entry.Platforms[p] = Packed{c.entry.Resolved, c.entry.Integrity}
		}
		for p, packed := range c.place.platforms {
			if packed.Resolved != c.entry.Resolved {
				c.entry.Platforms[p] = packed
			}
		}
	}
	if err := c.checkPackage(root); err != nil {
		return nil, err
	}
	return c, h.fits(m)
}

// fits holds requires against this afield, and the platforms against this one.
func (h *Host) fits(m *Manifest) error {
	if isVersion(h.Version) && m.Afield.String() != "" && !m.Afield.Holds(h.Version) {
		return fault.New(fault.PluginVersionUnsupported, "add", m.ID, "the plugin %s needs afield %s and this is %s", m.ID, m.Afield, h.Version)
	}
	for _, o := range m.Providers {
		if _, ok := o.On(h.Platform); !ok {
			return fault.New(fault.PluginPlatformUnsupported, "add", m.ID, "the plugin %s does not run on %s, only on %s",
				m.ID, h.Platform, strings.Join(sortedKeys(o.Run), ", "))
		}
	}
	return nil
}
