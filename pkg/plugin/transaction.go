package plugin

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/profile"
)

// transaction is an installation from T-7 on.
type transaction struct {
	host     *Host
	options  AddOptions
	lock     *Lock
	before   []byte
	all      []*candidate
	compose  func(profile.Plugged) *profile.Composition
	startDir string
}

func (t *transaction) run(ctx context.Context) (AddResult, error) {
	h := t.host
	h.at("T-7")
	for _, c := range t.all {
		if err := t.enter(c); err != nil {
			return AddResult{}, err
		}
	}
	after, err := t.composed()
	if err != nil {
		return AddResult{}, err
	}
	if err := h.checkSeen(ctx, t.digests(), t.options.AcceptChanged, false); err != nil {
		return AddResult{}, err
	}
	if !t.options.DryRun {
		store, err := hold(ctx, filepath.Join(h.Places.Data, ".lock"), true)
		if err != nil {
			return AddResult{}, err
		}
		defer store.release()
		h.at("T-8")
		if err := t.publish(); err != nil {
			return AddResult{}, err
		}
	}
	h.at("T-9")
	for _, c := range t.all {
		if err := t.start(ctx, c); err != nil {
			return AddResult{}, err
		}
	}
	if !t.options.DryRun {
		if err := h.checkSeen(ctx, t.digests(), t.options.AcceptChanged, true); err != nil {
			return AddResult{}, err
		}
		h.at("T-10")
		if ctx.Err() != nil {
			return AddResult{}, aborted(ctx, "add")
		}
		if err := commit(h.Places, t.lock, t.before); err != nil {
			return AddResult{}, err
		}
	}
	h.at("T-11")
	return t.result(after), nil
}

// enter puts a candidate into the lock: anew, or in the place of the one with
// its id.
func (t *transaction) enter(c *candidate) error {
	for _, other := range t.all {
		if other != c && other.entry.ID == c.entry.ID {
			return conflict(c, "two of the sources have this id").WithHint("add one of them with --as ID")
		}
	}
	old := t.lock.find(c.entry.ID)
	if old == nil {
		t.lock.Plugins = append(t.lock.Plugins, c.entry)
		return nil
	}
	if sourceName(old.Source) != c.source.Name && !t.options.Replace {
		return conflict(c, "one from "+quotePath(old.Source)+" is installed").WithHint("--replace takes its place, --as ID installs this one beside it")
	}
	if err := t.agree(*old, c); err != nil {
		return err
	}
	if t.options.updates {
		c.entry.Active = old.Active
	}
	if old.Link == "" && old.Tree != c.entry.Tree {
		c.entry.Previous = old.previous()
	} else {
		c.entry.Previous = old.Previous
	}
	*old = c.entry
	return nil
}

// sourceName gives the part of a source that stays when its version changes.
func sourceName(text string) string {
	if s, err := ParseSource(text, "/"); err == nil {
		return s.Name
	}
	return text
}

func conflict(c *candidate, reason string) *fault.Error {
	return fault.New(fault.PluginConflict, "add", c.entry.ID, "the plugin %s cannot be added: %s", c.entry.ID, reason)
}

// composed lays the profile together as it would be, and refuses what would not
// work (T-7).
func (t *transaction) composed() (*profile.Composition, error) {
	c, err := t.composition()
	if err != nil {
		return nil, err
	}
	if err := c.Err(); err != nil {
		return nil, wouldBreak(c, err)
	}
	return c, nil
}

// composition lays the profile together with the plugins of the lock.
func (t *transaction) composition() (*profile.Composition, error) {
	var all []installed
	owner := map[string]string{}
	for _, e := range t.lock.Plugins {
		x := installed{entry: e}
		if c := t.candidate(e.ID); c != nil {
			x.manifest = c.manifest
		} else {
			m, err := t.host.manifestOf(e)
			if err != nil && e.Active {
				return nil, err
			}
			x.manifest = m
		}
		for _, id := range x.manifest.rowIDs() {
			if other := owner[id]; other != "" && other != e.ID {
				return nil, fault.New(fault.PluginConflict, "add", id, "the plugins %s and %s both bring a row %s", other, e.ID, id)
			}
			owner[id] = e.ID
		}
		all = append(all, x)
	}
	return t.compose(t.host.plugged(all)), nil
}

