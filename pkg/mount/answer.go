package mount

import (
	"math"
	"strconv"
	"strings"

	"github.com/afield-dev/afield/pkg/mount/ledger"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// Answer is the result of a read (mount.md 17.2). Null stands for what is not
// known or does not exist.
type Answer struct {
	Path       string         `json:"path"`
	Identity   string         `json:"identity"`
	Session    *string        `json:"session"`
	Seq        *int64         `json:"seq"`
	Kind       Kind           `json:"kind"`
	Reason     string         `json:"reason"`
	Hash       *string        `json:"hash"`
	TotalLines int            `json:"totalLines"`
	Window     *ledger.Range  `json:"window"`
	Sent       []ledger.Range `json:"sent"`
	Lines      []Line         `json:"lines"`
	Mounted    []ledger.Range `json:"mounted"`
	Change     *Change        `json:"change"`
	Tokens     TokenCount     `json:"tokens"`
	File       Sums           `json:"file"`
	Total      Sums           `json:"total"`
	Freshness  Freshness      `json:"freshness"`
	Valve      ValveCount     `json:"valve"`
	Truncated  bool           `json:"truncated"`
	NextOffset *int           `json:"nextOffset"`
	Marker     *string        `json:"marker"`
	Text       string         `json:"text"`
}

// Line is a numbered line.
type Line struct {
	Number int    `json:"number"`
	Text   string `json:"text"`
}

// TokenCount are the tokens of one answer.
type TokenCount struct {
	Window   int `json:"window"`
	Saved    int `json:"saved"`
	Overhead int `json:"overhead"`
	Resent   int `json:"resent"`
}

// Sums are cumulative tokens. Net is not below 0.
type Sums struct {
	Saved    int64 `json:"saved"`
	Overhead int64 `json:"overhead"`
	Net      int64 `json:"net"`
}

func sums(t ledger.Totals) Sums { return Sums{t.Saved, t.Overhead, max(0, t.Net())} }

// ValveCount is how many dedupes in a row a file has had, and the limit.
type ValveCount struct {
	Count int `json:"count"`
	Limit int `json:"limit"`
}

// Freshness is what expiry is decided by.
type Freshness struct {
	ContextUsed   *int64         `json:"contextUsed"`
	ContextWindow int64          `json:"contextWindow"`
	Safe          float64        `json:"safe"`
	Threshold     float64        `json:"threshold"`
	Worst         Level          `json:"worst"`
	Segments      []SegmentState `json:"segments"`
}

// SegmentState is a segment with its freshness.
type SegmentState struct {
	Start    int      `json:"start"`
	End      int      `json:"end"`
	Seq      int64    `json:"seq"`
	Position *int64   `json:"position"`
	Tokens   *int64   `json:"tokens"`
	Expired  int      `json:"expired"`
	Pinned   bool     `json:"pinned"`
	Score    *float64 `json:"score"` // to 4 decimals
	Level    Level    `json:"level"`
}

func (c Config) freshness(segments []ledger.Segment, u usage) Freshness {
	f := Freshness{
		ContextUsed: known(u.used), ContextWindow: u.window, Safe: c.safe(u.window), Threshold: c.FreshnessThreshold,
		Segments: c.segmentStates(segments, u),
	}
	f.Worst = worstOf(f.Segments)
	return f
}

func (c Config) segmentStates(segments []ledger.Segment, u usage) []SegmentState {
	out := make([]SegmentState, len(segments))
	for i, s := range segments {
		out[i] = SegmentState{
			Start: s.Start, End: s.End, Seq: s.Seq, Position: known(s.Position), Tokens: known(s.Tokens),
			Expired: s.Expired, Pinned: s.Expired >= c.PinAfter, Level: c.level(s, u),
		}
		if score, ok := c.score(s, u); ok {
			score = math.Round(score*1e4) / 1e4
			out[i].Score = &score
		}
	}
	return out
}

func worstOf(segments []SegmentState) Level {
	levels := make([]Level, len(segments))
	for i, s := range segments {
		levels[i] = s.Level
	}
	return worst(levels)
}

// known gives null for what is not.
func known(n int64) *int64 {
	if n == ledger.Unknown {
		return nil
	}
	return &n
}

// setLines sets the sent lines and the text of an answer with a marker.
func (a *Answer) setLines(lines []remotefs.WindowLine) {
	a.Lines = make([]Line, len(lines))
	for i, l := range lines {
		a.Lines[i] = Line(l)
	}
	if a.Marker == nil {
		return
	}
	var b strings.Builder
	b.WriteString(*a.Marker)
	for _, l := range lines {
		b.WriteByte('\n')
		b.WriteString(strconv.Itoa(l.Number))
		b.WriteString(": ")
		b.WriteString(l.Text)
	}
	a.Text = b.String()
}
