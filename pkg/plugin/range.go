package plugin

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/semver"
)

// Range is a set of semantic versions in npm's notation: > >= < <= = ^ ~, a
// blank for "and", || for "or". The zero value and "*" hold every version that
// is no pre-release. A pre-release is held only where a bound names a
// pre-release of the same triple.
type Range struct {
	text string
	sets [][]bound
}

// bound is one comparison with a version in the form of golang.org/x/mod/semver.
type bound struct {
	op      string
	version string
}

// String gives the range as it was written.
func (r Range) String() string { return r.text }

// ParseRange reads a range; "" is every version.
func ParseRange(text string) (Range, error) {
	r := Range{text: text}
	if len(text) > 256 {
		return r, fmt.Errorf("the range is longer than 256 bytes")
	}
	for _, part := range strings.Split(text, "||") {
		set := []bound{}
		for _, word := range strings.Fields(joinOperators(part)) {
			bounds, err := parseComparator(word)
			if err != nil {
				return r, err
			}
			set = append(set, bounds...)
		}
		r.sets = append(r.sets, set)
	}
	return r, nil
}

// joinOperators takes the blanks between an operator and its version away.
func joinOperators(s string) string {
	for _, op := range []string{">", "<", "=", "^", "~"} {
		for strings.Contains(s, op+" ") {
			s = strings.ReplaceAll(s, op+" ", op)
		}
	}
	return s
}

func parseComparator(word string) ([]bound, error) {
	rest := strings.TrimLeft(word, "<>=^~")
	op := word[:len(word)-len(rest)]
	rest = strings.TrimPrefix(rest, "v")
	if rest == "" && op != "" {
		return nil, fmt.Errorf("%q has no version", word)
	}
	low, high, err := spanOf(rest)
	if err != nil {
		return nil, err
	}
	if high == noEnd {
		op = ""
	}
	switch op {
	case "", "=":
		if high == "" {
			return []bound{{"=", low}}, nil
		}
		return between(low, high), nil
	case ">=", "<":
		return []bound{{op, low}}, nil
	case ">":
		if high != "" {
			return []bound{{">=", high}}, nil
		}
		return []bound{{">", low}}, nil
	case "<=":
		if high != "" {
			return []bound{{"<", high}}, nil
		}
		return []bound{{"<=", low}}, nil
	case "^":
		return between(low, caret(low, rest)), nil
	case "~":
		if strings.Count(core(rest), ".") == 0 {
			return between(low, bump(low, 0)), nil
		}
		return between(low, bump(low, 1)), nil
	}
	return nil, fmt.Errorf("%q is no comparison", word)
}

// noEnd is above every version that is accepted.
const noEnd = "v4294967295.0.0"

func between(low, high string) []bound { return []bound{{">=", low}, {"<", high}} }

func core(s string) string {
	s, _, _ = strings.Cut(s, "+")
	s, _, _ = strings.Cut(s, "-")
	return s
}

// spanOf gives the lowest version that a word such as 1, 1.2, 1.x or 1.2.3
// means, and for the short ones the first that it does not. "*" has no end but
// the highest number.
func spanOf(word string) (low, high string, err error) {
	parts := strings.Split(core(word), ".")
	n := len(parts)
	for i, p := range parts {
		if p == "x" || p == "X" || p == "*" {
			n = i
			break
		}
		if _, err := strconv.ParseUint(p, 10, 32); err != nil || len(p) > 1 && p[0] == '0' {
			return "", "", fmt.Errorf("%q is no version", word)
		}
	}
	switch {
	case len(parts) > 3:
		return "", "", fmt.Errorf("%q is no version", word)
	case n == 0:
		return "v0.0.0", noEnd, nil
	case n == 3:
		low = "v" + word
		if !semver.IsValid(low) {
			return "", "", fmt.Errorf("%q is no version", word)
		}
		return low, "", nil
	}
	if core(word) != word {
		return "", "", fmt.Errorf("%q is no version", word)
	}
	low = "v" + strings.Join(append(parts[:n:n], "0", "0")[:3], ".")
	return low, bump(low, n-1), nil
}

// bump gives the version with one more at a place and zeros behind it.
func bump(v string, place int) string {
	parts := strings.Split(core(strings.TrimPrefix(v, "v")), ".")
	n, _ := strconv.ParseUint(parts[place], 10, 32)
	parts[place] = strconv.FormatUint(n+1, 10)
	for i := place + 1; i < 3; i++ {
		parts[i] = "0"
	}
	return "v" + strings.Join(parts, ".")
}

// caret gives the end of ^V: the first number that is not zero stays.
func caret(low, word string) string {
	parts := strings.Split(core(strings.TrimPrefix(low, "v")), ".")
	given := strings.Count(core(word), ".")
	for i := 0; i < 2; i++ {
		if parts[i] != "0" || i == given {
			return bump(low, i)
		}
	}
	return bump(low, 2)
}

// Holds reports whether a version is in the range.
func (r Range) Holds(version string) bool {
	v := "v" + version
	if !semver.IsValid(v) {
		return false
	}
	if len(r.sets) == 0 {
		return semver.Prerelease(v) == ""
	}
	for _, set := range r.sets {
		if holdsAll(set, v) {
			return true
		}
	}
	return false
}

func holdsAll(set []bound, v string) bool {
	named := semver.Prerelease(v) == ""
	for _, b := range set {
		if !b.holds(v) {
			return false
		}
		if semver.Prerelease(b.version) != "" && triple(b.version) == triple(v) {
			named = true
		}
	}
	return named
}

func triple(v string) string { return core(v) }

func (b bound) holds(v string) bool {
	c := semver.Compare(v, b.version)
	switch b.op {
	case ">=":
		return c >= 0
	case ">":
		return c > 0
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	default:
		return c == 0
	}
}
