package profile

import (
	"slices"
	"strings"

	"github.com/afield-dev/afield/pkg/backend"
)

// checker holds values against a schema and reports what does not fit. It never
// repeats a value.
type checker struct{ problems *problems }

// checkMap checks the keys of a map and their values.
func (c checker) checkMap(s backend.Schema, v *value, path []string) {
	for _, e := range v.entries {
		f, ok := s.Field(e.key)
		if !ok {
			c.unknownKey(s, e, path)
			continue
		}
		c.check(f, e.value, append(path[:len(path):len(path)], e.key))
	}
}

func (c checker) unknownKey(s backend.Schema, e entry, path []string) {
	e.value.broken = true
	full := joinPath(append(path[:len(path):len(path)], e.key))
	what := quoteKey(e.key)
	if e.at.Layer == LayerFlag || e.at.Layer == LayerEnv {
		full, what = "", "the path"
	}
	p := c.problems.invalid(e.at, full, "%s is not a key of %s", what, parentOf(path))
	if near := nearest(e.key, s.Keys()); near != "" {
		p.hint("did you mean %s?", near)
	} else if len(s) > 0 {
		p.hint("keys are %s", strings.Join(s.Keys(), ", "))
	}
}

// parentOf names what a key stands in.
func parentOf(path []string) string {
	if len(path) == 0 {
		return "a profile"
	}
	return joinPath(path)
}

// check checks one value. null always fits: it asks for the default.
func (c checker) check(f backend.Field, v *value, path []string) {
	if v.isNull() || v.broken || f.Secret {
		return
	}
	if !fits(f.Kind, v) {
		v.broken = true
		c.wrongKind(f, v, path)
		return
	}
	switch f.Kind {
	case backend.KindMap:
		c.checkMembers(f, v, path)
	case backend.KindList:
		for _, item := range v.items {
			c.checkItem(f, item, path)
		}
	}
	if rule := broken(f, v); rule != "" {
		v.broken = true
		c.problems.invalid(v.origin, joinPath(path), "%s %s", joinPath(path), rule)
	}
}

func (c checker) checkMembers(f backend.Field, v *value, path []string) {
	if f.Fields != nil {
		c.checkMap(f.Fields, v, path)
		return
	}
	for _, e := range v.entries {
		c.checkItem(f, e.value, append(path[:len(path):len(path)], e.key))
	}
}

func (c checker) checkItem(f backend.Field, item *value, path []string) {
	if item.kind == kindNull && f.Kind == backend.KindList && f.Item().Kind != backend.KindAny && !item.broken {
		item.broken = true
		c.problems.invalid(item.origin, joinPath(path), "a member of %s is null", joinPath(path))
		return
	}
	c.check(f.Item(), item, path)
}

func (c checker) wrongKind(f backend.Field, v *value, path []string) {
	p := c.problems.invalid(v.origin, joinPath(path), "%s must be %s and is %s", joinPath(path), wanted(f.Kind), article(v.kind))
	switch {
	case f.Kind == backend.KindBool:
		p.hint("write true or false")
	case f.Kind == backend.KindText && v.isScalar():
		p.hint("put it in quotes")
	case (f.Kind == backend.KindInt || f.Kind == backend.KindNumber) && v.kind == kindText:
		p.hint("write digits without quotes")
	}
}

func wanted(k backend.Kind) string {
	switch k {
	case backend.KindInt:
		return "a whole number"
	case backend.KindNumber:
		return "a number"
	case backend.KindBool:
		return "true or false"
	case backend.KindList:
		return "a list"
	case backend.KindMap:
		return "a map"
	default:
		return "text"
	}
}

func fits(k backend.Kind, v *value) bool {
	switch k {
	case backend.KindInt:
		return v.kind == kindInt
	case backend.KindNumber:
		return v.kind == kindInt || v.kind == kindNumber
	case backend.KindBool:
		return v.kind == kindBool
	case backend.KindList:
		return v.kind == kindList
	case backend.KindMap:
		return v.kind == kindMap
	case backend.KindAny:
		return true
	default:
		return v.kind == kindText
	}
}

// broken gives the rule that a value of the right kind breaks.
func broken(f backend.Field, v *value) string {
	switch {
	case f.Kind == backend.KindInt || f.Kind == backend.KindNumber:
		n := v.number
		if v.kind == kindInt {
			n = float64(v.integer)
		}
		if n < f.Min {
			return "must be at least " + formatNumber(f.Min)
		}
		if f.Max != 0 && n > f.Max {
			return "must be at most " + formatNumber(f.Max)
		}
	case f.Kind == backend.KindText && len(f.Enum) > 0 && !slices.Contains(f.Enum, v.text):
		return "must be one of " + strings.Join(f.Enum, ", ")
	}
	if f.Check != nil {
		return f.Check(typed(f, v))
	}
	return ""
}

// typed gives a checked value as a consumer gets it (backend.Kind).
func typed(f backend.Field, v *value) any {
	switch {
	case v.isNull():
		return nil
	case f.Kind == backend.KindNumber && v.kind == kindInt:
		return float64(v.integer)
	case v.kind == kindText:
		return unescape(v.text)
	case v.kind == kindList:
		list := make([]any, len(v.items))
		for i, item := range v.items {
			list[i] = typed(f.Item(), item)
		}
		return list
	case v.kind == kindMap:
		return typedMembers(f, v)
	default:
		return v.any()
	}
}

func typedMembers(f backend.Field, v *value) map[string]any {
	m := make(map[string]any, len(v.entries))
	for _, e := range v.entries {
		item := f.Item()
		if known, ok := f.Fields.Field(e.key); ok {
			item = known
		}
		if data := typed(item, e.value); data != nil {
			m[e.key] = data
		}
	}
	return m
}

// withDefaults gives v with the default of every key that nobody wrote or that
// was returned to it. Required keys that are missing are reported at `at`.
func (c checker) withDefaults(s backend.Schema, v *value, path []string, at Origin, who string) *value {
	out := &value{kind: kindMap, origin: at}
	if v != nil {
		out.origin, out.over = v.origin, v.over
		out.entries = append(out.entries, v.entries...)
	}
	for _, f := range s {
		c.fill(f, out, append(path[:len(path):len(path)], f.Key), at, who)
	}
	return out
}

func (c checker) fill(f backend.Field, out *value, path []string, at Origin, who string) {
	written := out.get(f.Key)
	switch {
	case f.Kind == backend.KindMap && f.Fields != nil && (!written.isNull() || hasDefaults(f.Fields) && !f.Required && f.Default == nil):
		if written != nil && written.kind != kindMap && written.kind != kindNull {
			return
		}
		if written.isNull() {
			written = nil
		}
		out.put(entry{f.Key, at, c.withDefaults(f.Fields, written, path, at, who)})
	case !written.isNull() || written != nil && written.broken:
	case f.Default != nil:
		d := newValue(f.Default, Origin{})
		d.over = written.history()
		out.put(entry{f.Key, Origin{}, d})
	case f.Required:
		p := c.problems.invalid(at, joinPath(path), "%s is required by %s", joinPath(path), who)
		if written != nil {
			p.Origin = written.origin
			p.hint("null at %s asks for a default, and there is none", written.origin.place())
		}
	}
}

// hasDefaults reports whether a map that nobody wrote has content.
func hasDefaults(s backend.Schema) bool {
	return slices.ContainsFunc(s, func(f backend.Field) bool {
		return f.Default != nil || f.Fields != nil && hasDefaults(f.Fields)
	})
}
