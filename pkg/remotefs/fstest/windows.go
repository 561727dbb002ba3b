package fstest

import (
	"strconv"
	"strings"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// view is a window of a file of this content: the texts of its lines, the total
// and a part of its footer; or the code of the refusal.
type view struct {
	on            string
	offset, limit int // 0 = default
	cap           int // of bytes; 0 = default
	lines         []string
	count         int // of lines where they are not given
	total         int
	footer        string
	code          fault.Code
	says          string
}

// windowCases are table W: the read window.
func windowCases() []Case {
	a, cut := strings.Repeat, "... (line truncated to 2000 chars)"
	long := a("x", 2000)
	return []Case{
		{251, "a whole file, rendered", All, 0, func(e *env) {
			e.file("f", "hello\nworld")
			v := e.viewed("f", remotefs.WindowOptions{Offset: 1, Limit: 2000})
			same(e, "text", v.Render(v.Target.Display), "<path>"+e.path("f")+"</path>\n<type>file</type>\n<content>\n"+
				"1: hello\n2: world\n\n(End of file - total 2 lines)\n</content>")
			same(e, "version", v.Version, e.version("f"))
		}},
		viewed(252, "how lines are counted", view{on: ""}, view{on: "\n", lines: []string{""}, total: 1},
			view{on: "\n\n", lines: []string{"", ""}, total: 2}, view{on: "a\n", lines: []string{"a"}, total: 1},
			view{on: "a\n\n", lines: []string{"a", ""}, total: 2}, view{on: "\r", lines: []string{""}, total: 1},
			view{on: "\r\n", lines: []string{""}, total: 1}),
		viewed(253, "one CR at the end belongs to the line end", view{on: "one\r\ntwo\r\n", lines: []string{"one", "two"}, total: 2},
			view{on: "a\r\r\n", lines: []string{"a\r"}, total: 1}, view{on: "a\rb", lines: []string{"a\rb"}, total: 1}),
		viewed(254, "a window in the middle", view{on: "1\n2\n3\n4", offset: 2, limit: 2, lines: []string{"2", "3"}, total: 4,
			footer: "(Showing lines 2-3 of 4. Use offset=4 to continue.)"}),
		viewed(255, "an offset past the end", view{on: "1\n2", offset: 3, code: fault.FSNotFound, says: "(2 lines)"},
			view{on: "1\n2\n", offset: 3, code: fault.FSNotFound, says: "offset 3 is out of range for"}),
		viewed(256, "an empty file", view{on: "", footer: "(End of file - total 0 lines)"},
			view{on: "", offset: 2, code: fault.FSNotFound, says: "(0 lines)"}),
		viewed(257, "a long line is cut", view{on: long, lines: []string{long}, total: 1}, view{on: long + "y", lines: []string{long + cut}, total: 1}),
		viewed(258, "the CR of the line end does not count", view{on: long + "\r\n", lines: []string{long}, total: 1},
			view{on: long + "y\r\n", lines: []string{long + cut}, total: 1}),
		viewed(259, "a CR in a long line is text", view{on: long + "\ryyy\n", lines: []string{long + cut}, total: 1}),
		viewed(260, "no half letters", view{on: long[1:] + "😀z", lines: []string{long[1:] + cut}, total: 1}),
		viewed(261, "a letter of two units fits", view{on: long[2:] + "😀", lines: []string{long[2:] + "😀"}, total: 1}),
		viewed(262, "the byte cap", view{on: "aaaa\nbbbb\ncccc", cap: 9, lines: []string{"aaaa", "bbbb"}, total: 3, footer: "(Output capped. Showing lines 1-2."},
			view{on: "aaaa\nbbbb\ncccc", cap: 8, lines: []string{"aaaa"}, total: 3, footer: "(Output capped. Showing lines 1-1."}),
		viewed(263, "no later short line", view{on: "aaaa\nbbbbbbbb\nc", cap: 6, lines: []string{"aaaa"}, total: 3}),
		viewed(264, "a first line beyond the cap", view{on: "1\n2\n" + a("x", 50), offset: 3, cap: 10, total: 3,
			footer: "(Output capped. Showing lines 3-2. Use offset=3 to continue.)"}),
		viewed(265, "the default cap on short lines", view{on: a(a("x", 99)+"\n", 600), count: 512, total: 600, footer: "(Output capped."}),
		viewed(266, "the default cap counts bytes", view{on: a(a("你", 400)+"\n", 100), count: 42, total: 100, footer: "(Output capped."}),
		viewed(267, "a line without an end", view{on: a("x", 3<<20), lines: []string{long + cut}, total: 1}),
		{268, "large files and files of unknown size", All, 0, func(e *env) {
			e.file("f", a("0123456789abcde\n", 10<<16)+"end")
			v := e.viewed("f", remotefs.WindowOptions{Offset: 10<<16 + 1, Limit: 5})
			same(e, "lines", len(v.Lines), 1)
			same(e, "total", v.Total, 10<<16+1)
			v = e.viewed("/proc/version", remotefs.WindowOptions{Offset: 1, Limit: 5})
			same(e, "total", v.Total, 1)
		}},
		{269, "what is asked for is checked before anything is read", All, 0, func(e *env) {
			for _, c := range []struct {
				opts remotefs.WindowOptions
				says string
			}{
				{remotefs.WindowOptions{Offset: 0, Limit: 0}, "offset must be a positive integer"},
				{remotefs.WindowOptions{Offset: -1, Limit: 1}, "offset must be a positive integer"},
				{remotefs.WindowOptions{Offset: 1, Limit: 0}, "limit must be a positive integer"},
				{remotefs.WindowOptions{Offset: 1, Limit: 2001}, "limit must be less than or equal to 2000"},
			} {
				_, err := remotefs.ReadView(e.ctx, e.Files, e.at("none"), c.opts)
				e.fails(err, fault.Usage)
				e.says(err, c.says)
			}
			_, err := remotefs.ReadView(e.ctx, e.Files, e.at("  "), remotefs.WindowOptions{})
			e.fails(err, fault.Usage)
			e.says(err, "file_path must be a non-empty string")
		}},
		viewed(270, "the byte-order mark is no text", view{on: mark + "x\r\ny\r\n", lines: []string{"x", "y"}, total: 2}),
		viewed(271, "a late NUL is shown", view{on: a("a\n", 5000) + "\x00", offset: 5001, lines: []string{"\x00"}, total: 5001}),
	}
}

// viewed is a case of windows, each of a file of its own.
func viewed(num int, name string, views ...view) Case {
	return Case{num, name, All, 0, func(e *env) {
		for _, v := range views {
			e.file("f", v.on)
			e.window(v)
		}
	}}
}

func (e *env) window(v view) {
	e.Helper()
	opts := remotefs.WindowOptions{Offset: max(v.offset, 1), Limit: v.limit, MaxBytes: v.cap}
	if v.limit == 0 {
		opts.Limit = remotefs.DefaultReadLimit
	}
	got, err := remotefs.ReadView(e.ctx, e.Files, e.at("f"), opts)
	if v.code != "" {
		e.fails(err, v.code)
		e.says(err, v.says)
		return
	}
	if err != nil {
		e.Fatalf("view of %s: %v", short(v.on), err)
	}
	same(e, "total of "+short(v.on), got.Total, v.total)
	same(e, "lines of "+short(v.on), len(got.Lines), max(v.count, len(v.lines)))
	for i, text := range v.lines {
		same(e, "line "+strconv.Itoa(i+1), got.Lines[i].Text, text)
		same(e, "number", got.Lines[i].Number, opts.Offset+i)
	}
	if text := got.Render("f"); !strings.Contains(text, v.footer) {
		e.Errorf("no %q in %s", v.footer, text[max(0, len(text)-120):])
	}
}

// viewed reads a window that is there.
func (e *env) viewed(name string, opts remotefs.WindowOptions) remotefs.View {
	e.Helper()
	v, err := remotefs.ReadView(e.ctx, e.Files, e.at(name), opts)
	if err != nil {
		e.Fatalf("view of %s: %v", name, err)
	}
	return v
}
