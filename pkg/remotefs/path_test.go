package remotefs

import "testing"

func TestBlank(t *testing.T) { // cases 1, 2, 3 and the set of remotefs.md 2.1
	for _, p := range []string{"", "   ", "\t\r\n", "\v\f", "\uFEFF", "\u00A0", "\u1680", "\u2000\u200A", "\u2028\u2029", "\u202F\u205F\u3000"} {
		if !Blank(p) {
			t.Errorf("%q is blank", p)
		}
	}
	for _, p := range []string{" a", "a", "\u0085", "\u200B", ".", "\u180E"} {
		if Blank(p) {
			t.Errorf("%q is not blank", p)
		}
	}
}

func TestJoin(t *testing.T) {
	for _, c := range []struct{ def, cwd, path, want string }{
		{"/w", "", "a", "/w/a"},
		{"/w", "", "a/", "/w/a"},
		{"/w", "", "a/.", "/w/a"},
		{"/w", "", "x/../a", "/w/a"},
		{"/w", "", ".//a", "/w/a"},
		{"/w", "", ".", "/w"},
		{"/w", "", "~", "/w/~"},
		{"/w", "", "/../../etc", "/etc"}, // case 8
		{"/w", "", "//etc", "/etc"},
		{"/w", "", " a", "/w/ a"}, // case 9
		{"/w", "/d2", "x", "/d2/x"},
		{"/w", "rel", "z", "/w/rel/z"}, // case 12, S-2
		{"/w", "/gone", "/abs", "/abs"},
		{"/w", "", "ld/../x", "/w/x"}, // case 17
		{"/w", "", "../..", "/"},
	} {
		if got := join(c.def, c.cwd, c.path); got != c.want {
			t.Errorf("join(%q, %q, %q) = %q, want %q", c.def, c.cwd, c.path, got, c.want)
		}
	}
}

func TestContains(t *testing.T) { // cases 45, 46, 47
	for _, c := range []struct {
		parent, child string
		want          bool
	}{
		{"/w", "/w", true}, {"/w", "/w/n/f", true}, {"/w/n/f", "/w", false},
		{"/a", "/ab", false}, {"/a", "/a/..b", true}, {"/", "/x", true}, {"/", "/", true},
		{"/A", "/a/b", false}, {"/a/", "/a/b/", true}, {"/a", "/a/../b", false},
	} {
		if got := PathContains(c.parent, c.child); got != c.want {
			t.Errorf("contains(%q, %q) = %v", c.parent, c.child, got)
		}
	}
}

func TestFileURL(t *testing.T) { // cases 35 to 43, S-4
	for _, c := range []struct{ path, want string }{
		{"/w/multibyte # file.ts", "/w/multibyte%20%23%20file.ts"},
		{"/w/a%b", "/w/a%25b"}, {"/w/a?b", "/w/a%3Fb"}, {`/w/a\b`, "/w/a%5Cb"},
		{"/é/你/😀", "/%C3%A9/%E4%BD%A0/%F0%9F%98%80"},
		{"/w/a\nb", "/w/a%0Ab"}, {"/w/a\tb", "/w/a%09b"},
		{"/w/a:b@c+d,e;f=g&h$i", "/w/a%3Ab%40c%2Bd%2Ce%3Bf%3Dg%26h%24i"},
		{"/w/-_.!~*'()", "/w/-_.!~*'()"},
		{"/w/\"<>[]^`{|}", "/w/%22%3C%3E%5B%5D%5E%60%7B%7C%7D"},
		{"/", "/"},
		{"/e\u0301", "/e%CC%81"},
		{"/AZaz09", "/AZaz09"},
	} {
		if got := PathURL(c.path); got != "file://"+c.want {
			t.Errorf("PathURL(%q) = %q, want file://%s", c.path, got, c.want)
		}
	}
}
