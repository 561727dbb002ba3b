package plugin

import (
	"crypto/x509"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/profile"
)

// Host is the machine and user for whom plugins are installed. Its methods may
// run at the same time, also in several processes: what changes something holds
// a lock.
type Host struct {
	Places  profile.Places
	Environ []string
	// Dir is the absolute directory in which afield was started.
	Dir string
	// Version is that of afield; one that is no semantic version works with
	// every plugin.
	Version string
	// Platform is OS/ARCH.
	Platform string
	// Providers are the built-in ones.
	Providers backend.Registry
	// Log takes diagnostics; never nil.
	Log *slog.Logger
	// Offline uses the cache and what is on this machine only.
	Offline bool
	// Roots are the certificates that downloads trust; nil = the system's.
	Roots *x509.CertPool
	// ProjectNPM is the .npmrc of a trusted project, "" = none.
	ProjectNPM string
	// Progress begins to show a download; nil shows none.
	Progress func(what string) Progress
	// step is called before each step of a transaction. Tests end the process
	// there.
	step func(name string)
}

func (h *Host) at(step string) {
	if h.step != nil {
		h.step(step)
	}
}

// getenv gives a variable of the caller's environment.
func (h *Host) getenv(name string) string {
	for _, e := range slices.Backward(h.Environ) {
		if value, ok := strings.CutPrefix(e, name+"="); ok {
			return value
		}
	}
	return ""
}

// manifestOf reads the manifest of an installed plugin, under the id by which
// it is installed.
func (h *Host) manifestOf(e Entry) (Manifest, error) {
	root, err := h.openTree(e)
	if err != nil {
		return Manifest{}, err
	}
	defer root.Close()
	return manifestAs(root, e.ID)
}

func manifestAs(root *os.Root, id string) (Manifest, error) {
	m, err := readManifest(root)
	if err != nil {
		return Manifest{}, err
	}
	return m.as(id), nil
}

// Plugged gives what the plugins of a profile bring to its composition: the
// patches of the active ones in their order, and the providers of all of them
// . A broken plugin is an error only while it is active.
func (h *Host) Plugged(name string) (profile.Plugged, error) {
	l, _, err := readLock(h.Places, name)
	if err != nil {
		return profile.Plugged{}, err
	}
	var all []installed
	for _, e := range l.Plugins {
		m, err := h.manifestOf(e)
		if err != nil && e.Active {
			return profile.Plugged{}, err
		}
		if err == nil {
			all = append(all, installed{e, m})
		}
	}
	return h.plugged(all), nil
}

// installed is a plugin with its manifest.
type installed struct {
	entry    Entry
	manifest Manifest
}

// title names the plugin as an origin of values.
func (x installed) title() string {
	title := x.entry.ID + "@" + x.manifest.Version
	if x.entry.Link != "" {
		title += " (linked, unverified)"
	}
	return title
}

func (h *Host) plugged(all []installed) profile.Plugged {
	var p profile.Plugged
	count := map[string]int{}
	for _, x := range all {
		for _, o := range x.manifest.Providers {
			count[o.Name]++
		}
	}
	for _, x := range all {
		if x.entry.Active {
			p.Patches = append(p.Patches, profile.Patch{Plugin: x.title(), Content: x.manifest.Patch()})
		}
		for _, o := range x.manifest.Providers {
			provider := h.provider(x, o)
			p.Providers = append(p.Providers, provider)
			if count[o.Name] == 1 {
				provider.Name = o.Name
				p.Providers = append(p.Providers, provider)
			}
		}
	}
	return p
}
