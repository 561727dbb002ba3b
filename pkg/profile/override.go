package profile

import (
	"strconv"
	"strings"
)

// Override is one argument that sets a profile value. Overrides come in the
// order of the arguments.
type Override struct {
	// Text is PATH=VALUE, or the directory when Cwd is set.
	Text string
	// Literal takes the value as text.
	Literal bool
	// Cwd sets the working directory of the world.
	Cwd bool
}

// setOverride applies PATH=VALUE. Text whose path is unknown is never repeated:
// it may hold a secret that slipped (plugins.md 16).
func (c *composer) setOverride(o Override, at Origin) {
	path, text, problem := splitOverride(o.Text)
	if problem != "" {
		c.problems.invalid(at, "", "%s", problem).hint("write PATH=VALUE, such as mount.ttlMs=60000")
		return
	}
	v := c.overrideValue(text, o.Literal, path, at)
	if v == nil {
		return
	}
	if doc := c.overrideDocument(path, v, at); doc != nil {
		c.apply(doc)
	}
}

// overrideValue reads the value: one YAML scalar or flow collection.
func (c *composer) overrideValue(text string, literal bool, path []string, at Origin) *value {
	if literal {
		return &value{kind: kindText, text: text, origin: at}
	}
	var ps problems
	trimmed := strings.TrimSpace(text)
	v := parse([]byte(trimmed), at, path, &ps)
	block := v != nil && (v.kind == kindMap || v.kind == kindList) && !strings.HasPrefix(trimmed, "{") && !strings.HasPrefix(trimmed, "[")
	if trimmed == "" || len(ps.list) > 0 || v == nil || block || strings.Contains(trimmed, "\n") {
		c.problems.invalid(at, "", "the value is not one YAML scalar or flow collection").
			hint("null is the default, \"\" is empty text, and --set-string takes the value literally")
		return nil
	}
	v.setOrigin(at)
	return v
}

// setOrigin gives v and all below it one origin.
func (v *value) setOrigin(at Origin) {
	v.origin = at
	for _, item := range v.items {
		item.setOrigin(at)
	}
	for i := range v.entries {
		v.entries[i].at = at
		v.entries[i].value.setOrigin(at)
	}
}

// overrideDocument makes the document that a path and a value stand for.
func (c *composer) overrideDocument(path []string, v *value, at Origin) *value {
	_, top := c.schema.Field(path[0])
	_, rowKey := rowSchema().Field(second(path))
	switch {
	case rowKey && second(path) != "id" && (c.find(path[0]) != nil || !top):
		return c.rowDocument(path[0], path[1:], v, at)
	case path[0] == "config" && len(path) > 1:
		return c.shortDocument(path, v, at)
	case top:
		return nest(path, v, at)
	}
	p := c.problems.invalid(at, "", "the path begins with neither a profile key nor a row")
	if near := nearest(path[0], c.schema.Keys()); near != "" {
		p.hint("did you mean %s? rows are %s", near, c.ids())
	} else {
		p.hint("rows are %s, as in %s.config.KEY", c.ids(), defaultRow)
	}
	return nil
}

func second(path []string) string {
	if len(path) < 2 {
		return ""
	}
	return path[1]
}

func (c *composer) rowDocument(id string, rest []string, v *value, at Origin) *value {
	if c.find(id) == nil {
		c.problems.invalid(at, "", "there is no row of the id that the path begins with").hint("rows are %s", c.ids())
		return nil
	}
	r := nest(rest, v, at)
	r.entries = append([]entry{{"id", at, newValue(id, at)}}, r.entries...)
	list := &value{kind: kindList, origin: at, items: []*value{r}}
	return nest([]string{"rows"}, list, at)
}

// shortDocument is for config.KEY, which after the short form means the row
// world.
func (c *composer) shortDocument(path []string, v *value, at Origin) *value {
	if world := c.find(defaultRow); world == nil || !world.enabled() || !c.short && len(c.rows) > 1 {
		c.problems.invalid(at, "", "config.KEY goes with backend, and here are rows").hint("rows are %s, as in ROW.config.KEY", c.ids())
		return nil
	}
	return c.rowDocument(defaultRow, path, v, at)
}

// nest puts v below the keys of a path.
func nest(path []string, v *value, at Origin) *value {
	for i := len(path) - 1; i >= 0; i-- {
		v = &value{kind: kindMap, origin: at, entries: []entry{{path[i], at, v}}}
	}
	return v
}

// splitOverride splits PATH=VALUE.
func splitOverride(text string) (path []string, value, problem string) {
	path, rest, problem := ParsePath(text, '=')
	if problem != "" {
		return nil, "", problem
	}
	value, ok := strings.CutPrefix(rest, "=")
	if !ok {
		return nil, "", "there is no = after the path"
	}
	return path, value, ""
}

// ParsePath reads names separated by dots up to the byte end; a name with
// dots stands in double quotes. It gives what is left, which begins with end or
// is empty.
func ParsePath(text string, end byte) (path []string, rest, problem string) {
	for {
		name, after, ok := cutName(text, end)
		switch {
		case !ok:
			return nil, "", "a quoted name in the path does not end"
		case name == "":
			return nil, "", "the path has an empty name"
		}
		path = append(path, name)
		if after == "" || after[0] == end {
			return path, after, ""
		}
		if after[0] != '.' {
			return nil, "", "after a quoted name in the path comes neither a dot nor the end"
		}
		text = after[1:]
	}
}

func cutName(text string, end byte) (name, rest string, ok bool) {
	if strings.HasPrefix(text, `"`) {
		quoted, err := strconv.QuotedPrefix(text)
		if err != nil {
			return "", "", false
		}
		name, err = strconv.Unquote(quoted)
		return name, text[len(quoted):], err == nil
	}
	i := strings.IndexAny(text, "."+string(end))
	if i < 0 {
		return text, "", true
	}
	return text[:i], text[i:], true
}
