package remotefs

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/afield-dev/afield/pkg/fault"
)

// streamed reads the double's file piece by piece.
func streamed(d *double) (string, error) {
	s, err := New(d, Options{}).StreamText(ctx, AtPath("f", ""))
	if err != nil {
		return "", err
	}
	defer s.Close()
	var b strings.Builder
	_, err = s.WriteTo(&b)
	return b.String(), err
}

// Borders of pieces mean nothing (cases 92, 93, 97, 102, 106).
func TestPiecesOfAStream(t *testing.T) {
	a := strings.Repeat
	for _, c := range []struct {
		name   string
		pieces []string
		code   fault.Code
	}{
		{"case 92: a NUL after the sample", []string{a("a", 8192), "\x00t"}, ""},
		{"case 93: the sample spans pieces", []string{a("a", 8000), a("a", 191) + "\x00"}, fault.FSNotText},
		{"case 97: one byte at a time", strings.Split("\xEF|\xBB|\xBF|\xC3|\xA9|\xE2|\x82|\xAC|\xF0|\x9F|\x98|\x80", "|"), ""},
		{"case 102: a sequence in two pieces", []string{"A\xE2", "\x82\xACB"}, ""},
		{"case 102: nothing but a sequence in two pieces", []string{"\xE2", "\x82\xAC"}, ""},
		{"case 106: an empty file", nil, ""},
		{"half a mark", []string{"\xEF", "\xBB"}, fault.FSNotText},
		{"cut by the end", []string{"a", "\xE2\x82"}, fault.FSNotText},
	} {
		d := &double{pieces: c.pieces, size: -1, version: "v"}
		got, err := streamed(d)
		if fault.CodeOf(err) != c.code || err == nil && got != strings.Join(c.pieces, "") {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
		if d.closed != 1 {
			t.Errorf("%s: closed %d times", c.name, d.closed)
		}
	}
}

// A consumer that stops early ends the stream once, and a failure of that is
// nobody's (case 105).
func TestStoppingEarlyCancelsOnce(t *testing.T) {
	d := &double{pieces: []string{"first"}, size: 100, version: "v", open: true}
	s, err := New(d, Options{}).StreamText(ctx, AtPath("f", ""))
	if err != nil {
		t.Fatal(err)
	}
	if p, err := s.Next(); err != nil || string(p) != "first" {
		t.Fatalf("%q, %v", p, err)
	}
	_ = s.Close()
	if d.closed != 1 {
		t.Errorf("closed %d times", d.closed)
	}
	if _, err := New(&double{pieces: []string{"ok"}, size: -1}, Options{}).ReadText(ctx, AtPath("f", "")); err != nil {
		t.Errorf("a failure to close reached the reader: %v", err)
	}
}

// The limit of bytes is seen by the size, without a request for content, and by
// what arrives, without waiting for more (cases 117, 121).
func TestLimitOfBytes(t *testing.T) {
	d := &double{pieces: []string{"four"}, size: -1}
	_, err := New(d, Options{}).ReadBytes(ctx, AtPath("f", ""), 3)
	wantCode(t, err, fault.FSTooLarge)
	if d.closed != 0 {
		t.Error("content was requested")
	}
	d = &double{pieces: []string{"abc", "def"}, size: 4, open: true}
	_, err = New(d, Options{}).ReadBytes(ctx, AtPath("f", ""), 4)
	wantCode(t, err, fault.FSTooLarge)
	if d.closed != 1 {
		t.Errorf("closed %d times", d.closed)
	}
}

// FuzzTextStream holds a stream in pieces to the rules on the whole.
func FuzzTextStream(f *testing.F) {
	for _, s := range []string{"", "\xEF\xBB\xBFx", "\xEF\xBB", "a\x00b", "é€😀", "\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80",
		"a\xE2\x82", strings.Repeat("a", 8191) + "\x00", strings.Repeat("a", 8192) + "\x00\xFF", "\xEF\xBF\xBE\xC2\x85"} {
		f.Add([]byte(s), uint8(1))
		f.Add([]byte(s), uint8(3))
	}
	f.Fuzz(func(t *testing.T, content []byte, step uint8) {
		var pieces []string
		for rest := string(content); rest != ""; {
			n := min(len(rest), int(step)+1)
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		got, err := streamed(&double{pieces: pieces, size: -1})
		isText := utf8.Valid(content) && bytes.IndexByte(content[:min(len(content), 8192)], 0) < 0
		if isText != (err == nil) || isText && got != string(content) || !isText && !fault.Is(err, fault.FSNotText) {
			t.Fatalf("%q in pieces of %d: %q, %v", content, step+1, got, err)
		}
		if !strings.HasPrefix(string(content), got) || !utf8.ValidString(got) {
			t.Fatalf("handed out %q of %q", got, content)
		}
	})
}

// FuzzContent holds the check of content that passes to the rule on the whole.
func FuzzContent(f *testing.F) {
	f.Add([]byte("é€😀"), uint8(0))
	f.Add([]byte("\xE2\x82"), uint8(1))
	f.Add([]byte("a\xED\xA0\x80"), uint8(2))
	f.Fuzz(func(t *testing.T, on []byte, step uint8) {
		got, err := io.ReadAll(&content{size: -1, rest: &slow{bytes.NewReader(on), int(step) + 1}})
		if valid := utf8.Valid(on); valid != (err == nil) || valid && !bytes.Equal(got, on) {
			t.Fatalf("%q in pieces of %d: %q, %v", on, step+1, got, err)
		}
	})
}

// slow gives few bytes at a time.
type slow struct {
	io.Reader
	step int
}

func (s *slow) Read(p []byte) (int, error) { return s.Reader.Read(p[:min(len(p), s.step)]) }
