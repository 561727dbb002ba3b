package plugin

import (
	"fmt"
	"math"
	"os"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

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

// rule is a check of backend.Field: the rest of a sentence, or "".
type rule func(v any) string

// rules joins the rules of one value.
func (s schemaReader) rules(m map[string]any, at string, kind backend.Kind) func(any) string {
	var all []rule
	add := func(r rule) {
		if r != nil {
			all = append(all, r)
		}
	}
	add(s.oneOf(m, at))
	add(s.numbers(m, at, kind))
	add(s.lengths(m, at, kind))
	add(s.pattern(m, at, kind))
	add(s.format(m, at, kind))
	if len(all) == 0 {
		return nil
	}
	return func(v any) string {
		for _, r := range all {
			if said := r(v); said != "" {
				return said
			}
		}
		return ""
	}
}

func (s schemaReader) oneOf(m map[string]any, at string) rule {
	values := s.list(m["enum"], at+".enum")
	if c, ok := m["const"]; ok {
		values = append(slices.Clone(values), c)
	}
	if values == nil {
		return nil
	}
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = fmt.Sprint(v)
	}
	said := "must be one of " + strings.Join(words, ", ")
	return func(v any) string {
		if slices.ContainsFunc(values, func(x any) bool { return same(x, v) }) {
			return ""
		}
		return said
	}
}

// same compares a value of a schema with one of a config: 1 and 1.0 are equal.
func same(a, b any) bool {
	x, isX := number(a)
	y, isY := number(b)
	if isX && isY {
		return x == y
	}
	return reflect.DeepEqual(a, b)
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

func (s schemaReader) numbers(m map[string]any, at string, kind backend.Kind) rule {
	low, high := math.Inf(-1), math.Inf(1)
	for key, bound := range map[string]*float64{"minimum": &low, "maximum": &high} {
		if m[key] == nil {
			continue
		}
		n, ok := number(m[key])
		if !ok || kind != backend.KindInt && kind != backend.KindNumber {
			s.fail(at+"."+key, "must be a number, and goes with numbers only")
		}
		*bound = n
	}
	if math.IsInf(low, -1) && math.IsInf(high, 1) {
		return nil
	}
	return func(v any) string {
		n, _ := number(v)
		switch {
		case n < low:
			return fmt.Sprintf("must be at least %v", low)
		case n > high:
			return fmt.Sprintf("must be at most %v", high)
		}
		return ""
	}
}

func (s schemaReader) lengths(m map[string]any, at string, kind backend.Kind) rule {
	keys, of := [2]string{"minLength", "maxLength"}, backend.KindText
	if kind == backend.KindList {
		keys, of = [2]string{"minItems", "maxItems"}, backend.KindList
	}
	for _, key := range []string{"minLength", "maxLength", "minItems", "maxItems", "uniqueItems"} {
		if m[key] != nil && (kind != of || !slices.Contains(keys[:], key) && (key != "uniqueItems" || kind != backend.KindList)) {
			s.fail(at+"."+key, "does not go with this type")
		}
	}
	low := s.integer(m[keys[0]], at+"."+keys[0], 0, math.MaxInt32)
	high := s.integer(m[keys[1]], at+"."+keys[1], 0, math.MaxInt32)
	unique, ok := m["uniqueItems"].(bool)
	if m["uniqueItems"] != nil && !ok {
		s.fail(at+".uniqueItems", "must be true or false")
	}
	if m[keys[0]] == nil && m[keys[1]] == nil && !unique {
		return nil
	}
	bounded := m[keys[1]] != nil
	return func(v any) string {
		n := int64(lengthOf(v))
		switch {
		case n < low:
			return fmt.Sprintf("must have a length of at least %d", low)
		case bounded && n > high:
			return fmt.Sprintf("must have a length of at most %d", high)
		case unique && hasTwins(v):
			return "must not hold a member twice"
		}
		return ""
	}
}

func lengthOf(v any) int {
	switch x := v.(type) {
	case string:
		return utf8.RuneCountInString(x)
	case []any:
		return len(x)
	}
	return 0
}

func hasTwins(v any) bool {
	list, _ := v.([]any)
	for i, x := range list {
		if slices.ContainsFunc(list[:i], func(y any) bool { return same(x, y) }) {
			return true
		}
	}
	return false
}

func (s schemaReader) pattern(m map[string]any, at string, kind backend.Kind) rule {
	if m["pattern"] == nil {
		return nil
	}
	text := s.text(m["pattern"], at+".pattern")
	re, err := regexp.Compile(text)
	if kind != backend.KindText || len(text) > maxPattern || err != nil {
		s.fail(at+".pattern", "must be an RE2 expression of at most 1024 bytes, and goes with text only")
		return nil
	}
	return func(v any) string {
		if x, ok := v.(string); ok && !re.MatchString(x) {
			return "must match " + text
		}
		return ""
	}
}

func (s schemaReader) format(m map[string]any, at string, kind backend.Kind) rule {
	name := s.text(m["format"], at+".format")
	var of backend.Kind
	var fits func(v any) bool
	var said string
	switch name {
	case "":
		return nil
	case "abs-posix-path":
		of, said = backend.KindText, "must be an absolute path"
		fits = func(v any) bool { return path.IsAbs(v.(string)) }
	case "uri-https":
		of, said = backend.KindText, "must begin with https://"
		fits = func(v any) bool { rest, ok := strings.CutPrefix(v.(string), "https://"); return ok && rest != "" }
	case "env-name":
		of, said = backend.KindText, "must be the name of a variable"
		fits = func(v any) bool { return isEnvName(v.(string)) }
	case "duration-ms", "bytes":
		of, said = backend.KindInt, "must not be negative"
		fits = func(v any) bool { return v.(int64) >= 0 }
	}
	if fits == nil || kind != of {
		s.fail(at+".format", "must be abs-posix-path, uri-https or env-name of text, or duration-ms or bytes of an integer")
		return nil
	}
	return func(v any) string {
		if fits(v) {
			return ""
		}
		return said
	}
}

func isEnvName(name string) bool {
	return name != "" && (name[0] < '0' || name[0] > '9') &&
		strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// checkDefault holds a default against its own schema.
func (s schemaReader) checkDefault(f *backend.Field, at string) {
	if f.Default == nil || s.err != nil || f.Secret {
		return
	}
	if n, ok := f.Default.(int64); ok && f.Kind == backend.KindNumber {
		f.Default = float64(n)
	}
	fits := true
	switch f.Kind {
	case backend.KindText:
		_, fits = f.Default.(string)
	case backend.KindInt:
		_, fits = f.Default.(int64)
	case backend.KindNumber:
		_, fits = f.Default.(float64)
	case backend.KindBool:
		_, fits = f.Default.(bool)
	case backend.KindList:
		_, fits = f.Default.([]any)
	case backend.KindMap:
		_, fits = f.Default.(map[string]any)
	}
	if !fits || f.Check != nil && f.Check(f.Default) != "" {
		s.fail(at+".default", "does not fit the schema itself")
	}
}
