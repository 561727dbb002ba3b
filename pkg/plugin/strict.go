package plugin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/afield-dev/afield/pkg/fault"
)

// maxDocument bounds a manifest (U-8), and maxNesting the depth of any JSON of
// a plugin.
const (
	maxDocument = 1 << 20
	maxNesting  = 32
)

// readJSON reads one JSON document into map[string]any, []any, string, int64,
// float64, bool or nil. A key that stands twice, bytes behind the document, and
// what is not UTF-8 are errors.
func readJSON(content []byte) (any, error) {
	if !utf8.Valid(content) {
		return nil, errors.New("it is not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(content))
	dec.UseNumber()
	v, err := readValue(dec, 0)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("something follows the document")
	}
	return v, nil
}

func readValue(dec *json.Decoder, depth int) (any, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	if depth > maxNesting {
		return nil, errors.New("it is nested too deep")
	}
	switch t := token.(type) {
	case json.Number:
		if n, err := t.Int64(); err == nil {
			return n, nil
		}
		return t.Float64()
	case json.Delim:
		if t == '[' {
			return readList(dec, depth)
		}
		return readObject(dec, depth)
	}
	return token, nil
}

func readList(dec *json.Decoder, depth int) (any, error) {
	list := []any{}
	for dec.More() {
		v, err := readValue(dec, depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := dec.Token()
	return list, err
}

func readObject(dec *json.Decoder, depth int) (any, error) {
	m := map[string]any{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name := key.(string)
		if _, twice := m[name]; twice {
			return nil, fmt.Errorf("the key %q stands there twice", name)
		}
		if m[name], err = readValue(dec, depth+1); err != nil {
			return nil, err
		}
	}
	_, err := dec.Token()
	return m, err
}

// reader takes plain data apart. The first thing that does not fit stands in
// err, and everything after it gives zero values.
type reader struct{ err *fault.Error }

func (r *reader) fail(at, format string, args ...any) {
	if r.err == nil {
		r.err = fault.New(fault.PluginManifestInvalid, "manifest", "", "%s: %s", at, fmt.Sprintf(format, args...))
	}
}

// object gives a map whose keys are all known.
func (r *reader) object(v any, at string, known ...string) map[string]any {
	m, ok := v.(map[string]any)
	if !ok {
		r.fail(at, "must be a map")
		return nil
	}
	for _, key := range sortedKeys(m) {
		if !slices.Contains(known, key) {
			r.fail(at, "%q is not a key; keys are %s", key, strings.Join(known, ", "))
		}
	}
	return m
}

// open gives a map with any keys.
func (r *reader) open(v any, at string) map[string]any {
	m, ok := v.(map[string]any)
	if !ok && v != nil {
		r.fail(at, "must be a map")
	}
	return m
}

// text gives a string; nil is "".
func (r *reader) text(v any, at string) string {
	s, ok := v.(string)
	if !ok && v != nil {
		r.fail(at, "must be text")
	}
	return s
}

func (r *reader) list(v any, at string) []any {
	l, ok := v.([]any)
	if !ok && v != nil {
		r.fail(at, "must be a list")
	}
	return l
}

func (r *reader) texts(v any, at string) []string {
	var out []string
	for i, item := range r.list(v, at) {
		s, ok := item.(string)
		if !ok {
			r.fail(fmt.Sprintf("%s.%d", at, i), "must be text")
		}
		out = append(out, s)
	}
	return out
}

func (r *reader) integer(v any, at string, min, max int64) int64 {
	n, ok := v.(int64)
	if !ok && v != nil || ok && (n < min || n > max) {
		r.fail(at, "must be a whole number from %d to %d", min, max)
	}
	return n
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
