// Package profile finds, composes and checks profiles: which provider serves
// files and processes, with which config, and the defaults of the commands. A
// composition is laid together from layers (plugins.md 15); every value
// remembers where it was written and what it took the place of.
//
// Composing and printing starts no backend, uses no network, resolves no secret
// and runs nothing. What cannot be applied is an error with its place; one run
// finds all of them. No message repeats a value that was written.
package profile

import (
	"cmp"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/fault"
)

// Request is what decides a composition: arguments, environment, directory.
type Request struct {
	// Name is --profile; Named says that it was given.
	Name  string
	Named bool
	// Files are --profile-file in argument order.
	Files []string
	// Overrides are --set and what else means a profile value, in argument
	// order.
	Overrides []Override
	// NoPlugins drops layer 1, NoProject layer 4, DefaultConfig layers 2 to 5.
	NoPlugins     bool
	NoProject     bool
	DefaultConfig bool
	// Alone drops layers 4 to 7: the profile as its own files make it.
	Alone   bool
	Environ []string
	// Dir is the absolute directory in which afield was started.
	Dir       string
	Providers backend.Registry
	// Plugins gives layer 1 of a profile and the providers that its plugins
	// bring; nil = none.
	Plugins func(profile string) (Plugged, error)
}

// Plugged is what the plugins of one profile bring.
type Plugged struct {
	Patches   []Patch
	Providers backend.Registry
}

// Patch is the layer-1 document of one plugin.
type Patch struct {
	Plugin  string // such as acme-box@1.4.0
	Content []byte
}

// Composition is the result of Compose: a tree of values with origins, and what
// is wrong with it.
type Composition struct {
	Name string
	// Why says what chose the name.
	Why      string
	Problems []Problem
	Places   Places
	// Sources are the files that were read or looked for, in layer order.
	Sources []Source
	// UnknownEnv are AFIELD_… variables that mean nothing.
	UnknownEnv []string
	// Offline is AFIELD_OFFLINE.
	Offline bool

	dir     string
	env     environ
	layers  *composer
	configs map[*row]*value // of enabled rows with a known provider, defaults filled in
	root    *value          // the blocks, defaults filled in
}

// Compose lays the layers over each other and checks the result. What is wrong
// stands in Problems; the rest of the composition can still be shown.
func Compose(req Request) *Composition {
	ps := &problems{}
	c := &Composition{dir: req.Dir, env: req.Environ, Places: NewPlaces(req.Environ), UnknownEnv: unknownVariables(req.Environ)}
	s := readSwitches(c.env, ps)
	c.Offline = s.offline
	var project *value
	if !req.NoProject && !s.noProject && !req.DefaultConfig && !req.Alone {
		project = c.readProject(ps, s.trustProject)
	}
	c.chooseName(req, project, ps)
	c.layers = newComposer(req.Providers, ps)
	if !req.NoPlugins && !s.noPlugins {
		c.applyPlugins(req, ps)
	}
	c.applyFiles(req, project, ps)
	if !req.Alone {
		c.applyOverrides(req.Overrides)
	}
	c.finish(ps)
	c.Problems = ps.sorted()
	slices.SortStableFunc(c.Sources, func(a, b Source) int { return cmp.Compare(a.Layer, b.Layer) })
	return c
}

// chooseName finds which profile is meant (plugins.md 15).
func (c *Composition) chooseName(req Request, project *value, ps *problems) {
	base := usable(project.get("profile"))
	switch {
	case req.Named:
		c.Name, c.Why = req.Name, "--profile"
	case c.env.get("AFIELD_PROFILE") != "" && !req.DefaultConfig:
		c.Name, c.Why = c.env.get("AFIELD_PROFILE"), "AFIELD_PROFILE"
	case base != nil && base.kind == kindText:
		c.Name, c.Why = base.text, base.origin.Source
	case req.DefaultConfig:
		c.Name, c.Why = DefaultName, "default"
	default:
		c.Name, c.Why = c.configuredName(ps)
	}
	if !ValidName(c.Name) {
		ps.invalid(Origin{}, "profile", "the name of the profile, given by %s, is not accepted", c.Why).hint("%s", nameRule)
	}
}

// applyPlugins applies layer 1.
func (c *Composition) applyPlugins(req Request, ps *problems) {
	if req.Plugins == nil || !ValidName(c.Name) {
		return
	}
	plugged, err := req.Plugins(c.Name)
	if err != nil {
		ps.add(fault.CodeOf(err), Origin{Layer: LayerPlugin}, "", "%s", err)
		return
	}
	c.layers.providers = append(slices.Clone(req.Providers), plugged.Providers...)
	for _, p := range plugged.Patches {
		c.layers.apply(parse(p.Content, Origin{Layer: LayerPlugin, Source: p.Plugin}, nil, ps))
	}
}

// applyFiles applies layers 2 to 6.
func (c *Composition) applyFiles(req Request, project *value, ps *problems) {
	files := req.Files
	if req.Alone {
		c.applyNamed(false, ps)
		return
	}
	if !req.DefaultConfig {
		if len(files) == 0 {
			files = profileFiles(c.env)
		}
		c.applyNamed(len(files) > 0, ps)
		c.layers.apply(project)
		c.layers.applyEnviron(c.env)
	}
	for _, path := range files {
		if !filepath.IsAbs(path) {
			path = filepath.Join(c.dir, path)
		}
		c.applyFile(LayerFile, path, ps)
	}
}

// applyNamed applies the system's and the user's file of the profile.
func (c *Composition) applyNamed(others bool, ps *problems) {
	if !ValidName(c.Name) {
		return
	}
	found := c.applyFile(LayerSystem, file(c.Places.System, c.Name), ps)
	if c.Places.Config != "" {
		found = c.applyFile(LayerUser, file(c.Places.Config, c.Name), ps) || found
	}
	if found || others || c.Name == DefaultName {
		return
	}
	names := strings.Join(c.Places.Names(), ", ")
	p := ps.add(fault.ProfileNotFound, Origin{}, "", "there is no profile %s (chosen by %s)", c.Name, c.Why)
	p.hint("profiles are %s", names)
	if near := nearest(c.Name, c.Places.Names()); near != "" {
		p.hint("did you mean %s? profiles are %s", near, names)
	}
}

// applyFile applies one file and reports whether it is there.
func (c *Composition) applyFile(layer Layer, path string, ps *problems) bool {
	content := c.readSource(layer, path, ps)
	if content != nil {
		c.layers.apply(parse(content, Origin{Layer: layer, Source: path}, nil, ps))
	}
	return c.Sources[len(c.Sources)-1].Exists
}

// applyOverrides applies layer 7.
func (c *Composition) applyOverrides(list []Override) {
	for i, o := range list {
		at := Origin{Layer: LayerFlag, Source: strconv.Itoa(i + 1)}
		if o.Cwd {
			c.layers.cwd = append(c.layers.cwd, newValue(o.Text, at))
			continue
		}
		c.layers.setOverride(o, at)
	}
}

// ProviderOf gives the name of the provider that serves s, or "".
func (c *Composition) ProviderOf(s backend.Service) string {
	if r := c.layers.chosen[s]; r != nil {
		return r.name.text
	}
	return ""
}

// Err gives the first problem as an error, or nil.
func (c *Composition) Err() error { return asError(c.Problems) }
