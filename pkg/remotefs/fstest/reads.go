package fstest

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

const mark = "\xEF\xBB\xBF"

// readCases are table E: readText and streamText.
func readCases() []Case {
	a := strings.Repeat
	return []Case{
		{84, "text is given as it is", All, 0, readable("one\ntwo\nthree")},
		{85, "an empty file", All, 0, readable("")},
		{86, "line ends are not touched", All, 0, readable("a\r\nb\rc\n")},
		{87, "what is absent or a directory is not read", All, 0, func(e *env) {
			e.mkdir("d")
			e.unread("none", fault.FSNotFound)
			e.unread("d", fault.FSNotRegularFile)
		}},
		{88, "a FIFO is refused at once", All, 0, func(e *env) {
			e.must(e.World.Fifo(e.path("fifo")))
			e.unread("fifo", fault.FSNotRegularFile)
		}},
		{89, "a NUL or a stray byte is no text", All, 0, unreadable("h\x00i", "h\xFFi")},
		{90, "a NUL at the end of the sample", All, 0, unreadable(a("a", 8191) + "\x00")},
		{91, "a NUL behind the sample is text", All, 0, readable(a("a", 8192) + "\x00tail")},
		{94, "a stray byte behind the sample", All, 0, unreadable(a("a", 9000) + "\x00\xFF")},
		{95, "UTF-16", All, 0, unreadable("\xFF\xFEa\x00")},
		{96, "one byte-order mark is taken off", All, 0, func(e *env) {
			for _, text := range []string{"", "a", "\uFEFFa"} {
				e.file("f", mark+text)
				e.reads("f", text, true)
			}
			e.file("f", "a"+mark+"b")
			e.reads("f", "a\uFEFFb", false)
		}},
		{98, "half a byte-order mark", All, 0, unreadable("\xEF\xBB")},
		{99, "overlong forms, surrogates and beyond Unicode", All, 0,
			unreadable("\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\x80")},
		{100, "the edges of Unicode", All, 0, readable("\xF4\x8F\xBF\xBF", "\xEF\xBF\xBE", "\xEF\xBF\xBD", "\xC2\x85")},
		{101, "a sequence cut by the end", All, 0, unreadable("a\xE2\x82")},
		{103, "a sequence across a border of pieces", All, 0,
			readable(a("a", 65535)+"€b", a("a", 256<<10-1)+"€b", a("a", 256<<10-2)+"😀", a("é", 200_000))},
		{104, "a stray byte after much text", All, 0, unreadable(a("a", 65536)+"\xFF", a("a", 600_000)+"\xFF")},
		{110, "a file that grows while it is streamed", All, 0, func(e *env) {
			first := a("a", 1<<20)
			got := e.meanwhile(first, func() error { return e.World.Append(e.path("f"), []byte("more")) })
			if !strings.HasPrefix(got, first) {
				e.Errorf("%d bytes without the first content", len(got))
			}
		}},
		{111, "a file that is cut while it is streamed", All, 0, func(e *env) {
			first := a("a", 1<<20)
			got := e.meanwhile(first, func() error { return e.World.Truncate(e.path("f"), 300_000) })
			if !strings.HasPrefix(first, got) {
				e.Errorf("%d bytes that are not of the first content", len(got))
			}
		}},
		{112, "a file that may not be read", All, Unprivileged, func(e *env) {
			e.file("f", "x")
			e.chmod("f", 0)
			e.unread("f", fault.FSPermissionDenied)
		}},
		{113, "a file whose size is said to be 0", All, 0, func(e *env) {
			got, err := e.Files.ReadText(e.ctx, remotefs.AtPath("/proc/version", ""))
			if err != nil || !strings.HasPrefix(got.Text, "Linux version") || int(got.Bytes) != len(got.Text) {
				e.Errorf("%+v, %v", got, err)
			}
		}},
		{114, "a cancelled read", All, 0, cancelledReads},
		{115, "eleven mebibytes", All, 0, func(e *env) {
			text := a("0123456789abcde\n", 11<<16)
			e.file("f", text)
			e.reads("f", text, false)
		}},
	}
}

