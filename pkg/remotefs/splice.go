package remotefs

import (
	"bytes"
	"fmt"

	"github.com/afield-dev/afield/pkg/fault"
)

var (
	lf   = []byte("\n")
	crlf = []byte("\r\n")
)

// document is a text file in memory while it is edited (remotefs.md 8).
type document struct {
	bom    []byte // the byte-order mark, or empty
	raw    []byte // the rest, as it is stored
	text   []byte // raw with each CR LF as LF, and after an edit what it made of that
	before []byte // text as it was at first
	eol    []byte // the dominant line ending of the file as it was at first
	count  int    // replacements so far
}

// newDocument checks that p is text throughout.
func newDocument(p []byte, display string) (*document, error) {
	if bytes.IndexByte(p, 0) >= 0 {
		return nil, notText("edit", display, "binary file")
	}
	if !validText(p) {
		return nil, notText("edit", display, "invalid UTF-8 text")
	}
	d := &document{raw: bytes.TrimPrefix(p, byteOrderMark)}
	d.bom = p[:len(p)-len(d.raw)]
	d.eol = dominant(d.raw)
	d.refold()
	d.before = d.text
	return d, nil
}

// refold gives text its value. It is raw itself where there is no CR LF.
func (d *document) refold() {
	d.text = d.raw
	if bytes.Contains(d.raw, crlf) {
		d.text = fold(d.raw)
	}
}

// dominant is CR LF if raw holds more of them than of LFs without a CR.
func dominant(raw []byte) []byte {
	pairs := bytes.Count(raw, crlf)
	if pairs > bytes.Count(raw, lf)-pairs {
		return crlf
	}
	return lf
}

// apply does one edit. Bytes outside the matches are not touched (S-22), and
// nothing in the new text has a meaning of its own (S-15).
func (d *document) apply(e Edit, display string) error {
	old, fresh := fold([]byte(e.Old)), fold([]byte(e.New))
	if len(old) == 0 {
		return complete(&fault.Error{Code: fault.FSEditNotFound,
			Message: "old_string must be a non-empty string"}, "edit", display)
	}
	if d.count > 0 {
		d.refold()
	}
	n := bytes.Count(d.text, old)
	if n == 0 {
		return complete(&fault.Error{Code: fault.FSEditNotFound,
			Message: fmt.Sprintf("old_string was not found in %q", display)}, "edit", display)
	}
	if n > 1 && !e.All {
		return complete(&fault.Error{Code: fault.FSAmbiguousEdit,
			Message: fmt.Sprintf("old_string was found %d times in %q", n, display)}, "edit", display)
	}
	d.count += n
	d.splice(old, fresh, n)
	return nil
}

// splice replaces the n matches of old, in the folded text and in the raw bytes
// that each covers.
func (d *document) splice(old, fresh []byte, n int) {
	same := len(d.text) == len(d.raw)
	stored := bytes.ReplaceAll(fresh, lf, d.eol)
	raw := make([]byte, 0, len(d.raw)+n*(len(stored)-len(old)))
	at := 0 // in text
	walk := walker{raw: d.raw}
	for range n {
		start := at + bytes.Index(d.text[at:], old)
		at = start + len(old)
		from, to := start, at
		if !same {
			from = walk.to(start)
		}
		raw = append(raw, d.raw[walk.kept:from]...)
		raw = append(raw, stored...)
		if !same {
			to = walk.to(at)
		}
		walk.kept = to
	}
	raw = append(raw, d.raw[walk.kept:]...)
	if same && bytes.Equal(stored, fresh) {
		d.raw, d.text = raw, raw
		return
	}
	d.text = bytes.ReplaceAll(d.text, old, fresh)
	d.raw = raw
}

// walker maps positions of the folded text to positions of the raw bytes. A
// folded LF covers the CR LF that it stands for.
type walker struct {
	raw    []byte
	pos    int // in raw; never between the CR and the LF of a pair
	folded int // the position in the folded text that pos stands for
	kept   int // up to here raw has been taken over
}

// to gives the raw position of a folded one, which must not be smaller than the
// last.
func (w *walker) to(folded int) int {
	for w.folded < folded {
		left := folded - w.folded
		next := bytes.Index(w.raw[w.pos:min(len(w.raw), w.pos+left+1)], crlf)
		if next < 0 {
			w.pos, w.folded = w.pos+left, folded
			break
		}
		w.pos += next + 2
		w.folded += next + 1
	}
	return w.pos
}

// normalize stores the whole file in its dominant line ending.
func (d *document) normalize() {
	d.raw = bytes.ReplaceAll(fold(d.raw), lf, d.eol)
}
