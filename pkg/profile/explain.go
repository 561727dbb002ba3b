package profile

import (
	"strings"
)

// Leaf is one value with its origin and all that it took the place of, nearest
// first. Values are plain data; what was refused is masked.
type Leaf struct {
	Path   string
	Value  any
	Origin Origin
	Secret bool
	// Note says which other line had this effect, for a row that went off.
	Note string
	Over []Past
}

// Past is a value that another took the place of.
type Past struct {
	Value  any
	Origin Origin
}

// Explain gives the leaves at or below path; "" = all. The answer is empty when
// there is nothing.
func (c *Composition) Explain(path string) []Leaf {
	var all []Leaf
	for _, e := range c.tree().entries {
		if e.key != "rows" {
			all = appendLeaves(all, []string{e.key}, e.value)
			continue
		}
		for _, r := range e.value.items {
			for _, child := range r.entries {
				if child.key != "id" {
					all = appendLeaves(all, []string{r.get("id").text, child.key}, child.value)
				}
			}
		}
	}
	if path == "" {
		return all
	}
	return c.below(all, path)
}

// below selects by path; config.KEY is that of the row world, as in --set.
func (c *Composition) below(all []Leaf, path string) []Leaf {
	segments, rest, problem := ParsePath(path, '=')
	if problem != "" || rest != "" {
		return nil
	}
	if segments[0] == "config" {
		segments = append([]string{defaultRow}, segments...)
	}
	want := joinPath(segments)
	var out []Leaf
	for _, l := range all {
		if l.Path == want || strings.HasPrefix(l.Path, want+".") {
			out = append(out, l)
		}
	}
	return out
}

func appendLeaves(out []Leaf, path []string, v *value) []Leaf {
	if v.kind == kindMap && !v.secret && len(v.entries) > 0 {
		for _, e := range v.entries {
			out = appendLeaves(out, append(path[:len(path):len(path)], e.key), e.value)
		}
		return out
	}
	l := Leaf{Path: joinPath(path), Value: v.any(), Origin: v.origin, Secret: v.secret, Note: v.note, Over: []Past{}}
	for _, o := range v.over {
		l.Over = append(l.Over, Past{Value: o.any(), Origin: o.origin})
	}
	return append(out, l)
}
