package profile

import (
	"slices"
	"strings"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/fault"
)

// defaultRow is the id of the row of layer 0 and of the short form.
const defaultRow = "world"

// row is one mounted provider while the layers are laid over each other.
type row struct {
	id       string
	at       Origin // of the id
	name     *value
	provides *value
	disabled *value
	config   *value
	// off says why rules switched the row off; offAt is the line
	// that did.
	off   string
	offAt Origin
}

// enabled reports whether the row takes part.
func (r *row) enabled() bool { return r.off == "" && !r.disabled.isTrue() }

// isDefault reports whether the row's provider is that of layer 0 and nobody's
// choice.
func (r *row) isDefault() bool { return r.name.origin.Layer == LayerDefault }

func rowSchema() backend.Schema {
	return backend.Schema{
		{Key: "id", Kind: backend.KindText, Required: true, Check: isRowID},
		{Key: "name", Kind: backend.KindText, Check: isProviderName},
		{Key: "provides", Kind: backend.KindList, Items: &backend.Field{Key: "provides", Kind: backend.KindText, Enum: []string{"fs", "exec"}}},
		{Key: "disabled", Kind: backend.KindBool},
		{Key: "replace", Kind: backend.KindBool},
		{Key: "config", Kind: backend.KindMap, Items: anything()},
	}
}

func isRowID(v any) string {
	if !validRowID(v.(string)) {
		return "must be 1 to 32 of a-z 0-9 - and begin with a letter or digit"
	}
	return ""
}

func validRowID(id string) bool {
	return id != "" && len(id) <= 32 && id[0] != '-' && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

func isProviderName(v any) string {
	name := v.(string)
	if name == "" || len(name) > 129 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789._-/") != "" {
		return "must be the name of a provider"
	}
	return ""
}

// find gives the row of an id.
func (c *composer) find(id string) *row {
	for _, r := range c.rows {
		if r.id == id {
			return r
		}
	}
	return nil
}

func (c *composer) ids() string {
	ids := make([]string, len(c.rows))
	for i, r := range c.rows {
		ids[i] = r.id
	}
	return strings.Join(ids, ", ")
}

// applyBackend is the short form: every row below goes off, and the row world
// is this provider anew.
func (c *composer) applyBackend(name, config *value) {
	for _, r := range c.rows {
		if r.enabled() {
			r.off, r.offAt = "backend: "+name.text, name.origin
		}
	}
	fresh := &row{id: defaultRow, at: name.origin, name: name}
	c.setConfig(fresh, config)
	if old := c.find(defaultRow); old != nil {
		fresh.name = laidOver(name, old.name)
		*old = *fresh
		return
	}
	c.rows = append(c.rows, fresh)
}

// laidOver gives high with low in its history.
func laidOver(high, low *value) *value {
	laid := *high
	laid.over = low.history()
	return &laid
}

// applyRows applies the rows of one document in their order.
func (c *composer) applyRows(list *value) {
	seen := map[string]Origin{}
	for i, v := range list.items {
		path := []string{"rows", quoteIndex(i)}
		id := c.checkRow(v, path)
		if id == "" {
			continue
		}
		if first, twice := seen[id]; twice {
			c.problems.invalid(v.get("id").origin, id, "the row %s stands here and in line %d", id, first.Line)
			continue
		}
		seen[id] = v.get("id").origin
		c.applyRow(id, v)
	}
}

func quoteIndex(i int) string { return newValue(i, Origin{}).text }

// checkRow checks the keys of a row and gives its id, "" when there is none to
// work with.
func (c *composer) checkRow(v *value, path []string) string {
	if v.broken || v.kind != kindMap {
		if !v.broken {
			c.problems.invalid(v.origin, joinPath(path), "a row must be a map and is %s", article(v.kind))
		}
		return ""
	}
	id := v.get("id")
	if id.isNull() {
		c.problems.invalid(v.origin, joinPath(path), "a row needs an id").hint("rows are %s", c.ids())
		return ""
	}
	checker{c.problems}.check(backend.Field{Key: "id", Check: isRowID}, id, append(path, "id"))
	if id.broken {
		return ""
	}
	rest := *v
	rest.entries = slices.DeleteFunc(slices.Clone(v.entries), func(e entry) bool { return e.key == "id" })
	checker{c.problems}.checkMap(rowSchema(), &rest, []string{id.text})
	return id.text
}

// applyRow lays a row of a document over the row of that id.
func (c *composer) applyRow(id string, v *value) {
	name, old := usable(v.get("name")), c.find(id)
	at := v.get("id").origin
	switch {
	case old == nil && name == nil:
		if broken := v.get("name"); broken == nil || !broken.broken {
			c.problems.invalid(at, c.shownID(at, id), "no row has the id %s below, so it needs a name", c.shownOr(at, id)).
				hint("rows are %s", c.ids())
		}
		return
	case old == nil:
		old = &row{id: id, at: at, name: name}
		c.rows = append(c.rows, old)
	case usable(v.get("replace")).isTrue() && name == nil:
		c.problems.invalid(at, id, "the row %s replaces one below and needs a name", id)
		return
	case usable(v.get("replace")).isTrue():
		*old = row{id: id, at: at, name: laidOver(name, old.name)}
	case name != nil && name.text != old.name.text && old.isDefault():
		*old = row{id: id, at: at, name: laidOver(name, old.name)}
	case name != nil && name.text != old.name.text:
		c.problems.invalid(name.origin, id+".name", "the row %s is %s at %s and has another name here", id, old.name.text, old.name.origin.place()).
			hint("write replace: true to forget the row below, or use another id")
		return
	case name != nil:
		old.name = laidOver(name, old.name)
	}
	c.override(old, v)
}

