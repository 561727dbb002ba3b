package remoteexec

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/afield-dev/afield/pkg/fault"
)

// pushed gives a stream of a cap that got these chunks.
func pushed(max int64, chunks ...string) *Collected {
	c := NewCollected(max)
	for _, chunk := range chunks {
		c.Append([]byte(chunk))
	}
	return c
}

// read reads text and compares.
func read(t *testing.T, c *Collected, offset int64, want TextChunk) {
	t.Helper()
	got, err := c.ReadText(offset)
	if err != nil || got != want {
		t.Errorf("read %d: got %+v, %v, want %+v", offset, got, err, want)
	}
}

// C117, C118, C119, C120: the window is the last bytes, however they came.
func TestWindow(t *testing.T) {
	read(t, pushed(10, "aaaa", "bbbbbb", "cc"), 0, TextChunk{Text: "aabbbbbbcc", NextOffset: 12, Lossy: true})
	read(t, pushed(10, "0123456789abcdef"), 0, TextChunk{Text: "6789abcdef", NextOffset: 16, Lossy: true})

	c := pushed(10, "aaaaa")
	read(t, c, 0, TextChunk{Text: "aaaaa", NextOffset: 5})
	c.Append([]byte("bbbbb"))
	read(t, c, 5, TextChunk{Text: "bbbbb", NextOffset: 10})
	c.Append([]byte(strings.Repeat("c", 20)))
	read(t, c, 10, TextChunk{Text: "cccccccccc", NextOffset: 30, Lossy: true})

	c = pushed(4, "ab", "cdef")
	read(t, c, 0, TextChunk{Text: "cdef", NextOffset: 6, Lossy: true})
	read(t, c, 2, TextChunk{Text: "cdef", NextOffset: 6})
	read(t, c, 5, TextChunk{Text: "f", NextOffset: 6})
	read(t, c, 99, TextChunk{NextOffset: 6})
}

// C121: an offset is not negative.
func TestNegativeOffset(t *testing.T) {
	_, err := pushed(4).ReadFrom(-1)
	code(t, "bytes", err, fault.ExecInvalidSpec)
	_, err = pushed(4).ReadText(-1)
	code(t, "text", err, fault.ExecInvalidSpec)
}

// C115, CR-2, CR-4: against a plain model, for caps around the block size and
// any cut into chunks.
func TestWindowAgainstModel(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, max := range []int64{1, 2, 7, blockSize - 1, blockSize, blockSize + 1, 3*blockSize + 5} {
		c := NewCollected(max)
		var all []byte
		for range 60 {
			chunk := make([]byte, random.IntN(blockSize))
			for i := range chunk {
				chunk[i] = byte(random.Uint32())
			}
			c.Append(chunk)
			all = append(all, chunk...)
			at := int64(random.IntN(len(all) + 1))
			got, _ := c.ReadFrom(at)
			first := int64(len(all)) - min(max, int64(len(all)))
			want := all[min(int64(len(all)), maxOf(at, first)):]
			if string(got.Bytes) != string(want) || got.Lossy != (at < first) || got.NextOffset != int64(len(all)) {
				t.Fatalf("cap %d, %d bytes, offset %d: wrong window", max, len(all), at)
			}
		}
	}
}

func maxOf(a, b int64) int64 { return max(a, b) }

// C125, C126, CR-6: one U+FFFD for each maximal invalid part.
func TestDecoding(t *testing.T) {
	for in, want := range map[string]string{
		"A\xE2\x82":             "A\uFFFD",
		"\xFF\xFEA":             "\uFFFD\uFFFDA",
		"\xED\xA0\x80":          "\uFFFD\uFFFD\uFFFD",
		"\xF0\x9F\x98":          "\uFFFD",
		"\xEF\xBB\xBFA":         "\uFEFFA",
		"\xE2\x82A":             "\uFFFDA",
		"\xF4\x90\x80\x80":      "\uFFFD\uFFFD\uFFFD\uFFFD",
		"\xC0\x80":              "\uFFFD\uFFFD",
		"\xE0\x80\x80":          "\uFFFD\uFFFD\uFFFD",
		"\xF1\x80\x80\xE1\x80A": "\uFFFD\uFFFDA",
		"a\x00b":                "a\x00b",
		"\uFFFD":                "\uFFFD",
	} {
		got, held := decodeText([]byte(in), true)
		if got != want || held != 0 {
			t.Errorf("%q: got %q and %d held back, want %q", in, got, held, want)
		}
	}
}

// C127: a window that begins inside a character.
func TestWindowInsideCharacter(t *testing.T) {
	read(t, pushed(4, "€€"), 0, TextChunk{Text: "\uFFFD€", NextOffset: 6, Lossy: true})
}

