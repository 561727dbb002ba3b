package ledger

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Unknown stands for a position, a token count or a context size that nobody
// has reported.
const Unknown = -1

// maxTokens is where token sums stay: the largest integer that every reader of
// JSON keeps exact.
const maxTokens = 1<<53 - 1

// Segment is a range of lines that one message, the carrier, brought into the
// conversation.
type Segment struct {
	Range
	Seq      int64 `json:"seq"`      // the carrier
	Position int64 `json:"position"` // tokens in the prompt when it was sent, or Unknown
	Tokens   int64 `json:"tokens"`   // estimate, or Unknown
	Expired  int   `json:"expired"`  // how often these lines had expired before
}

// Part gives the lines r of s: all else stays, tokens go by the number of lines
// (mount.md 4).
func (s Segment) Part(r Range) Segment {
	s.Tokens = scale(s.Tokens, r.Lines(), s.Lines())
	s.Range = r
	return s
}

// scale gives the share of part lines in tokens of whole lines, rounded to
// nearest; a result of 0 is Unknown.
func scale(tokens int64, part, whole int) int64 {
	if tokens == Unknown {
		return Unknown
	}
	share := int64(math.Round(float64(tokens) * float64(part) / float64(whole)))
	if share == 0 {
		return Unknown
	}
	return share
}

// Past is a range that has expired Count times. Line numbers are those of the
// time of expiry.
type Past struct {
	Range
	Count int `json:"count"`
}

// Stamp is the stat of a file whose content was hashed at Verified. It was
// taken before the bytes were read.
type Stamp struct {
	Version  string    `json:"version"`
	Size     int64     `json:"size"`
	ModTime  time.Time `json:"mtime"`
	Verified time.Time `json:"verified"`
}

// Entry is what a session knows of one file. It holds no content.
type Entry struct {
	Identity string    `json:"identity"`
	World    string    `json:"world"` // identity of the world the file is in
	Key      string    `json:"key"`   // canonical path there
	Path     string    `json:"path"`  // as last shown
	Hash     string    `json:"hash"`  // SHA-256 of the bytes, in hex
	Size     int64     `json:"size"`
	Total    int       `json:"total"` // lines
	Segments []Segment `json:"segments"`
	History  []Past    `json:"history,omitempty"`
	// Valve counts the dedupes in a row.
	Valve int `json:"valve,omitempty"`
	// Stamp is nil when the stat is not to be trusted.
	Stamp *Stamp `json:"stamp,omitempty"`
	// NoBase: the content behind Hash is no base for a diff.
	NoBase bool      `json:"noBase,omitempty"`
	Kind   string    `json:"kind"` // of the last answer
	At     time.Time `json:"at"`   // of the last answer
	Totals
}

// Totals are sums of tokens.
type Totals struct {
	Saved    int64 `json:"saved"`
	Overhead int64 `json:"overhead"`
}

// Net is saved minus overhead, which may be negative.
func (t Totals) Net() int64 { return t.Saved - t.Overhead }

// Add books d.
func (t *Totals) Add(d Totals) {
	t.Saved = min(t.Saved+d.Saved, maxTokens)
	t.Overhead = min(t.Overhead+d.Overhead, maxTokens)
}

// Clone gives a copy that shares nothing with e.
func (e *Entry) Clone() *Entry {
	c := *e
	c.Segments, c.History = slices.Clone(e.Segments), slices.Clone(e.History)
	if e.Stamp != nil {
		stamp := *e.Stamp
		c.Stamp = &stamp
	}
	return &c
}

// Mounted gives the normalized ranges of segments.
func Mounted(segments []Segment) []Range {
	ranges := make([]Range, len(segments))
	for i, s := range segments {
		ranges[i] = s.Range
	}
	return Normalize(ranges)
}

// Put lays fresh segments over old ones: what they cover is cut out of the old,
// and touching segments are joined if seq, position and count are equal.
func Put(old, fresh []Segment) []Segment {
	var cut []Range
	for _, f := range fresh {
		cut = append(cut, f.Range)
	}
	out := slices.Clone(fresh)
	for _, s := range old {
		for _, r := range Subtract(cut, s.Range) {
			out = append(out, s.Part(r))
		}
	}
	return Join(out)
}

// Join sorts segments and joins touching ones of equal seq, position and count.
func Join(segments []Segment) []Segment {
	slices.SortFunc(segments, func(a, b Segment) int { return cmp.Compare(a.Start, b.Start) })
	out := segments[:0]
	for _, s := range segments {
		last := len(out) - 1
		if last < 0 || !joins(out[last], s) {
			out = append(out, s)
			continue
		}
		out[last].End = s.End
		if out[last].Tokens == Unknown || s.Tokens == Unknown {
			out[last].Tokens = Unknown
		} else {
			out[last].Tokens += s.Tokens
		}
	}
	return out
}

func joins(a, b Segment) bool {
	return a.End+1 == b.Start && a.Seq == b.Seq && a.Position == b.Position && a.Expired == b.Expired
}
