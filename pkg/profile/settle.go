package profile

import (
	"path"
	"slices"
	"strconv"

	"github.com/afield-dev/afield/pkg/backend"
)

// finish applies what holds for the whole composition: one row per service, the
// working directory, configs against their schemas, and the blocks' defaults.
func (c *Composition) finish(ps *problems) {
	l := c.layers
	l.settle()
	for _, cwd := range l.cwd {
		for _, r := range l.chosenRows() {
			l.setCwd(r, cwd)
		}
	}
	c.configs = map[*row]*value{}
	for _, r := range l.rows {
		c.finishConfig(r, ps)
	}
	l.restrictExternal()
	c.checkSplit(ps)
	c.root = checker{ps}.withDefaults(l.blockSchema(), l.root, nil, Origin{}, "")
	checkBlocks(c.root, ps)
}

// chosenRows gives the rows that serve something, each once.
func (c *composer) chosenRows() []*row {
	var out []*row
	for _, s := range []backend.Service{backend.ServiceFS, backend.ServiceExec} {
		if r := c.chosen[s]; r != nil && !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	return out
}

// setCwd lays a working directory over that of a row, unless a higher or later
// place set it.
func (c *composer) setCwd(r *row, cwd *value) {
	if written := r.config.get("cwd"); written != nil && outranks(written.origin, cwd.origin) {
		return
	}
	if base := c.baseCwd(r); base != "" && !path.IsAbs(cwd.text) {
		joined := *cwd
		joined.text = path.Join(base, cwd.text)
		cwd = &joined
	}
	c.setConfig(r, nest([]string{"cwd"}, cwd, cwd.origin))
}

// baseCwd is the directory that a relative one is joined to: the one of lower
// places, else the provider's default; "" where only the world knows it.
func (c *composer) baseCwd(r *row) string {
	if written := r.config.get("cwd"); written != nil && path.IsAbs(written.text) {
		return written.text
	}
	if p := c.provider(r.name.text); p != nil {
		if f, ok := p.Config.Field("cwd"); ok {
			def, _ := f.Default.(string)
			return def
		}
	}
	return ""
}

// outranks reports whether a value of origin a stands against one of b.
func outranks(a, b Origin) bool {
	if a.Layer != b.Layer || a.Layer != LayerFlag {
		return a.Layer >= b.Layer
	}
	first, _ := strconv.Atoi(a.Source)
	later, _ := strconv.Atoi(b.Source)
	return first > later
}

// finishConfig checks the config of a row against its provider's schema, also
// of one that is off; defaults and required keys are for enabled ones.
func (c *Composition) finishConfig(r *row, ps *problems) {
	provider := c.layers.provider(r.name.text)
	if provider == nil || r.config != nil && r.config.kind != kindMap && r.config.kind != kindNull {
		return
	}
	path := []string{r.id, "config"}
	written := r.config
	if written.isNull() {
		written = nil
	}
	before := len(ps.list)
	if written != nil {
		checker{ps}.checkMap(provider.Config, written, path)
	}
	if !r.enabled() {
		return
	}
	full := checker{ps}.withDefaults(provider.Config, written, path, r.name.origin, "provider "+provider.Name)
	c.configs[r] = full
	if provider.Check == nil || len(ps.list) > before {
		return
	}
	if key, problem := provider.Check(checkedConfig(provider, full)); problem != "" {
		at := r.name.origin
		if v := full.get(key); v != nil && v.origin.Layer != LayerDefault {
			at = v.origin
		}
		ps.invalid(at, joinPath(append(path, key)), "%s: %s", joinPath(append(path, key)), problem)
	}
}

// checkedConfig gives the config as Provider.Check sees it.
func checkedConfig(provider *backend.Provider, full *value) map[string]any {
	config := plainConfig(provider, full)
	for _, f := range provider.Config {
		if v := full.get(f.Key); f.Secret && !v.isNull() && v.origin.Layer != LayerDefault {
			config[f.Key] = true
		}
	}
	return config
}

// plainConfig gives the typed values of a config without its secrets.
func plainConfig(provider *backend.Provider, full *value) map[string]any {
	config := map[string]any{}
	for _, f := range provider.Config {
		if v := full.get(f.Key); !f.Secret && !v.isNull() {
			config[f.Key] = typed(f, v)
		}
	}
	return config
}

// checkSplit holds rule R-5: one world, or two on purpose with a directory in
// each.
func (c *Composition) checkSplit(ps *problems) {
	files, procs := c.layers.chosen[backend.ServiceFS], c.layers.chosen[backend.ServiceExec]
	if files == nil || procs == nil || files == procs || c.sameWorld(files, procs) {
		return
	}
	if !c.layers.root.get("splitWorld").isTrue() {
		ps.invalid(procs.name.origin, "", "files come from row %s (%s) and processes from row %s (%s): two worlds",
			files.id, files.name.origin.place(), procs.id, procs.name.origin.place()).
			hint("if that is meant, write splitWorld: true and a cwd for both")
		return
	}
	for _, r := range []*row{files, procs} {
		if !c.writtenCwd(r) {
			ps.invalid(r.name.origin, r.id+".config.cwd", "a split world needs a cwd in both rows, and row %s has none", r.id)
		}
	}
}

func (c *Composition) writtenCwd(r *row) bool {
	v := r.config.get("cwd")
	return !v.isNull() && v.origin.Layer != LayerDefault
}

// sameWorld reports whether two rows declare one world: the same provider and
// the same config but for the directory.
func (c *Composition) sameWorld(a, b *row) bool {
	return a.name.text == b.name.text && c.configs[a] != nil && c.configs[b] != nil &&
		equal(withoutCwd(c.configs[a]), withoutCwd(c.configs[b]))
}

func withoutCwd(v *value) *value {
	out := *v
	out.entries = slices.DeleteFunc(slices.Clone(v.entries), func(e entry) bool { return e.key == "cwd" || e.value.isNull() })
	return &out
}

// blockSchema is that of the command layer's blocks. A fence stands only where
// somebody wrote one.
func (c *composer) blockSchema() backend.Schema {
	return slices.DeleteFunc(slices.Clone(c.schema), func(f backend.Field) bool {
		switch f.Key {
		case "version", "profile", "backend", "config", "rows":
			return true
		case "fence":
			return c.root.get("fence").isNull()
		}
		return false
	})
}

// checkBlocks holds the rules over several keys of remoteexec.md TS-4.
func checkBlocks(root *value, ps *problems) {
	term := root.get("term")
	atMost := func(low, high, format string) {
		a, b := term.get(low), term.get(high)
		if a == nil || b == nil || a.broken || b.broken || a.integer <= b.integer {
			return
		}
		at := a.origin
		if at.Layer == LayerDefault {
			at = b.origin
		}
		ps.invalid(at, "term."+low, format, "term."+low, "term."+high)
	}
	atMost("maxReadBytes", "scrollbackMaxBytes", "%s must not exceed %s")
	atMost("pollIntervalMs", "handoffGraceMs", "%s must not exceed %s")
}
