package plugin

import (
	"fmt"
	"math"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/afield-dev/afield/pkg/backend"
)

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
