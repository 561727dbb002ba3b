package remotefs

import (
	"bytes"
	"strings"
	"testing"

	"github.com/afield-dev/afield/pkg/fault"
)

// editCase is one row of table I of the specification.
type editCase struct {
	num      int
	on       string
	old, new string
	all      bool
	want     string
	code     fault.Code
}

var editCases = []editCase{
	{num: 188, on: "hello world", old: "world", new: "there", want: "hello there"},
	{num: 189, on: "a\r\nOLD\r\nb\r\n", old: "OLD", new: "NEW", want: "a\r\nNEW\r\nb\r\n"},
	{num: 190, on: "one\r\ntwo\r\nthree\n", old: "two\r\n", new: "TWO\r\n", want: "one\r\nTWO\r\nthree\n"},
	{num: 191, on: "a\nb\nc\r\nd", old: "d", new: "D", want: "a\nb\nc\r\nD"},
	{num: 192, on: "a\nb\r\nd", old: "d", new: "D", want: "a\nb\r\nD"},
	{num: 192, on: "a\nb\r\nd", old: "d", new: "x\ny", want: "a\nb\r\nx\ny"},
	{num: 193, on: "a\nb\n", old: "a\r\nb", new: "X", want: "X\n"},
	{num: 194, on: "a\r\nb\r\n", old: "a\nb", new: "X\nY", want: "X\r\nY\r\n"},
	{num: 195, on: "a\r\nb", old: "\r\n", new: "-", want: "a-b"},
	{num: 196, on: "a\r\nb\r\n", old: "\n", new: "|", all: true, want: "a|b|"},
	{num: 197, on: "a\r\nb\r\n", old: "\r", new: "X", code: fault.FSEditNotFound},
	{num: 198, on: "a\rb\rc", old: "b", new: "B", want: "a\rB\rc"},
	{num: 199, on: "a\r\r\nb", old: "b", new: "B", want: "a\r\r\nB"},
	{num: 200, on: "a\nb", old: "a", new: "a\r", want: "a\r\nb"},
	{num: 201, on: "a\nb", old: "b", new: "c", want: "a\nc"},
	{num: 202, on: strings.Repeat("x", 4095) + "\r\nt", old: "t", new: "T", want: strings.Repeat("x", 4095) + "\r\nT"},
	{num: 203, on: "a\n" + strings.Repeat("x", 4094) + strings.Repeat("\r\n", 50) + "t", old: "t", new: "T\n",
		want: "a\n" + strings.Repeat("x", 4094) + strings.Repeat("\r\n", 50) + "T\r\n"},
	{num: 204, on: strings.Repeat("😀", 2047) + "\r\nt", old: "t", new: "T", want: strings.Repeat("😀", 2047) + "\r\nT"},
	{num: 204, on: strings.Repeat("😀", 2048) + "\r\nt", old: "t", new: "T", want: strings.Repeat("😀", 2048) + "\r\nT"},
	{num: 205, on: "aaa", old: "aa", new: "b", want: "ba"},
	{num: 206, on: "aaaa", old: "aa", new: "b", code: fault.FSAmbiguousEdit},
	{num: 206, on: "aaaa", old: "aa", new: "b", all: true, want: "bb"},
	{num: 207, on: "abab", old: "a", new: "aa", all: true, want: "aabaab"},
	{num: 208, on: "a a a", old: "z", new: "X", code: fault.FSEditNotFound},
	{num: 208, on: "a a a", old: "a", new: "X", code: fault.FSAmbiguousEdit},
	{num: 208, on: "a a a", old: "a", new: "b", all: true, want: "b b b"},
	{num: 209, on: "abc", old: "", new: "x", code: fault.FSEditNotFound},
	{num: 209, on: "", old: "", new: "x", code: fault.FSEditNotFound},
	{num: 209, on: "a\x00b", old: "", new: "x", code: fault.FSNotText},
	{num: 210, on: "abc", old: "b", new: "b", want: "abc"},
	{num: 211, on: "abc", old: "b", new: "", want: "ac"},
	{num: 211, on: "ac", old: "ac", new: "", want: ""},
	{num: 212, on: "abc", old: "b", new: "$&$$$`", want: "a$&$$$`c"},
	{num: 213, on: "\xEF\xBB\xBFab", old: "b", new: "c", want: "\xEF\xBB\xBFac"},
	{num: 214, on: "h\xFFi", old: "h", new: "H", code: fault.FSNotText},
	{num: 214, on: "a\xE2\x82", old: "a", new: "b", code: fault.FSNotText},
	{num: 215, on: strings.Repeat("a", 8192) + "\x00tail", old: "tail", new: "end", code: fault.FSNotText},
	{num: 216, on: "caf\u00e9", old: "e\u0301", new: "x", code: fault.FSEditNotFound},
	// A match that begins or ends at a folded newline takes the whole pair.
	{num: 189, on: "a\r\nb\r\nc\r\nd\ne\nf\n", old: "\nb\n", new: "\n", want: "a\nc\r\nd\ne\nf\n"},
	{num: 191, on: "x\ny\r\nx\ny\r\nz", old: "x\ny\n", new: "q\n", all: true, want: "q\nq\nz"},
}

