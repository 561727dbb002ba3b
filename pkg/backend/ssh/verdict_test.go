package ssh

import (
	"strings"
	"testing"
)

// The verdict is taken out of the error output wherever the pieces are cut, and
// nothing else is.
func TestVerdictIsTakenOut(t *testing.T) {
	const mark = "0123abc Q"
	for _, c := range []struct {
		in, want string
		none     bool
	}{
		{"", "", false},
		{"plain\n", "plain\n", false},
		{"a" + mark + "\nb", "ab", true},
		{mark + "\n", "", true},
		{"x" + mark + " 12 13\ny", "xy", false},
		{"x" + mark + " 1\ny", "xy", false},
		{"0123abc 0123abc Q", "0123abc 0123abc Q", false},
		{"ends with 0123", "ends with 0123", false},
		{mark + "\n" + mark + "\n", mark + "\n", true},
	} {
		for size := 1; size <= len(c.in)+1; size++ {
			v := newVerdict(mark)
			var out strings.Builder
			for rest := c.in; rest != ""; {
				n := min(size, len(rest))
				out.Write(v.strain([]byte(rest[:n])))
				rest = rest[n:]
			}
			out.Write(v.rest())
			v.end()
			if out.String() != c.want || v.quiet(t.Context()) != c.none {
				t.Errorf("%q in pieces of %d: %q, %v", c.in, size, out.String(), v.none)
			}
		}
	}
}
