package fstest

import (
	"strings"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// one is an edit of a file of this content: what it holds then, or the code of
// the refusal.
type one struct {
	on, old, fresh string
	all            bool
	disk           string
	code           fault.Code
}

// editCases are table I: editText.
func editCases() []Case {
	a := strings.Repeat
	endings := a("\r\n", 50)
	return append([]Case{
		edited(189, "CR LF stays", one{on: "a\r\nOLD\r\nb\r\n", old: "OLD", fresh: "NEW", disk: "a\r\nNEW\r\nb\r\n"}),
		edited(190, "a mixed file keeps the endings that nobody touched",
			one{on: "one\r\ntwo\r\nthree\n", old: "two\r\n", fresh: "TWO\r\n", disk: "one\r\nTWO\r\nthree\n"}),
		edited(191, "one CR LF among LFs", one{on: "a\nb\nc\r\nd", old: "d", fresh: "D", disk: "a\nb\nc\r\nD"}),
		edited(192, "a tie is LF", one{on: "a\nb\r\nd", old: "d", fresh: "D", disk: "a\nb\r\nD"},
			one{on: "a\nb\r\nd", old: "d", fresh: "x\ny", disk: "a\nb\r\nx\ny"}),
		edited(193, "CR LF in the old text matches LF", one{on: "a\nb\n", old: "a\r\nb", fresh: "X", disk: "X\n"}),
		edited(194, "LF in both texts becomes CR LF", one{on: "a\r\nb\r\n", old: "a\nb", fresh: "X\nY", disk: "X\r\nY\r\n"}),
		edited(195, "a line end is replaced", one{on: "a\r\nb", old: "\r\n", fresh: "-", disk: "a-b"}),
		edited(196, "all line ends are replaced", one{on: "a\r\nb\r\n", old: "\n", fresh: "|", all: true, disk: "a|b|"}),
		edited(197, "the CR of a CR LF cannot be matched", one{on: "a\r\nb\r\n", old: "\r", fresh: "X", code: fault.FSEditNotFound}),
		edited(198, "a lone CR is text", one{on: "a\rb\rc", old: "b", fresh: "B", disk: "a\rB\rc"}),
		edited(199, "a CR before a CR LF", one{on: "a\r\r\nb", old: "b", fresh: "B", disk: "a\r\r\nB"}),
		edited(200, "a CR put before an LF", one{on: "a\nb", old: "a", fresh: "a\r", disk: "a\r\nb"}),
		edited(201, "no newline is added at the end", one{on: "a\nb", old: "b", fresh: "c", disk: "a\nc"}),
		edited(202, "a line end behind four thousand letters", one{on: a("x", 4095) + "\r\nt", old: "t", fresh: "T", disk: a("x", 4095) + "\r\nT"}),
		edited(203, "the style is that of the whole file",
			one{on: "a\n" + a("x", 4094) + endings + "t", old: "t", fresh: "T\n", disk: "a\n" + a("x", 4094) + endings + "T\r\n"}),
		edited(204, "letters of two units", one{on: a("😀", 2047) + "\r\nt", old: "t", fresh: "T", disk: a("😀", 2047) + "\r\nT"},
			one{on: a("😀", 2048) + "\r\nt", old: "t", fresh: "T", disk: a("😀", 2048) + "\r\nT"}),
		edited(205, "matches do not overlap", one{on: "aaa", old: "aa", fresh: "b", disk: "ba"}),
		edited(206, "two matches are ambiguous", one{on: "aaaa", old: "aa", fresh: "b", code: fault.FSAmbiguousEdit},
			one{on: "aaaa", old: "aa", fresh: "b", all: true, disk: "bb"}),
		edited(207, "what was put in is not matched again", one{on: "abab", old: "a", fresh: "aa", all: true, disk: "aabaab"}),
		edited(208, "none, many, all", one{on: "a a a", old: "z", fresh: "X", code: fault.FSEditNotFound},
			one{on: "a a a", old: "a", fresh: "X", code: fault.FSAmbiguousEdit},
			one{on: "a a a", old: "a", fresh: "b", all: true, disk: "b b b"}),
		edited(209, "an empty old text", one{on: "abc", fresh: "x", code: fault.FSEditNotFound},
			one{on: "", fresh: "x", code: fault.FSEditNotFound}, one{on: "a\x00b", fresh: "x", code: fault.FSNotText}),
		edited(211, "the new text may be empty", one{on: "abc", old: "b", fresh: "", disk: "ac"}, one{on: "ac", old: "ac", fresh: "", disk: ""}),
		edited(212, "dollar signs mean nothing", one{on: "abc", old: "b", fresh: "$&$$$`", disk: "a$&$$$`c"}),
		edited(214, "what is no text is not edited", one{on: "h\xFFi", old: "h", fresh: "H", code: fault.FSNotText},
			one{on: "a\xE2\x82", old: "a", fresh: "b", code: fault.FSNotText}),
		edited(215, "a NUL anywhere", one{on: a("a", 8192) + "\x00tail", old: "tail", fresh: "end", code: fault.FSNotText}),
		edited(216, "nothing is composed", one{on: "caf\u00e9", old: "e\u0301", fresh: "x", code: fault.FSEditNotFound}),
	}, editRules()...)
}

// edited is a case of edits, each of a file of its own.
func edited(num int, name string, edits ...one) Case {
	return Case{num, name, All, 0, func(e *env) {
		for _, x := range edits {
			e.file("f", x.on)
			req := change(x.old, x.fresh, "")
			req.Edits[0].All = x.all
			if x.code != "" {
				e.refused("f", func() error { _, err := e.Files.EditText(e.ctx, e.at("f"), req); return err }, x.code)
				continue
			}
			out, err := e.Files.EditText(e.ctx, e.at("f"), req)
			if err != nil {
				e.Fatalf("edit of %s: %v", short(x.on), err)
			}
			e.holds("f", x.disk)
			e.fresh(out.Target, out.Version)
			fold := func(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }
			e.text("before", out.Before, fold(x.on))
			e.text("after", out.After, strings.ReplaceAll(fold(x.on), fold(x.old), fold(x.fresh)))
			same(e, "bytes", int(out.Bytes), len(x.disk))
			e.clean()
		}
	}}
}

// editRules are about guards, kinds and what stays.
func editRules() []Case {
	return []Case{
		{188, "an edit of the version that was read", All, 0, func(e *env) {
			e.file("f", "hello world")
			out := e.edit("f", "world", "there", e.version("f"))
			e.text("before", out.Before, "hello world")
			e.text("after", out.After, "hello there")
			same(e, "replacements", out.Replacements, 1)
			e.holds("f", "hello there")
		}},
		{188, "several edits are published together or not at all", All, 0, func(e *env) {
			e.file("f", "one two")
			req := remotefs.EditRequest{Edits: []remotefs.Edit{{Old: "one", New: "1"}, {Old: "1 two", New: "12"}}}
			_, err := e.Files.EditText(e.ctx, e.at("f"), req)
			e.must(err)
			e.holds("f", "12")
			req.Edits = []remotefs.Edit{{Old: "1", New: "x"}, {Old: "none", New: "y"}}
			e.refused("f", func() error { _, err := e.Files.EditText(e.ctx, e.at("f"), req); return err }, fault.FSEditNotFound)
		}},
		{188, "a dry run changes nothing", All, 0, func(e *env) {
			e.file("f", "hello world")
			version := e.version("f")
			req := change("world", "there", version)
			req.DryRun = true
			out, err := e.Files.EditText(e.ctx, e.at("f"), req)
			e.must(err)
			e.text("after", out.After, "hello there")
			same(e, "version", out.Version, version)
			same(e, "version", e.version("f"), version)
		}},
		{190, "the whole file in one line ending on request", All, 0, func(e *env) {
			e.file("f", "one\r\ntwo\r\nthree\n")
			req := change("two\r\n", "TWO\r\n", "")
			req.NormalizeEOL = true
			_, err := e.Files.EditText(e.ctx, e.at("f"), req)
			e.must(err)
			e.holds("f", "one\r\nTWO\r\nthree\r\n")
		}},
		{209, "an empty old text comes after the guard", All, 0, func(e *env) {
			e.fails(e.alter("none", "", "x", "")(), fault.FSStaleVersion)
			e.file("f", "abc")
			e.refused("f", e.alter("f", "", "x", "wrong"), fault.FSStaleVersion)
		}},
		{210, "the same text again is a new version", All, Exact, func(e *env) {
			e.file("f", "abc")
			before := e.version("f")
			differs(e, before, e.edit("f", "b", "b", "").Version)
			e.holds("f", "abc")
		}},
		{213, "the byte-order mark stays", All, 0, func(e *env) {
			e.file("f", mark+"ab")
			out := e.edit("f", "b", "c", "")
			e.text("before", out.Before, "ab")
			e.text("after", out.After, "ac")
			e.holds("f", mark+"ac")
		}},
		{217, "a stale guard comes before the match", All, 0, func(e *env) {
			e.file("f", "hello world")
			before := e.version("f")
			e.file("f", "goodbye")
			e.refused("f", e.alter("f", "world", "there", before), fault.FSStaleVersion)
		}},
		{218, "what is absent is stale", All, 0, func(e *env) {
			e.file("f", "hello")
			before := e.version("f")
			e.must(e.World.Remove(e.path("f")))
			e.refused("f", e.alter("f", "hello", "x", before), fault.FSStaleVersion)
			e.refused("never", e.alter("never", "hello", "x", ""), fault.FSStaleVersion)
		}},
		{219, "a directory comes before the guard", All, 0, func(e *env) {
			e.mkdir("d")
			e.refused("d", e.alter("d", "a", "b", "wrong"), fault.FSNotRegularFile)
		}},
		{220, "an edit through a link", All, Exact, func(e *env) {
			e.file("real", "hello world")
			e.link("real", "link")
			through := e.version("link")
			e.edit("link", "world", "there", e.version("real"))
			e.holds("real", "hello there")
			e.kind("link", Symlink)
			e.refused("real", e.alter("link", "there", "x", through), fault.FSStaleVersion)
		}},
		{221, "an edit keeps the mode", All, 0, func(e *env) {
			e.file("f", "abc")
			e.chmod("f", 0o640)
			e.edit("f", "b", "c", "")
			e.mode("f", 0o640)
		}},
		{222, "the version of an edit guards the next", All, 0, func(e *env) {
			e.file("f", "abc")
			e.edit("f", "xc", "xd", e.edit("f", "b", "x", "").Version)
			e.holds("f", "axd")
		}},
		{223, "a file that may not be read", All, Unprivileged, func(e *env) {
			e.file("f", "abc")
			e.chmod("f", 0)
			e.refused("f", e.alter("f", "b", "c", ""), fault.FSPermissionDenied)
		}},
	}
}