// C124, CR-7: the deltas of one cursor give the decoded stream, wherever it is
// cut; bytes that are no text are not held back for ever.
func TestDeltasConcatenate(t *testing.T) {
	for _, text := range []string{"A€B😀é", "\xE2\x82\xE2\x82\xAC\xFF", "\xF0\x9F\x98\x80\x80", "€\xF0\x9F"} {
		want, _ := decodeText([]byte(text), true)
		c, at, got := NewCollected(1000), int64(0), ""
		var d Decoder
		streamed := ""
		for i := range len(text) {
			c.Append([]byte{text[i]})
			chunk, _ := c.ReadText(at)
			at, got = chunk.NextOffset, got+chunk.Text
			streamed += d.Decode([]byte{text[i]}, i == len(text)-1)
		}
		c.Seal()
		chunk, _ := c.ReadText(at)
		equal(t, "polled", got+chunk.Text, want)
		equal(t, "streamed", streamed, want)
		equal(t, "offset", chunk.NextOffset, int64(len(text)))
	}
}

// spilling feeds chunks through a spill as a pump does.
func spilling(s *spill, max int64, chunks ...string) *Collected {
	c := NewCollected(max)
	for _, chunk := range chunks {
		s.add(c, []byte(chunk))
		c.Append([]byte(chunk))
	}
	return c
}

func spillPath(c *Collected) string {
	chunk, _ := c.ReadFrom(0)
	return chunk.SpillPath
}

// C139, SF-1: the file holds the stream from its first byte, up to and including
// the cap.
func TestSpillHoldsTheWholeStream(t *testing.T) {
	s := newSpill(&spillDir{parent: t.TempDir()}, "stdout", 12)
	c := spilling(s, 4, "ab", "cd", "efgh", "ijkl")
	path := spillPath(c)
	s.end(c, true)
	content, err := os.ReadFile(path)
	equal(t, "error", err, nil)
	equal(t, "content", string(content), "abcdefghijkl")
	equal(t, "path", spillPath(c), path)
}

// C139, C140: one byte more than the cap removes the file for good; a first
// overflowing chunk beyond it never makes one.
func TestSpillBeyondItsCap(t *testing.T) {
	parent := t.TempDir()
	s := newSpill(&spillDir{parent: parent}, "stdout", 8)
	c := spilling(s, 4, "abcd", "ef")
	path := spillPath(c)
	s.add(c, []byte("ghi"))
	c.Append([]byte("ghi"))
	equal(t, "path", spillPath(c), "")
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file stands: %v", err)
	}
	s.end(c, true)

	never := newSpill(&spillDir{parent: parent}, "stdout", 4)
	never.open = func() (spillFile, error) { t.Error("a file was made"); return nil, errScripted }
	c = spilling(never, 4, "abcdefgh", "i")
	never.end(c, true)
	equal(t, "path", spillPath(c), "")
}

// brittle is a spill file that fails where the test says.
type brittle struct {
	write, close error
}

func (b brittle) Write(p []byte) (int, error) { return len(p), b.write }
func (b brittle) Close() error                { return b.close }
func (b brittle) Name() string                { return "/nowhere/file" }

// C141, C142, C148, SF-5, SF-7: a file that cannot be made, written, closed or
// removed is not advertised, and nothing else is touched.
func TestSpillFailures(t *testing.T) {
	for name, set := range map[string]func(*spill){
		"open":   func(s *spill) { s.open = func() (spillFile, error) { return nil, errScripted } },
		"write":  func(s *spill) { s.open = func() (spillFile, error) { return brittle{write: errScripted}, nil } },
		"close":  func(s *spill) { s.open = func() (spillFile, error) { return brittle{close: errScripted}, nil } },
		"remove": func(s *spill) { s.max = 5; s.open = func() (spillFile, error) { return brittle{}, nil } },
	} {
		s := newSpill(&spillDir{parent: t.TempDir()}, "stdout", 100)
		s.remove = func(string) error { return errScripted }
		set(s)
		c := spilling(s, 4, "abcd", "e", "fgh")
		s.end(c, true)
		if got := spillPath(c); got != "" {
			t.Errorf("%s: %q is advertised", name, got)
		}
		chunk, _ := c.ReadText(0)
		equal(t, name+": tail", chunk.Text, "efgh")
	}
}

// C144, SF-4: what stands at the chosen name is neither followed nor
// overwritten.
func TestSpillNeverOverwrites(t *testing.T) {
	dir := t.TempDir()
	d := &spillDir{parent: dir, path: dir}
	victim := filepath.Join(dir, "victim")
	if err := os.WriteFile(victim, []byte("keep"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"victim", "link"} {
		if f, err := d.create(name); err == nil {
			f.Close()
			t.Errorf("%s was opened", name)
		}
	}
	content, _ := os.ReadFile(victim)
	equal(t, "content", string(content), "keep")
	if spillName("stdout") == spillName("stdout") || len(spillName("")) < 1+2*6 {
		t.Error("the names can be guessed")
	}
}