func TestEditsAreLossless(t *testing.T) { // cases 188 to 216, S-15, S-16, S-22
	for _, c := range editCases {
		doc, err := newDocument([]byte(c.on), "f")
		if err == nil {
			err = doc.apply(Edit{Old: c.old, New: c.new, All: c.all}, "f")
		}
		if fault.CodeOf(err) != c.code {
			t.Errorf("case %d: error %v, want %q", c.num, err, c.code)
			continue
		}
		if err != nil {
			continue
		}
		if got := string(doc.bom) + string(doc.raw); got != c.want {
			t.Errorf("case %d: %.60q: got %.60q, want %.60q", c.num, c.on, got, c.want)
		}
		wantAfter := strings.ReplaceAll(string(doc.before), string(fold([]byte(c.old))), string(fold([]byte(c.new))))
		if string(doc.text) != wantAfter {
			t.Errorf("case %d: after %.60q, want %.60q", c.num, doc.text, wantAfter)
		}
	}
}

func TestSeveralEditsBuildOnEachOther(t *testing.T) {
	doc, err := newDocument([]byte("a\r\nb\r\nc\nd"), "f")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []Edit{{Old: "a\nb", New: "B\nA"}, {Old: "A\nc", New: "1\n2\n3"}, {Old: "3", New: "\r\n"}} {
		if err := doc.apply(e, "f"); err != nil {
			t.Fatal(err)
		}
	}
	if want := "B\r\n1\r\n2\r\n\r\n\nd"; string(doc.raw) != want || doc.count != 3 {
		t.Errorf("got %q with %d replacements, want %q with 3", doc.raw, doc.count, want)
	}
}

func TestNormalizeStoresTheDominantEnding(t *testing.T) {
	for on, want := range map[string]string{
		"a\r\nb\r\nc\nd": "A\r\nb\r\nc\r\nd", "a\nb\nc\r\nd": "A\nb\nc\nd", "a\nb\r\nd": "A\nb\nd",
		"aone\r\nTWO\r\nthree\n": "Aone\r\nTWO\r\nthree\r\n", // case 190 as the reference stores it
		"\xEF\xBB\xBFa\r\n":      "\xEF\xBB\xBFA\r\n", "a\rb\r\n": "A\rb\r\n",
	} {
		doc, err := newDocument([]byte(on), "f")
		if err != nil {
			t.Fatal(err)
		}
		if err := doc.apply(Edit{Old: "a", New: "A"}, "f"); err != nil {
			t.Fatal(err)
		}
		doc.normalize()
		if got := string(doc.bom) + string(doc.raw); got != want {
			t.Errorf("%q: got %q, want %q", on, got, want)
		}
	}
}

// FuzzEdit holds an edit to a slow reading of its rules: a raw byte outside the
// matches is never changed, and folding the result gives what editing the folded
// text gives, but where a lone CR met an LF.
func FuzzEdit(f *testing.F) {
	for _, c := range editCases {
		f.Add([]byte(c.on), c.old, c.new, c.all)
	}
	f.Fuzz(func(t *testing.T, on []byte, old, fresh string, all bool) {
		doc, err := newDocument(bytes.Clone(on), "f")
		if err != nil || doc.apply(Edit{Old: old, New: fresh, All: all}, "f") != nil {
			return
		}
		if want := slowEdit(on, string(fold([]byte(old))), string(fold([]byte(fresh))), all); string(doc.bom)+string(doc.raw) != want {
			t.Fatalf("edit of %q: %q to %q gives %q, want %q", on, old, fresh, doc.raw, want)
		}
	})
}

// slowEdit goes through the file unit by unit, a unit being a CR LF or a byte.
func slowEdit(on []byte, old, fresh string, all bool) string {
	rest, ok := strings.CutPrefix(string(on), "\xEF\xBB\xBF")
	var units []string
	pairs, lone := 0, 0
	for s := rest; s != ""; {
		n := 1
		if strings.HasPrefix(s, "\r\n") {
			n, pairs = 2, pairs+1
		} else if s[0] == '\n' {
			lone++
		}
		units, s = append(units, s[:n]), s[n:]
	}
	if pairs > lone {
		fresh = strings.ReplaceAll(fresh, "\n", "\r\n")
	}
	matches := func(i int) bool {
		for j := 0; j < len(old); j++ {
			// The last byte of a unit is what it is folded to.
			if i+j >= len(units) || units[i+j][len(units[i+j])-1] != old[j] {
				return false
			}
		}
		return true
	}
	var b strings.Builder
	if ok {
		b.WriteString("\xEF\xBB\xBF")
	}
	for i, done := 0, false; i < len(units); {
		if (all || !done) && matches(i) {
			b.WriteString(fresh)
			i += len(old)
			done = true
			continue
		}
		b.WriteString(units[i])
		i++
	}
	return b.String()
}