// wouldBreak says why the profile would not work with the plugin.
func wouldBreak(c *profile.Composition, err error) error {
	for _, p := range c.Problems {
		if p.Code == fault.ProfileConflict || p.Code == fault.ProfileNoProvider {
			return fault.Wrap(err, fault.PluginConflict, "add", "", "with this plugin the profile would not work: %s", p.Message).
				WithHint("--no-activate installs it without its patch; afield plugin disable ID takes another one out; a backend: line in the profile decides")
		}
	}
	return fault.Wrap(err, fault.CodeOf(err), "add", "", "with this plugin the profile would not be valid: %s", err).
		WithHint("--no-activate installs it without its patch, so that the profile can be completed first")
}

// digests gives what must never change under one source and version.
func (t *transaction) digests() map[string]string {
	out := map[string]string{}
	for _, c := range t.all {
		digest := c.entry.Integrity
		if digest == "" {
			digest = c.entry.Tree
		}
		if c.entry.Link == "" {
			out[c.seenAs()+" "+c.entry.Version] = digest
		}
	}
	return out
}

// seenAs names the source among those that were seen: by the archive where one
// source has several.
func (c *candidate) seenAs() string {
	if c.place.key != "" {
		return c.place.key
	}
	return c.source.Name
}

func (t *transaction) publish() error {
	for _, c := range t.all {
		if c.entry.Link != "" {
			continue
		}
		if err := t.host.publish(c.dir, c.tree); err != nil {
			return err
		}
		c.dir = t.host.treeDir(c.tree.Digest)
	}
	return nil
}

// start starts each provider, hears what it says of itself, and ends it (T-9).
func (t *transaction) start(ctx context.Context, c *candidate) error {
	if t.options.NoStart {
		return nil
	}
	for _, o := range c.manifest.Providers {
		p, err := t.host.program(ctx, c.dir, c.installed, o)
		if err != nil {
			return err
		}
		p.Dir = filepath.Join(t.startDir, "start")
		req := backend.OpenRequest{Environ: t.host.Environ, Log: t.host.Log}
		if _, err := p.Hello(ctx, req); err != nil {
			return err
		}
	}
	c.started = true
	return nil
}

func (t *transaction) result(after *profile.Composition) AddResult {
	r := AddResult{Added: []Added{}, Profile: t.lock.Profile, Digest: after.Digest(), Warnings: []string{}}
	for _, c := range t.all {
		a := Added{
			ID: c.entry.ID, Version: c.entry.Version, Source: c.entry.Source, Platform: t.host.Platform,
			Rows: orEmpty(c.manifest.rowIDs()), Replaces: orEmpty(c.manifest.replaced()), Services: c.entry.Manifest.Services,
			Active: c.entry.Active, Started: c.started, Linked: c.entry.Link != "", Effective: effective(after, c.entry),
			tree: c.entry.Tree,
		}
		if c.entry.Resolved != "" {
			a.Resolved, a.Integrity = &c.entry.Resolved, &c.entry.Integrity
		}
		if a.Active && len(a.Rows) > 0 && !a.Effective {
			r.Warnings = append(r.Warnings, "a higher line of the profile keeps the rows of "+c.entry.ID+" off; see afield profile show")
		}
		r.Added = append(r.Added, a)
	}
	return r
}

// effective reports whether a provider of the plugin serves something.
func effective(c *profile.Composition, e Entry) bool {
	for _, s := range []backend.Service{backend.ServiceFS, backend.ServiceExec} {
		if strings.HasPrefix(c.ProviderOf(s), e.ID+"/") {
			return true
		}
	}
	return false
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return slices.Clone(list)
}

func (t *transaction) candidate(id string) *candidate {
	for _, c := range t.all {
		if c.entry.ID == id {
			return c
		}
	}
	return nil
}
