package remotefs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/afield-dev/afield/pkg/fault"
)

// whole are the options of a view without flags.
var whole = WindowOptions{Offset: 1, Limit: DefaultReadLimit}

// window gives the window of text, made from one piece and from pieces of 1, 7
// and 256 bytes, which must agree.
func window(t *testing.T, text string, opts WindowOptions) Window {
	t.Helper()
	win, err := WindowOf([]byte(text), "f", opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{1, 7, 256} {
		got, err := ReadView(context.Background(), pieces{text, size}, AtPath("f", ""), opts)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(win, got.Window); d != "" {
			t.Fatalf("pieces of %d: %s", size, d)
		}
	}
	return win
}

func texts(w Window) []string {
	out := []string{}
	for _, l := range w.Lines {
		out = append(out, l.Text)
	}
	return out
}

// pieces is a world with one file that comes in pieces of a size.
type pieces struct {
	text string
	size int
}

func (p pieces) StreamText(ctx context.Context, at At) (*TextStream, error) {
	f := &pieceFile{Reader: strings.NewReader(p.text), size: p.size}
	return NewTextStream(ctx, f, Target{Key: "/f", Display: at.Path}), nil
}

func (pieces) Facts() (f Facts)                                                     { return }
func (pieces) Resolve(context.Context, string, string) (t Target, err error)        { return }
func (pieces) ProcessPath(Target) (p string, err error)                             { return }
func (pieces) FileURL(Target) (u string, err error)                                 { return }
func (pieces) Contains(Target, Target) bool                                         { return false }
func (pieces) Stat(context.Context, At) (t Target, i *Info, err error)              { return }
func (pieces) Lstat(context.Context, string, string) (t Target, i *Info, err error) { return }
func (pieces) ReadText(context.Context, At) (t Text, err error)                     { return }
func (pieces) ReadBytes(context.Context, At, int64) (b Bytes, err error)            { return }
func (pieces) ListDir(context.Context, At) (t Target, e []DirEntry, err error)      { return }
func (pieces) WriteText(context.Context, At, WriteRequest) (o WriteOutcome, err error) {
	return
}
func (pieces) EditText(context.Context, At, EditRequest) (o EditOutcome, err error) { return }

type pieceFile struct {
	io.Reader
	size int
}

func (f *pieceFile) Read(p []byte) (int, error) { return f.Reader.Read(p[:min(len(p), f.size)]) }
func (f *pieceFile) Close() error               { return nil }
func (f *pieceFile) Key() string                { return "/f" }
func (f *pieceFile) Info() *Info                { return &Info{Version: "v"} }

// Case 251: the rendered text.
func TestViewRendersNumberedLines(t *testing.T) {
	want := "<path>/w/f</path>\n<type>file</type>\n<content>\n1: hello\n2: world\n\n(End of file - total 2 lines)\n</content>"
	if d := cmp.Diff(want, window(t, "hello\nworld", whole).Render("/w/f")); d != "" {
		t.Error(d)
	}
	empty := "<path>f</path>\n<type>file</type>\n<content>\n(End of file - total 0 lines)\n</content>"
	if d := cmp.Diff(empty, window(t, "", whole).Render("f")); d != "" {
		t.Error(d)
	}
}

// Case 252: what is a line.
func TestWindowCountsLines(t *testing.T) {
	for text, want := range map[string]int{"": 0, "\n": 1, "\n\n": 2, "a\n": 1, "a\n\n": 2, "\r": 1, "\r\n": 1} {
		if got := window(t, text, whole).Total; got != want {
			t.Errorf("%q has %d lines, want %d", text, got, want)
		}
	}
}

// Cases 253 and 270: one carriage return at the end goes, and the mark.
func TestWindowLineEndings(t *testing.T) {
	for text, want := range map[string][]string{
		"one\r\ntwo\r\n":        {"one", "two"},
		"a\r\r\n":               {"a\r"},
		"a\rb":                  {"a\rb"},
		"\uFEFFx\r\ny\r\n":      {"x", "y"},
		"\uFEFF":                {},
		"\uFEFF\uFEFFx":         {"\uFEFFx"},
		"\r":                    {""},
		"last without\nend\r":   {"last without", "end"},
		"\uFEFF\n\r\n\r\r\nx\r": {"", "", "\r", "x"},
	} {
		win := window(t, text, whole)
		if d := cmp.Diff(want, texts(win)); d != "" {
			t.Errorf("%q: %s", text, d)
		}
		if win.BOM != strings.HasPrefix(text, "\uFEFF") {
			t.Errorf("%q: bom %v", text, win.BOM)
		}
	}
}

// Case 254 and the footers.
func TestWindowFooters(t *testing.T) {
	four := "1\n2\n3\n4\n"
	for _, c := range []struct {
		opts   WindowOptions
		lines  []string
		footer string
	}{
		{WindowOptions{Offset: 2, Limit: 2}, []string{"2", "3"}, "(Showing lines 2-3 of 4. Use offset=4 to continue.)"},
		{WindowOptions{Offset: 3, Limit: 2}, []string{"3", "4"}, "(End of file - total 4 lines)"},
		{WindowOptions{Offset: 4, Limit: 2000}, []string{"4"}, "(End of file - total 4 lines)"},
		{WindowOptions{Offset: 1, Limit: 3}, []string{"1", "2", "3"}, "(Showing lines 1-3 of 4. Use offset=4 to continue.)"},
	} {
		win := window(t, four, c.opts)
		if d := cmp.Diff(c.lines, texts(win)); d != "" || win.footer() != c.footer {
			t.Errorf("%+v: %s %s", c.opts, d, win.footer())
		}
	}
}

// Cases 255 and 256: an offset behind the end.
func TestWindowOffsetOutOfRange(t *testing.T) {
	for _, c := range []struct {
		text   string
		offset int
		want   string
	}{
		{"a\nb", 3, `offset 3 is out of range for "f" (2 lines)`},
		{"a\nb\n", 3, `offset 3 is out of range for "f" (2 lines)`},
		{"", 2, `offset 2 is out of range for "f" (0 lines)`},
	} {
		_, err := WindowOf([]byte(c.text), "f", WindowOptions{Offset: c.offset, Limit: 1})
		if !fault.Is(err, fault.FSNotFound) || err.Error() != c.want {
			t.Errorf("%q at %d: %v", c.text, c.offset, err)
		}
	}
	if win := window(t, "", whole); len(win.Lines) != 0 || win.NextOffset() != 0 {
		t.Errorf("an empty file gives %+v", win)
	}
}

// Cases 257 to 261 and 267: where a line is cut.
func TestWindowCutsLongLines(t *testing.T) {
	const suffix = "... (line truncated to 2000 chars)"
	x := func(n int) string { return strings.Repeat("x", n) }
	for name, c := range map[string][2]string{
		"2000":                       {x(2000), x(2000)},
		"2001":                       {x(2001), x(2000) + suffix},
		"2000 and CR LF":             {x(2000) + "\r\n", x(2000)},
		"2001 and CR LF":             {x(2001) + "\r\n", x(2000) + suffix},
		"2000, CR and more":          {x(2000) + "\ryyy\n", x(2000) + suffix},
		"1999, a pair and more":      {x(1999) + "😀z", x(1999) + suffix},
		"1998 and a pair":            {x(1998) + "😀", x(1998) + "😀"},
		"5000":                       {x(5000), x(2000) + suffix},
		"2000 of three bytes":        {strings.Repeat("你", 2000), strings.Repeat("你", 2000)},
		"2000 of three bytes, CR LF": {strings.Repeat("你", 2000) + "\r\n", strings.Repeat("你", 2000)},
		"2000 of three bytes, CR":    {strings.Repeat("你", 2000) + "\rz", strings.Repeat("你", 2000) + suffix},
		"1000 pairs":                 {strings.Repeat("😀", 1000), strings.Repeat("😀", 1000)},
		"1001 pairs":                 {strings.Repeat("😀", 1001), strings.Repeat("😀", 1000) + suffix},
	} {
		if got := texts(window(t, c[0], whole)); len(got) != 1 || got[0] != c[1] {
			t.Errorf("%s: %d lines, first ends in %q", name, len(got), got[0][max(0, len(got[0])-40):])
		}
	}
}

// Case 267: a line without end costs bounded memory.
func TestWindowKeepsOnlyTheBeginningOfALine(t *testing.T) {
	w := newWindower(WindowOptions{Offset: 1, Limit: 1, MaxLineLength: 2000, MaxBytes: 51200})
	for range 1000 {
		w.write(bytes.Repeat([]byte("你"), 300))
		if len(w.line) > 3*2001+1 {
			t.Fatalf("%d bytes kept", len(w.line))
		}
	}
}

// Cases 262 to 264: the byte cap.
func TestWindowByteCap(t *testing.T) {
	for _, c := range []struct {
		text  string
		opts  WindowOptions
		lines int
	}{
		{"aaaa\nbbbb\ncccc", WindowOptions{Offset: 1, Limit: 9, MaxBytes: 9}, 2},
		{"aaaa\nbbbb\ncccc", WindowOptions{Offset: 1, Limit: 9, MaxBytes: 8}, 1},
		{"aaaa\nbbbbbbbb\nc", WindowOptions{Offset: 1, Limit: 9, MaxBytes: 6}, 1},
		{"a\nb\ncccccccc\nd", WindowOptions{Offset: 3, Limit: 9, MaxBytes: 6}, 0},
	} {
		win := window(t, c.text, c.opts)
		if len(win.Lines) != c.lines || !win.Capped || win.Total != strings.Count(c.text, "\n")+1 {
			t.Errorf("%q %+v: %+v", c.text, c.opts, win)
		}
	}
	win := window(t, "a\nb\ncccccccc\nd", WindowOptions{Offset: 3, Limit: 9, MaxBytes: 6})
	if got := win.footer(); got != "(Output capped. Showing lines 3-2. Use offset=3 to continue.)" {
		t.Error(got)
	}
}

// Cases 265 and 266: the cap of the defaults, in ASCII and in three-byte text.
func TestWindowDefaultByteCap(t *testing.T) {
	ascii := strings.Repeat(strings.Repeat("x", 99)+"\n", 600)
	if win := window(t, ascii, whole); len(win.Lines) != 512 || !win.Capped || win.Total != 600 {
		t.Errorf("%d lines, capped %v, total %d", len(win.Lines), win.Capped, win.Total)
	}
	cjk := strings.Repeat(strings.Repeat("你", 400)+"\n", 100)
	if win := window(t, cjk, whole); len(win.Lines) != 42 || !win.Capped {
		t.Errorf("%d lines, capped %v", len(win.Lines), win.Capped)
	}
}

// Case 269: usage errors, in order, before any I/O.
func TestViewUsage(t *testing.T) {
	for _, c := range []struct {
		path string
		opts WindowOptions
		want string
	}{
		{" \u00a0", WindowOptions{}, "file_path must be a non-empty string"},
		{"f", WindowOptions{Offset: 0, Limit: 0}, "offset must be a positive integer"},
		{"f", WindowOptions{Offset: -1, Limit: 1}, "offset must be a positive integer"},
		{"f", WindowOptions{Offset: 1, Limit: 0}, "limit must be a positive integer"},
		{"f", WindowOptions{Offset: 1, Limit: 2001}, "limit must be less than or equal to 2000"},
	} {
		_, err := ReadView(context.Background(), nil, AtPath(c.path, ""), c.opts)
		if !fault.Is(err, fault.Usage) || err.Error() != c.want {
			t.Errorf("%q %+v: %v", c.path, c.opts, err)
		}
	}
}

// Case 271: a NUL behind the sample is text, in it not.
func TestViewNUL(t *testing.T) {
	late := strings.Repeat("a", 8192) + "\x00"
	if win := window(t, late, whole); win.Total != 1 {
		t.Errorf("%+v", win)
	}
	for _, bad := range []string{strings.Repeat("a", 8191) + "\x00", "\xff"} {
		_, inMemory := WindowOf([]byte(bad), "f", whole)
		_, streamed := ReadView(context.Background(), pieces{bad, 100}, AtPath("f", ""), whole)
		if !fault.Is(inMemory, fault.FSNotText) || fmt.Sprint(inMemory) != fmt.Sprint(streamed) {
			t.Errorf("%v, %v", inMemory, streamed)
		}
	}
}

// The window from memory and the one from any pieces agree.
func FuzzWindow(f *testing.F) {
	f.Add("a\r\nbb\n\nc", 2, 3, 2, 5, 1)
	f.Add("\uFEFF😀😀\r\n", 1, 1, 3, 9, 2)
	f.Fuzz(func(t *testing.T, text string, offset, limit, line, cap, size int) {
		opts := WindowOptions{Offset: offset, Limit: limit, MaxLineLength: line % 50, MaxBytes: cap % 200}
		want, err := WindowOf([]byte(text), "f", opts)
		got, err2 := ReadView(context.Background(), pieces{text, 1 + (size&0xFF)%40}, AtPath("f", ""), opts)
		if fault.CodeOf(err) != fault.CodeOf(err2) { // which of two faults is seen first depends on the pieces
			t.Fatalf("%v, %v", err, err2)
		}
		if err == nil && !cmp.Equal(want, got.Window) {
			t.Fatal(cmp.Diff(want, got.Window))
		}
	})
}
