package profile

import (
	"slices"
	"strconv"
)

// kind is what a value is before a schema has looked at it.
type kind int

const (
	kindNull kind = iota
	kindText
	kindInt
	kindNumber
	kindBool
	kindList
	kindMap
)

// value is a parsed or merged value with its origin.
type value struct {
	kind    kind
	text    string // of a scalar: the text as it was written, without quotes
	integer int64
	number  float64
	items   []*value
	entries []entry
	origin  Origin
	// over holds what this value took the place of, nearest first.
	over []*value
	// broken: a problem has been reported already.
	broken bool
	// secret and note are set in a tree that is to be shown: the value is a
	// reference; what a dump says beside the origin.
	secret bool
	note   string
}

// entry is one key of a map. at is the place of the key.
type entry struct {
	key   string
	at    Origin
	value *value
}

func (v *value) get(key string) *value {
	if v == nil {
		return nil
	}
	for _, e := range v.entries {
		if e.key == key {
			return e.value
		}
	}
	return nil
}

// put sets the value of a key and keeps the order of first appearance.
func (v *value) put(e entry) {
	for i := range v.entries {
		if v.entries[i].key == e.key {
			v.entries[i].value = e.value
			return
		}
	}
	v.entries = append(v.entries, e)
}

// isNull reports whether there is no value, or one that asks for the default.
func (v *value) isNull() bool { return v == nil || v.kind == kindNull }

// isTrue reports whether the value is the word true.
func (v *value) isTrue() bool { return v != nil && v.kind == kindBool && v.text == "true" }

// isScalar reports whether the value is text, a number or a truth value.
func (v *value) isScalar() bool {
	return v != nil && v.kind != kindNull && v.kind != kindList && v.kind != kindMap
}

// history gives the value and what it took the place of, nearest first.
func (v *value) history() []*value {
	if v == nil {
		return nil
	}
	return append([]*value{v}, v.over...)
}

// any gives the plain data of a value.
func (v *value) any() any {
	if v == nil {
		return nil
	}
	switch v.kind {
	case kindText:
		return v.text
	case kindInt:
		return v.integer
	case kindNumber:
		return v.number
	case kindBool:
		return v.text == "true"
	case kindList:
		list := make([]any, len(v.items))
		for i, item := range v.items {
			list[i] = item.any()
		}
		return list
	case kindMap:
		m := make(map[string]any, len(v.entries))
		for _, e := range v.entries {
			m[e.key] = e.value.any()
		}
		return m
	default:
		return nil
	}
}

// newValue makes a value of plain data, as schemas hold it for defaults.
func newValue(data any, at Origin) *value {
	v := &value{kind: kindText, origin: at}
	switch d := data.(type) {
	case nil:
		v.kind = kindNull
	case string:
		v.text = d
	case bool:
		v.kind, v.text = kindBool, strconv.FormatBool(d)
	case int:
		v.kind, v.integer, v.text = kindInt, int64(d), strconv.Itoa(d)
	case int64:
		v.kind, v.integer, v.text = kindInt, d, strconv.FormatInt(d, 10)
	case float64:
		v.kind, v.number, v.text = kindNumber, d, formatNumber(d)
	case []string:
		v.kind = kindList
		for _, item := range d {
			v.items = append(v.items, newValue(item, at))
		}
	case []any:
		v.kind = kindList
		for _, item := range d {
			v.items = append(v.items, newValue(item, at))
		}
	case map[string]any:
		v.kind = kindMap
		for _, key := range sortedKeys(d) {
			v.entries = append(v.entries, entry{key, at, newValue(d[key], at)})
		}
	}
	return v
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func formatNumber(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// equal compares data and not origins.
func equal(a, b *value) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.kind != b.kind || a.text != b.text || len(a.items) != len(b.items) || len(a.entries) != len(b.entries) {
		return false
	}
	for i := range a.items {
		if !equal(a.items[i], b.items[i]) {
			return false
		}
	}
	for _, e := range a.entries {
		if other := b.get(e.key); other == nil || !equal(e.value, other) {
			return false
		}
	}
	return true
}
