package plugin

import (
	"math"
	"os"
	"slices"
	"strings"

	"github.com/afield-dev/afield/pkg/backend"
)

// Bounds of a config schema (plugins.md 27).
const (
	maxSchemaBytes = 64 << 10
	maxSchemaDepth = 16
	maxPattern     = 1024
)

// schemaFile reads the config schema of a provider; without one its config is
// empty.
func (r *reader) schemaFile(v any, at string, root *os.Root) backend.Schema {
	name := r.text(v, at)
	if name == "" || r.inside(name, at, root) == nil {
		return backend.Schema{}
	}
	content, err := readOptional(root, name)
	if err != nil || len(content) > maxSchemaBytes {
		r.fail(at, "%q cannot be read or is larger than 64 KiB", name)
		return nil
	}
	doc, err := readJSON(content)
	if err != nil {
		r.fail(at, "%s: %s", name, err)
		return nil
	}
	s := schemaReader{reader: r}
	top, _ := doc.(map[string]any)
	s.defs, _ = top["$defs"].(map[string]any)
	f := s.field(doc, name, 0)
	if r.err == nil && (f.Kind != backend.KindMap || f.Fields == nil) {
		r.fail(at, "%s must be a closed object with properties", name)
	}
	return f.Fields
}

// schemaReader turns the promised subset of JSON Schema into fields. Any other
// keyword is refused, so that no rule is silently without effect.
type schemaReader struct {
	*reader
	defs map[string]any
}

// field reads the schema of one value.
func (s schemaReader) field(v any, at string, depth int) backend.Field {
	if depth > maxSchemaDepth {
		s.fail(at, "is nested deeper than %d", maxSchemaDepth)
	}
	if s.err != nil {
		return backend.Field{}
	}
	m := s.object(v, at, "type", "properties", "required", "additionalProperties", "items", "enum", "const",
		"minimum", "maximum", "minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems",
		"default", "description", "title", "format", "x-secret", "$ref", "$defs")
	if ref, ok := m["$ref"]; ok {
		return s.reference(ref, at, depth)
	}
	if m["$defs"] != nil && depth > 0 {
		s.fail(at, "$defs stands at the top of a schema only")
	}
	f := backend.Field{Kind: s.kind(m["type"], at), Doc: s.doc(m, at), Min: math.Inf(-1), Default: m["default"]}
	switch f.Kind {
	case backend.KindMap:
		s.members(m, at, depth, &f)
	case backend.KindList:
		item := backend.Field{Kind: backend.KindAny}
		if m["items"] != nil {
			item = s.field(m["items"], at+".items", depth+1)
		}
		f.Items = &item
	}
	s.secret(m, at, depth, &f)
	f.Check = s.rules(m, at, f.Kind)
	s.checkDefault(&f, at)
	return f
}

func (s schemaReader) reference(ref any, at string, depth int) backend.Field {
	name, ok := strings.CutPrefix(s.text(ref, at+".$ref"), "#/$defs/")
	target, known := s.defs[name]
	if !ok || !known {
		s.fail(at+".$ref", "must be #/$defs/NAME with a NAME that is there")
		return backend.Field{}
	}
	return s.field(target, at, depth+1)
}

func (s schemaReader) kind(v any, at string) backend.Kind {
	switch s.text(v, at+".type") {
	case "string":
		return backend.KindText
	case "integer":
		return backend.KindInt
	case "number":
		return backend.KindNumber
	case "boolean":
		return backend.KindBool
	case "array":
		return backend.KindList
	case "object":
		return backend.KindMap
	case "":
		return backend.KindAny
	}
	s.fail(at+".type", "must be string, integer, number, boolean, array or object")
	return backend.KindAny
}

// doc gives one line about a value.
func (s schemaReader) doc(m map[string]any, at string) string {
	text := s.text(m["description"], at+".description")
	if text == "" {
		text = s.text(m["title"], at+".title")
	}
	return strings.Join(strings.Fields(text), " ")
}

// members reads the keys of an object: a closed set, or any with one schema.
func (s schemaReader) members(m map[string]any, at string, depth int, f *backend.Field) {
	properties := s.open(m["properties"], at+".properties")
	required := s.texts(m["required"], at+".required")
	switch more := m["additionalProperties"].(type) {
	case nil:
	case bool:
		if more {
			f.Items = &backend.Field{Kind: backend.KindAny}
		}
	default:
		item := s.field(more, at+".additionalProperties", depth+1)
		f.Items = &item
	}
	if f.Items != nil {
		if len(properties) > 0 || len(required) > 0 {
			s.fail(at, "properties go with a closed object only")
		}
		return
	}
	f.Fields = backend.Schema{}
	for _, key := range sortedKeys(properties) {
		field := s.field(properties[key], at+"."+key, depth+1)
		field.Key, field.Required = key, slices.Contains(required, key)
		f.Fields = append(f.Fields, field)
	}
	for _, key := range required {
		if _, ok := f.Fields.Field(key); !ok {
			s.fail(at+".required", "%q is not one of the properties", key)
		}
	}
}

// secret reads x-secret: text at the top of a config, whose default can only be
// a reference.
func (s schemaReader) secret(m map[string]any, at string, depth int, f *backend.Field) {
	switch secret := m["x-secret"].(type) {
	case nil:
		return
	case bool:
		f.Secret = secret
	default:
		s.fail(at+".x-secret", "must be true or false")
	}
	if !f.Secret {
		return
	}
	if f.Kind != backend.KindText || depth != 1 {
		s.fail(at+".x-secret", "holds for text at the top of a config only")
	}
	if text, ok := f.Default.(string); f.Default != nil && (!ok || !strings.HasPrefix(text, "${") || !strings.HasSuffix(text, "}")) {
		s.fail(at+".default", "must be a reference such as ${NAME}")
	}
}
