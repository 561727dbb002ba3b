package ledger

import (
	"cmp"
	"slices"
)

// Range is the lines Start to End, counted from 1, both included.
type Range struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// Lines counts the lines of r.
func (r Range) Lines() int { return r.End - r.Start + 1 }

// Overlap gives what r and o have in common.
func (r Range) Overlap(o Range) (Range, bool) {
	c := Range{max(r.Start, o.Start), min(r.End, o.End)}
	return c, c.Start <= c.End
}

// Normalize sorts ranges and joins those that overlap or touch.
func Normalize(ranges []Range) []Range {
	in := slices.Clone(ranges)
	slices.SortFunc(in, func(a, b Range) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End))
	})
	out := []Range{}
	for _, r := range in {
		if last := len(out) - 1; last >= 0 && r.Start <= out[last].End+1 {
			out[last].End = max(out[last].End, r.End)
		} else {
			out = append(out, r)
		}
	}
	return out
}

// Subtract gives the parts of want that are not in have, ascending.
func Subtract(have []Range, want Range) []Range {
	out := []Range{}
	for _, h := range Normalize(have) {
		if h.End < want.Start || h.Start > want.End {
			continue
		}
		if h.Start > want.Start {
			out = append(out, Range{want.Start, h.Start - 1})
		}
		want.Start = h.End + 1
	}
	if want.Start <= want.End {
		out = append(out, want)
	}
	return out
}

// Intersect gives the lines that are in a and in b, ascending.
func Intersect(a, b []Range) []Range {
	out := []Range{}
	a, b = Normalize(a), Normalize(b)
	for i, j := 0, 0; i < len(a) && j < len(b); {
		if c, ok := a[i].Overlap(b[j]); ok {
			out = append(out, c)
		}
		if a[i].End < b[j].End {
			i++
		} else {
			j++
		}
	}
	return Normalize(out)
}

// CountLines counts the lines of ranges that do not overlap.
func CountLines(ranges []Range) int {
	n := 0
	for _, r := range ranges {
		n += r.Lines()
	}
	return n
}
