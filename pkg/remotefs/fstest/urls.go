package fstest

import "github.com/afield-dev/afield/pkg/remotefs"

// urlCases are table B: processPath, fileUrl, contains.
func urlCases() []Case {
	return []Case{
		{34, "a process opens the file that a link names", All, 0, func(e *env) {
			e.file("real.txt", "")
			e.link("real.txt", "l")
			got, err := e.Files.ProcessPath(e.resolve("l"))
			e.must(err)
			same(e, "path", got, e.path("real.txt"))
		}},
		{35, "blanks and hash signs in a URL", All, 0, urls("/w/multibyte # file.ts", "/w/multibyte%20%23%20file.ts")},
		{36, "percent, question mark, backslash", All, 0, urls("/w/a%b", "/w/a%25b", "/w/a?b", "/w/a%3Fb", `/w/a\b`, "/w/a%5Cb")},
		{37, "letters beyond ASCII", All, 0, urls("/é/你/😀", "/%C3%A9/%E4%BD%A0/%F0%9F%98%80")},
		{38, "line feed and tab", All, 0, urls("/w/a\nb", "/w/a%0Ab", "/w/a\tb", "/w/a%09b")},
		{39, "reserved characters", All, 0, urls("/w/a:b@c+d,e;f=g&h$i", "/w/a%3Ab%40c%2Bd%2Ce%3Bf%3Dg%26h%24i")},
		{40, "what is kept", All, 0, urls("/w/-_.!~*'()", "/w/-_.!~*'()")},
		{41, "quotes and brackets", All, 0, urls("/w/\"<>[]^`{|}", "/w/%22%3C%3E%5B%5D%5E%60%7B%7C%7D")},
		{42, "the root", All, 0, urls("/", "/")},
		{43, "nothing is composed", All, 0, urls("/e\u0301", "/e%CC%81")},
		{44, "a key that is not absolute has no URL", All, 0, func(e *env) {
			if got, err := e.Files.FileURL(remotefs.Target{Key: "relative", Display: "relative"}); err == nil || got != "" {
				e.Errorf("got %q, %v", got, err)
			}
		}},
		{45, "a directory contains itself and what is below", All, 0, func(e *env) {
			e.file("w/n/f", "")
			w, f := e.resolve("w"), e.resolve("w/n/f")
			same(e, "itself", e.Files.Contains(w, w), true)
			same(e, "below", e.Files.Contains(w, f), true)
			same(e, "above", e.Files.Contains(f, w), false)
		}},
		{46, "containment goes by whole segments", All, 0, func(e *env) {
			same(e, "/a, /ab", contains(e, "/a", "/ab"), false)
			same(e, "/a, /a/..b", contains(e, "/a", "/a/..b"), true)
			same(e, "/, /x", contains(e, "/", "/x"), true)
			same(e, "/, /", contains(e, "/", "/"), true)
		}},
		{47, "containment minds case", All, 0, func(e *env) { same(e, "/A, /a/b", contains(e, "/A", "/a/b"), false) }},
		{48, "a link that leads out is not contained", All, 0, func(e *env) {
			e.mkdir("w")
			e.mkdir("outside")
			e.link(e.path("outside"), "w/esc")
			same(e, "contained", e.Files.Contains(e.resolve("w"), e.resolve("w/esc")), false)
		}},
	}
}

func contains(e *env, parent, child string) bool {
	return e.Files.Contains(remotefs.Target{Key: parent, Display: parent}, remotefs.Target{Key: child, Display: child})
}

// urls takes pairs of a key and its URL without "file://".
func urls(pairs ...string) func(*env) {
	return func(e *env) {
		for i := 0; i < len(pairs); i += 2 {
			got, err := e.Files.FileURL(remotefs.Target{Key: pairs[i], Display: pairs[i]})
			e.must(err)
			same(e, pairs[i], got, "file://"+pairs[i+1])
		}
	}
}
