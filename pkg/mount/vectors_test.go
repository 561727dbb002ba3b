package mount

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/afield-dev/afield/pkg/diff"
	"github.com/afield-dev/afield/pkg/mount/ledger"
)

// pair is a range as the vectors write it.
type pair [2]int

func (p pair) r() ledger.Range { return ledger.Range{Start: p[0], End: p[1]} }

func ranges(in []pair) []ledger.Range {
	out := []ledger.Range{}
	for _, p := range in {
		out = append(out, p.r())
	}
	return out
}

// limits are the settings a freshness vector may change.
type limits struct {
	Threshold     float64
	ContextWindow *int64
	SafeTokens    *int64
	SafeRatio     *float64
	PinAfter      *int
	ResendBudget  *int64
}

func (l limits) apply(used *int64) (Config, usage) {
	c := DefaultConfig()
	c.FreshnessThreshold = l.Threshold
	set(&c.SafeTokens, l.SafeTokens)
	set(&c.SafeRatio, l.SafeRatio)
	set(&c.PinAfter, l.PinAfter)
	set(&c.ResendBudget, l.ResendBudget)
	u := usage{ledger.Unknown, c.ContextWindow}
	set(&u.used, used)
	set(&u.window, l.ContextWindow)
	return c, u
}

func set[T any](at, value *T) {
	if value != nil {
		*at = *value
	}
}

// vectorSegment is a segment as the vectors write it.
type vectorSegment struct {
	Start, End       int
	Position, Tokens *int64
	Expired          int
}

func (v vectorSegment) segment() ledger.Segment {
	s := ledger.Segment{Range: ledger.Range{Start: v.Start, End: v.End}, Position: ledger.Unknown, Tokens: ledger.Unknown, Expired: v.Expired}
	set(&s.Position, v.Position)
	set(&s.Tokens, v.Tokens)
	return s
}

// vectorFile is testdata/mount-vectors.json.
type vectorFile struct {
	EstimateTokens []struct {
		Text   string
		Tokens int
	}
	EstimateRangeTokens []struct {
		Lines       []string
		WindowStart int
		Ranges      []pair
		Tokens      int
	}
	SplitLines []struct {
		B64, SHA256 string
		Lines       []string
	}
	LineHash53 []json.RawMessage
	Normalize  []struct{ In, Out []pair }
	Subtract   []struct {
		Have []pair
		Want pair
		Out  []pair
	}
	Intersect []struct{ A, B, Out []pair }
	HaveText  []struct {
		Ranges      []pair
		Total       int
		Have, Sends string
	}
	Diff  []json.RawMessage
	Remap []struct {
		Segments      []pair
		TokensPerLine int64
		Old, New      []string
		Out           [][3]int64
	}
	Freshness []struct {
		limits
		Position, Used *int64
		Tokens         int64
		Expired        int
		Score          *float64
		Level          Level
	}
	Prune []struct {
		limits
		Segments []vectorSegment
		Used     *int64
		Kept     []pair
		Expired  [][3]int
	}
	InheritCounts []struct {
		Fresh   []pair
		History [][3]int
		Counts  []int
		Left    [][3]int
	}
	WorstLevel []struct {
		Levels []Level
		Worst  Level
	}
	Glob []struct {
		Pattern, Path string
		Match         bool
	}
	DisplayPath []struct{ Path, Cwd, Shown string }
	ShellPath   []struct{ Path, Quoted string }
	Sequences   []sequence
}

var vectors = sync.OnceValues(func() (*vectorFile, error) {
	data, err := os.ReadFile("testdata/mount-vectors.json")
	if err != nil {
		return nil, err
	}
	v := &vectorFile{}
	return v, json.Unmarshal(data, v)
})