// shownID gives an id for a problem: text from an argument or a variable may be
// a slip with a secret in it and is not shown.
func (c *composer) shownID(at Origin, id string) string {
	if at.Layer == LayerFlag || at.Layer == LayerEnv {
		return ""
	}
	return id
}

func (c *composer) shownOr(at Origin, id string) string {
	if c.shownID(at, id) == "" {
		return "of this path"
	}
	return id
}

// usable gives v unless it is broken or asks for the default.
func usable(v *value) *value {
	if v.isNull() || v.broken {
		return nil
	}
	return v
}

func (c *composer) override(r *row, v *value) {
	m := merger{problems: c.problems}
	if p := v.get("provides"); p != nil && !p.broken {
		r.provides = m.merge(r.provides, p, []string{r.id, "provides"})
	}
	if d := v.get("disabled"); d != nil && !d.broken {
		r.disabled = m.merge(r.disabled, d, []string{r.id, "disabled"})
		if d.kind == kindBool && !d.isTrue() {
			r.off = ""
		}
	}
	if config := v.get("config"); config != nil && !config.broken {
		c.setConfig(r, config)
	}
}

// setConfig merges a config into a row and checks what stands in it: secrets
// and references are a matter of each layer by itself.
func (c *composer) setConfig(r *row, config *value) {
	if config == nil {
		return
	}
	provider := c.provider(r.name.text)
	path := []string{r.id, "config"}
	if config.kind == kindMap {
		checkConfigTexts(provider, config, path, c.problems)
	}
	m := merger{problems: c.problems, atomic: func(at []string) bool {
		return len(at) == 3 && isSecret(provider, at[2])
	}}
	r.config = m.merge(r.config, config, path)
}

// provider gives what is known of a provider by name, or nil.
func (c *composer) provider(name string) *backend.Provider {
	if p, ok := c.providers.Provider(name); ok {
		return &p
	}
	return nil
}

// services gives what a row provides: what it says, else all that its provider
// offers, else both.
func (c *composer) services(r *row) []backend.Service {
	var out []backend.Service
	if p := usable(r.provides); p != nil {
		for _, item := range p.items {
			out = append(out, backend.Service(item.text))
		}
		return out
	}
	if p := c.provider(r.name.text); p != nil {
		return p.Services
	}
	return []backend.Service{backend.ServiceFS, backend.ServiceExec}
}

// settle switches the default row off where somebody chose another, and
// holds that fs and exec each have one row.
func (c *composer) settle() {
	c.retireDefault()
	for _, r := range c.rows {
		c.checkProvider(r)
	}
	c.chosen = map[backend.Service]*row{}
	for _, s := range []backend.Service{backend.ServiceFS, backend.ServiceExec} {
		var found []*row
		for _, r := range c.rows {
			if r.enabled() && slices.Contains(c.services(r), s) {
				found = append(found, r)
			}
		}
		switch len(found) {
		case 0:
			c.noProvider(s)
		case 1:
			c.chosen[s] = found[0]
		default:
			c.conflict(s, found)
		}
	}
}

func (c *composer) retireDefault() {
	world := c.find(defaultRow)
	if world == nil || !world.isDefault() || !world.enabled() || world.disabled != nil && world.disabled.kind == kindBool {
		return
	}
	for _, r := range c.rows {
		if r == world || !r.enabled() || r.name.origin.Layer < LayerSystem {
			continue
		}
		if slices.ContainsFunc(c.services(r), func(s backend.Service) bool { return slices.Contains(c.services(world), s) }) {
			if world.off == "" {
				world.off, world.offAt = "row "+r.id, r.name.origin
			} else {
				world.off += " and row " + r.id
			}
		}
	}
}

// checkProvider holds that the provider exists and offers what the row says.
func (c *composer) checkProvider(r *row) {
	provider := c.provider(r.name.text)
	if provider == nil {
		if !r.enabled() {
			return
		}
		p := c.problems.invalid(r.name.origin, r.id+".name", "there is no provider of the name that row %s gives", r.id)
		if near := nearest(r.name.text, c.providers.Names()); near != "" {
			p.hint("did you mean %s?", near)
		} else {
			p.hint("providers are %s; a plugin adds more", strings.Join(c.providers.Names(), ", "))
		}
		return
	}
	if list := usable(r.provides); list != nil {
		for _, item := range list.items {
			if item.kind == kindText && !slices.Contains(provider.Services, backend.Service(item.text)) {
				c.problems.invalid(item.origin, r.id+".provides", "the provider %s does not offer %s", provider.Name, item.text)
			}
		}
	}
}

func (c *composer) noProvider(s backend.Service) {
	at := Origin{}
	var offs []string
	for _, r := range c.rows {
		if r.enabled() {
			continue
		}
		why := r.off
		if r.disabled.isTrue() {
			why, at = "disabled at "+r.disabled.origin.place(), r.disabled.origin
		} else {
			at = r.offAt
		}
		offs = append(offs, r.id+" ("+why+")")
	}
	p := c.problems.add(fault.ProfileNoProvider, at, "", "no enabled row provides %s", s)
	if len(offs) > 0 {
		p.hint("rows that are off: %s", strings.Join(offs, ", "))
	}
}

func (c *composer) conflict(s backend.Service, found []*row) {
	a, b := found[0], found[len(found)-1]
	p := c.problems.add(fault.ProfileConflict, b.name.origin, "", "%s is provided by row %s (%s) and by row %s (%s)",
		s, a.id, a.name.origin.place(), b.id, b.name.origin.place())
	p.hint("settle it with a row {id: %s, disabled: true}, or with provides", a.id)
}
