package mount

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"

	"github.com/afield-dev/afield/pkg/mount/ledger"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// content is one content of a file, all of it from one read.
type content struct {
	bytes []byte
	hash  string
	total int // lines
}

func newContent(data []byte) content {
	return content{bytes: data, hash: hashOf(data), total: countLines(data)}
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

var byteOrderMark = []byte("\uFEFF")

func countLines(data []byte) int {
	data = bytes.TrimPrefix(data, byteOrderMark)
	n := bytes.Count(data, []byte{'\n'})
	if len(data) > 0 && data[len(data)-1] != '\n' {
		n++
	}
	return n
}

// eachLine calls f with the lines of data in the line model of mount.md 3: no
// byte-order mark, no line feed, one carriage return less at the end.
func eachLine(data []byte, f func(line []byte)) {
	data = bytes.TrimPrefix(data, byteOrderMark)
	for len(data) > 0 {
		line, rest, _ := bytes.Cut(data, []byte{'\n'})
		f(bytes.TrimSuffix(line, []byte{'\r'}))
		data = rest
	}
}

// sameLines reports whether two contents have the same lines.
func sameLines(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	a, b = bytes.TrimPrefix(a, byteOrderMark), bytes.TrimPrefix(b, byteOrderMark)
	for len(a) > 0 && len(b) > 0 {
		x, restA, _ := bytes.Cut(a, []byte{'\n'})
		y, restB, _ := bytes.Cut(b, []byte{'\n'})
		if !bytes.Equal(bytes.TrimSuffix(x, []byte{'\r'}), bytes.TrimSuffix(y, []byte{'\r'})) {
			return false
		}
		a, b = restA, restB
	}
	return len(a) == 0 && len(b) == 0
}

// draft fingerprints the lines and measures the form in which they are shown.
func (c content) draft(key ledger.Key, cut int) *ledger.Draft {
	d := &ledger.Draft{
		Cut:    cut,
		Prints: make([]uint64, 0, c.total), Tokens: make([]uint32, 0, c.total), Bytes: make([]uint32, 0, c.total),
	}
	eachLine(c.bytes, func(line []byte) {
		tokens, size := 0, len(line)
		if size > cut {
			shown := remotefs.CutLine(line, cut)
			tokens, size = Estimate(shown), len(shown)
		} else {
			tokens = estimate(line)
		}
		d.Prints = append(d.Prints, key.Fingerprint(line))
		d.Tokens, d.Bytes = append(d.Tokens, uint32(tokens)), append(d.Bytes, uint32(size))
	})
	return d
}

// view is the window of a read: what of it is known without the lines, and the
// lines where they were read.
type view struct {
	lines   []remotefs.WindowLine // nil if no bytes were read
	window  ledger.Range
	weights weights
	total   int
	capped  bool
	next    int // where to go on; 0 at the end
	bom     bool
}

// shown makes the view of a window.
func shown(w remotefs.Window) view {
	v := view{
		lines: w.Lines, total: w.Total, capped: w.Capped, next: w.NextOffset(), bom: w.BOM,
		window:  ledger.Range{Start: w.Offset, End: w.End()},
		weights: weights{start: w.Offset, lines: make([]int, len(w.Lines))},
	}
	for i, l := range w.Lines {
		v.weights.lines[i] = Estimate(l.Text)
	}
	return v
}

// measured gives the view of a content of which only the draft is at hand. It
// is false where the draft does not tell, or the window would be an error.
func measured(d *ledger.Draft, opts remotefs.WindowOptions) (view, bool) {
	total := len(d.Prints)
	if d.Cut != opts.MaxLineLength || opts.Offset > total {
		return view{}, false
	}
	v := view{total: total, weights: weights{start: opts.Offset}}
	cost := 0
	for i := opts.Offset - 1; i < total && len(v.weights.lines) < opts.Limit; i++ {
		cost += int(d.Bytes[i])
		if len(v.weights.lines) > 0 {
			cost++
		}
		if cost > opts.MaxBytes {
			v.capped = true
			break
		}
		v.weights.lines = append(v.weights.lines, int(d.Tokens[i]))
	}
	v.window = ledger.Range{Start: opts.Offset, End: opts.Offset - 1 + len(v.weights.lines)}
	if v.window.End < total {
		v.next = v.window.End + 1
	}
	return v, v.window.End >= v.window.Start
}

// text gives the lines of ranges, which lie in the view.
func (v view) text(ranges []ledger.Range) []remotefs.WindowLine {
	out := []remotefs.WindowLine{}
	for _, r := range ranges {
		out = append(out, v.lines[r.Start-v.window.Start:r.End-v.window.Start+1]...)
	}
	return out
}