func loadVectors(t *testing.T) *vectorFile {
	t.Helper()
	v, err := vectors()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// count holds that no vector is lost on the way.
func count(t *testing.T, got, want int) {
	t.Helper()
	if got != want {
		t.Fatalf("%d vectors, want %d", got, want)
	}
}

func TestVectorsEstimateTokens(t *testing.T) {
	v := loadVectors(t).EstimateTokens
	count(t, len(v), 53)
	for _, c := range v {
		if got := Estimate(c.Text); got != c.Tokens {
			t.Errorf("%q: %d tokens, want %d", c.Text, got, c.Tokens)
		}
	}
}

func TestVectorsEstimateRangeTokens(t *testing.T) {
	v := loadVectors(t).EstimateRangeTokens
	count(t, len(v), 8)
	for _, c := range v {
		w := weights{start: c.WindowStart}
		for _, l := range c.Lines {
			w.lines = append(w.lines, Estimate(l))
		}
		if got := w.of(ranges(c.Ranges)...); got != c.Tokens {
			t.Errorf("%v from %d: %d tokens, want %d", c.Ranges, c.WindowStart, got, c.Tokens)
		}
	}
}

func TestVectorsSplitLines(t *testing.T) {
	v := loadVectors(t).SplitLines
	count(t, len(v), 18)
	for _, c := range v {
		data, err := base64.StdEncoding.DecodeString(c.B64)
		if err != nil {
			t.Fatal(err)
		}
		lines := []string{}
		eachLine(data, func(l []byte) { lines = append(lines, string(l)) })
		got := newContent(data)
		if d := cmp.Diff(c.Lines, lines); d != "" || got.hash != c.SHA256 || got.total != len(c.Lines) {
			t.Errorf("%q: %s; hash %s; %d lines", data, d, got.hash, got.total)
		}
	}
}

// The published line hash is for information: ours is keyed. What must hold is
// that different lines differ.
func TestVectorsLineHash(t *testing.T) {
	v := loadVectors(t).LineHash53
	count(t, len(v), 9)
	key, other := ledger.Key{1}, ledger.Key{2}
	seen := map[uint64]string{}
	for _, raw := range v {
		var c struct{ Line string }
		if err := json.Unmarshal(raw, &c); err != nil {
			t.Fatal(err)
		}
		print := key.Fingerprint([]byte(c.Line))
		if before, ok := seen[print]; ok {
			t.Errorf("%q and %q have one fingerprint", before, c.Line)
		}
		if print == other.Fingerprint([]byte(c.Line)) {
			t.Errorf("%q has one fingerprint under two keys", c.Line)
		}
		seen[print] = c.Line
	}
}

func TestVectorsRanges(t *testing.T) {
	v := loadVectors(t)
	count(t, len(v.Normalize), 15)
	count(t, len(v.Subtract), 16)
	count(t, len(v.Intersect), 11)
	for _, c := range v.Normalize {
		if d := cmp.Diff(ranges(c.Out), ledger.Normalize(ranges(c.In))); d != "" {
			t.Errorf("normalize %v: %s", c.In, d)
		}
	}
	for _, c := range v.Subtract {
		if d := cmp.Diff(ranges(c.Out), ledger.Subtract(ranges(c.Have), c.Want.r())); d != "" {
			t.Errorf("subtract %v from %v: %s", c.Have, c.Want, d)
		}
	}
	for _, c := range v.Intersect {
		if d := cmp.Diff(ranges(c.Out), ledger.Intersect(ranges(c.A), ranges(c.B))); d != "" {
			t.Errorf("intersect %v and %v: %s", c.A, c.B, d)
		}
	}
}

func TestVectorsTexts(t *testing.T) {
	v := loadVectors(t)
	count(t, len(v.HaveText), 6)
	count(t, len(v.ShellPath), 6)
	count(t, len(v.DisplayPath), 9)
	for _, c := range v.HaveText {
		if have, sends := haveText(ranges(c.Ranges), c.Total), sendsText(ranges(c.Ranges)); have != c.Have || sends != c.Sends {
			t.Errorf("%v: %q and %q, want %q and %q", c.Ranges, have, sends, c.Have, c.Sends)
		}
	}
	for _, c := range v.ShellPath {
		if got := shellPath(c.Path); got != c.Quoted {
			t.Errorf("%q is quoted %s, want %s", c.Path, got, c.Quoted)
		}
	}
	for _, c := range v.DisplayPath {
		want := c.Shown
		if c.Cwd == "/" {
			// The published value lacks the first letter: the source cuts off one
			// character more than the directory has. The rule is "relative to
			// the working directory", and the marker's hint must name the file.
			want = strings.TrimPrefix(c.Path, "/")
		}
		if got := displayPath(c.Path, c.Cwd); got != want {
			t.Errorf("%q in %q is shown as %q, want %q", c.Path, c.Cwd, got, want)
		}
	}
}

func TestVectorsRemap(t *testing.T) {
	v := loadVectors(t).Remap
	count(t, len(v), 6)
	for _, c := range v {
		var segments []ledger.Segment
		for _, p := range c.Segments {
			segments = append(segments, ledger.Segment{Range: p.r(), Tokens: c.TokensPerLine * int64(p.r().Lines())})
		}
		got := [][3]int64{}
		for _, s := range move(segments, diff.Match(c.Old, c.New)) {
			got = append(got, [3]int64{int64(s.Start), int64(s.End), s.Tokens})
		}
		if d := cmp.Diff(c.Out, got); d != "" {
			t.Errorf("%v > %v: %s", c.Old, c.New, d)
		}
	}
}

func TestVectorsFreshness(t *testing.T) {
	v := loadVectors(t).Freshness
	count(t, len(v), 33)
	for i, c := range v {
		config, u := c.apply(c.Used)
		s := vectorSegment{Position: c.Position, Tokens: &c.Tokens, Expired: c.Expired}.segment()
		score, ok := config.score(s, u)
		if ok != (c.Score != nil) || ok && math.Abs(score-*c.Score) > 1e-12 {
			t.Errorf("%d: score %.12f %v, want %v", i, score, ok, c.Score)
		}
		if got := config.level(s, u); got != c.Level {
			t.Errorf("%d: level %s, want %s", i, got, c.Level)
		}
	}
}

func TestVectorsPrune(t *testing.T) {
	v := loadVectors(t).Prune
	count(t, len(v), 6)
	for i, c := range v {
		config, u := c.apply(c.Used)
		var segments []ledger.Segment
		for _, s := range c.Segments {
			segments = append(segments, s.segment())
		}
		kept, expired := config.prune(segments, u)
		gotKept, gotExpired := []pair{}, [][3]int{}
		for _, s := range kept {
			gotKept = append(gotKept, pair{s.Start, s.End})
		}
		for _, p := range expired {
			gotExpired = append(gotExpired, [3]int{p.Start, p.End, p.Count})
		}
		if d := cmp.Diff(c.Kept, gotKept) + cmp.Diff(c.Expired, gotExpired); d != "" {
			t.Errorf("%d: %s", i, d)
		}
	}
}

func TestVectorsInheritCounts(t *testing.T) {
	v := loadVectors(t).InheritCounts
	count(t, len(v), 3)
	for i, c := range v {
		var history []ledger.Past
		for _, h := range c.History {
			history = append(history, ledger.Past{Range: ledger.Range{Start: h[0], End: h[1]}, Count: h[2]})
		}
		got, _, left := inherit(ranges(c.Fresh), history)
		for _, want := range c.Counts {
			if got != want {
				t.Errorf("%d: count %d, want %d", i, got, want)
			}
		}
		gotLeft := [][3]int{}
		for _, p := range left {
			gotLeft = append(gotLeft, [3]int{p.Start, p.End, p.Count})
		}
		if d := cmp.Diff(c.Left, gotLeft, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%d: %s", i, d)
		}
	}
}

func TestVectorsWorstLevel(t *testing.T) {
	v := loadVectors(t).WorstLevel
	count(t, len(v), 7)
	for _, c := range v {
		if got := worst(c.Levels); got != c.Worst {
			t.Errorf("%v: %s, want %s", c.Levels, got, c.Worst)
		}
	}
}

func TestVectorsGlob(t *testing.T) {
	v := loadVectors(t).Glob
	count(t, len(v), 18)
	for _, c := range v {
		if got := matchGlob(c.Pattern, c.Path); got != c.Match {
			t.Errorf("%q on %q: %v", c.Pattern, c.Path, got)
		}
	}
}