// reads holds what readText and streamText give.
func (e *env) reads(name, want string, bom bool) {
	e.Helper()
	got, err := e.Files.ReadText(e.ctx, e.at(name))
	if err != nil || got.Text != want || got.BOM != bom {
		e.Errorf("%s: text %s, mark %v, %v; want %s", name, short(got.Text), got.BOM, err, short(want))
	}
	if err == nil {
		same(e, "version", got.Version, e.version(name))
	}
	exact := want
	if bom {
		exact = mark + want
	}
	streamed, err := e.stream(name)
	if err != nil || streamed != exact {
		e.Errorf("%s: stream %s, %v; want %s", name, short(streamed), err, short(exact))
	}
	same(e, "bytes", int(got.Bytes), len(exact))
}

// stream reads a file piece by piece.
func (e *env) stream(name string) (string, error) {
	s, err := e.Files.StreamText(e.ctx, e.at(name))
	if err != nil {
		return "", err
	}
	defer s.Close()
	return drain(s)
}

// drain gives what is left of a stream; an error only if it is not its end.
func drain(s *remotefs.TextStream) (string, error) {
	var b strings.Builder
	for {
		piece, err := s.Next()
		if errors.Is(err, io.EOF) {
			return b.String(), nil
		}
		if err != nil {
			return b.String(), err
		}
		b.Write(piece)
	}
}

// unread holds that a file can be read in no way.
func (e *env) unread(name string, code fault.Code) {
	e.Helper()
	_, err := e.Files.ReadText(e.ctx, e.at(name))
	e.fails(err, code)
	_, err = e.stream(name)
	e.fails(err, code)
	_, err = e.Files.ReadBytes(e.ctx, e.at(name), 1<<20)
	if code != fault.FSNotText {
		e.fails(err, code)
	} else if err != nil {
		e.Errorf("raw bytes: %v", err)
	}
}

func readable(texts ...string) func(*env) {
	return func(e *env) {
		for _, text := range texts {
			e.file("f", text)
			e.reads("f", text, false)
		}
	}
}

func unreadable(contents ...string) func(*env) {
	return func(e *env) {
		for _, content := range contents {
			e.file("f", content)
			e.unread("f", fault.FSNotText)
		}
	}
}

// meanwhile streams a file, acts after the first piece, and gives all pieces.
func (e *env) meanwhile(first string, act func() error) string {
	e.Helper()
	e.file("f", first)
	s, err := e.Files.StreamText(e.ctx, e.at("f"))
	if err != nil {
		e.Fatalf("stream: %v", err)
	}
	defer s.Close()
	piece, err := s.Next()
	if err != nil {
		e.Fatalf("first piece: %v", err)
	}
	head := string(piece)
	e.must(act())
	rest, err := drain(s)
	if err != nil {
		e.Errorf("after %d bytes: %v", len(head)+len(rest), err)
	}
	return head + rest
}

func cancelledReads(e *env) {
	e.file("f", strings.Repeat("a", 2<<20))
	_, err := e.Files.ReadText(e.cancelled(), e.at("f"))
	e.fails(err, fault.FSAborted)
	_, err = e.Files.StreamText(e.cancelled(), e.at("f"))
	e.fails(err, fault.FSAborted)
	ctx, cancel := context.WithCancel(e.ctx)
	defer cancel()
	s, err := e.Files.StreamText(ctx, e.at("f"))
	if err != nil {
		e.Fatalf("stream: %v", err)
	}
	defer s.Close()
	if _, err := s.Next(); err != nil {
		e.Fatalf("first piece: %v", err)
	}
	cancel()
	_, err = drain(s)
	e.fails(err, fault.FSAborted)
}
