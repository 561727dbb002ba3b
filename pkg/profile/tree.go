package profile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/afield-dev/afield/pkg/backend"
)

// tree gives the composition as one value of the profile format's long form,
// with every default, and with what was refused masked.
func (c *Composition) tree() *value {
	out := &value{kind: kindMap}
	out.put(entry{"version", Origin{}, newValue(1, Origin{})})
	for _, key := range []string{"description", "splitWorld", "keep"} {
		c.putBlock(out, key)
	}
	rows := &value{kind: kindList}
	for _, r := range c.layers.rows {
		rows.items = append(rows.items, c.rowTree(r))
	}
	out.put(entry{"rows", Origin{}, rows})
	for _, key := range []string{"fs", "exec", "term", "mount", "fence", "env", "plugins"} {
		c.putBlock(out, key)
	}
	return out
}

func (c *Composition) putBlock(out *value, key string) {
	if v := c.root.get(key); v != nil {
		f, _ := c.layers.schema.Field(key)
		out.put(entry{key, v.origin, maskValue(v, f.Fields, true)})
	}
}

func (c *Composition) rowTree(r *row) *value {
	out := &value{kind: kindMap, origin: r.at}
	out.put(entry{"id", r.at, newValue(r.id, r.at)})
	out.put(entry{"name", r.name.origin, maskValue(r.name, nil, true)})
	out.put(entry{"provides", Origin{}, c.providesTree(r)})
	switch {
	case r.off != "":
		off := newValue(true, r.offAt)
		off.note = r.off
		off.over = r.disabled.history()
		out.put(entry{"disabled", r.offAt, off})
	case r.disabled != nil && !r.disabled.isNull():
		out.put(entry{"disabled", r.disabled.origin, maskValue(r.disabled, nil, true)})
	}
	config := c.configs[r]
	if config == nil {
		config = r.config
	}
	if config != nil && !config.isNull() {
		out.put(entry{"config", config.origin, c.maskConfig(c.layers.provider(r.name.text), config)})
	}
	return out
}

func (c *Composition) providesTree(r *row) *value {
	out := &value{kind: kindList}
	if p := usable(r.provides); p != nil {
		out.origin, out.over = p.origin, p.over
	}
	services := c.layers.services(r)
	for _, s := range []backend.Service{backend.ServiceFS, backend.ServiceExec} {
		if slices.Contains(services, s) {
			out.items = append(out.items, newValue(string(s), out.origin))
		}
	}
	return out
}

// maskConfig shows references as they are written and hides whatever else
// stands in a secret field, under a key that nobody knows, or was refused.
func (c *Composition) maskConfig(p *backend.Provider, config *value) *value {
	if config.broken || config.kind != kindMap {
		return hidden(config)
	}
	out := *config
	out.entries = nil
	for _, e := range config.entries {
		switch {
		case e.value.isNull():
		case isSecret(p, e.key) && !unknownPlain(p, e.value):
			e.value = maskSecret(e.value)
		case p == nil:
			e.value = c.maskUnknown(e.value)
		default:
			f, known := p.Config.Field(e.key)
			e.value = maskValue(e.value, f.Fields, known)
		}
		out.entries = append(out.entries, e)
	}
	return &out
}

// maskUnknown masks a value of a provider that nobody knows.
func (c *Composition) maskUnknown(v *value) *value {
	if v.kind == kindMap && !isReferenceMap(v) {
		return c.maskConfig(nil, v)
	}
	return maskValue(v, nil, true)
}

func maskSecret(v *value) *value {
	out := hidden(v)
	if _, ok := reference(v); ok {
		*out = *v
		out.over = nil
	}
	out.secret = true
	for _, o := range v.over {
		out.over = append(out.over, maskSecret(&value{kind: o.kind, text: o.text, entries: o.entries, items: o.items, origin: o.origin}))
	}
	return out
}

// maskValue hides what was refused and what stands under keys that are in no
// schema.
func maskValue(v *value, s backend.Schema, known bool) *value {
	switch {
	case v.isNull() && !v.broken:
		return v
	case v.broken || !known:
		return hidden(v)
	}
	out := *v
	out.over = nil
	for _, o := range v.over {
		out.over = append(out.over, maskValue(o, s, true))
	}
	if v.kind == kindList {
		out.items = nil
		for _, item := range v.items {
			out.items = append(out.items, maskValue(item, s, true))
		}
	}
	if v.kind != kindMap {
		return &out
	}
	out.entries = nil
	for _, e := range v.entries {
		f, ok := s.Field(e.key)
		e.value = maskValue(e.value, f.Fields, ok || s == nil)
		out.entries = append(out.entries, e)
	}
	return &out
}

func hidden(v *value) *value {
	return &value{kind: kindText, text: masked, origin: v.origin, broken: true}
}

// Digest gives the SHA-256 of the canonical JSON of the tree in hex: what the
// profile means, whichever layers said it. Secrets take part as references.
func (c *Composition) Digest() string {
	sum := sha256.Sum256(c.canonical())
	return hex.EncodeToString(sum[:])
}

// canonical is JSON with sorted keys, rows in order of their ids, and without
// what has no value.
func (c *Composition) canonical() []byte {
	t := c.tree()
	rows := t.get("rows")
	slices.SortFunc(rows.items, func(a, b *value) int { return cmpText(a.get("id").text, b.get("id").text) })
	for _, r := range rows.items {
		r.entries = slices.DeleteFunc(r.entries, func(e entry) bool { return e.key == "disabled" && !e.value.isTrue() })
	}
	data, err := json.Marshal(withoutNulls(t.any()))
	if err != nil {
		return nil
	}
	return data
}

func cmpText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func withoutNulls(data any) any {
	switch d := data.(type) {
	case map[string]any:
		for key, item := range d {
			item = withoutNulls(item)
			if m, isMap := item.(map[string]any); item == nil || isMap && len(m) == 0 {
				delete(d, key)
			}
		}
	case []any:
		for _, item := range d {
			withoutNulls(item)
		}
	}
	return data
}

// Tree gives the composition as plain data for JSON: what was refused is
// masked, references stand as they are written.
func (c *Composition) Tree() map[string]any {
	return withoutNulls(c.tree().any()).(map[string]any)
}
