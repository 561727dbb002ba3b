package diff

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// input is one side of a vector: the lines, or how to make them.
type input struct {
	Numbered []any          `json:"numbered"`
	Repeat   []any          `json:"repeat"`
	Concat   [][]any        `json:"concat"`
	Set      map[int]string `json:"set"`
	lines    []string
}

func (in input) build() []string {
	lines := in.lines
	switch {
	case in.Numbered != nil:
		lines = numbered(in.Numbered)
	case in.Repeat != nil:
		for range int(in.Repeat[1].(float64)) {
			lines = append(lines, in.Repeat[0].(string))
		}
	case in.Concat != nil:
		for _, part := range in.Concat {
			lines = append(lines, numbered(part)...)
		}
	}
	for i, v := range in.Set {
		lines[i] = v
	}
	return lines
}

// numbered makes PREFIXn for a range, or the one value it is given.
func numbered(gen []any) (lines []string) {
	if len(gen) == 1 {
		return []string{gen[0].(string)}
	}
	for i := int(gen[1].(float64)); i <= int(gen[2].(float64)); i++ {
		lines = append(lines, fmt.Sprint(gen[0], i))
	}
	return lines
}

type vector struct {
	Name    string
	Old     []string
	New     []string
	OldGen  *input
	NewGen  *input
	Matches [][3]int
	Stats   struct{ Added, Removed, Unchanged int }
}

func vectors(t *testing.T) []vector {
	t.Helper()
	data, err := os.ReadFile("../mount/testdata/mount-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ Diff []vector }
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	if len(all.Diff) != 27 {
		t.Fatalf("%d vectors, want 27", len(all.Diff))
	}
	return all.Diff
}

// The vectors of mount.md 9. Beyond the exact limit a result may keep more.
func TestMatchVectors(t *testing.T) {
	for _, v := range vectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			old, new := v.Old, v.New
			if v.OldGen != nil {
				old, new = v.OldGen.build(), v.NewGen.build()
			}
			runs := Match(old, new)
			check(t, old, new, runs)
			kept := Kept(runs)
			if strings.HasPrefix(v.Name, "oversize-") {
				if kept < v.Stats.Unchanged {
					t.Errorf("kept %d, want at least %d", kept, v.Stats.Unchanged)
				}
				return
			}
			if len(old)-kept != v.Stats.Removed || len(new)-kept != v.Stats.Added || kept != v.Stats.Unchanged {
				t.Errorf("+%d -%d =%d, want %+v", len(new)-kept, len(old)-kept, kept, v.Stats)
			}
			got := [][3]int{}
			for _, r := range runs {
				got = append(got, [3]int{r.Old + 1, r.Old + r.Len, r.New + 1})
			}
			if d := cmp.Diff(v.Matches, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// The greedy walk over anchors loses 1200 lines here, the longest ascending
// sequence one.
func TestAnchorsFollowTheLongestSequence(t *testing.T) {
	for _, v := range vectors(t) {
		if v.Name == "oversize-first-line-moved-to-end" {
			if kept := Kept(Match(v.OldGen.build(), v.NewGen.build())); kept != 1200 {
				t.Errorf("kept %d, want 1200", kept)
			}
		}
	}
}

// check holds what is true of every answer: ascending runs of equal lines that
// do not touch.
func check[T comparable](t *testing.T, old, new []T, runs []Run) {
	t.Helper()
	at, to := -1, -1
	for _, r := range runs {
		if r.Len < 1 || r.Old < at || r.New < to || (r.Old == at && r.New == to) {
			t.Fatalf("run %+v after old %d, new %d", r, at, to)
		}
		for k := range r.Len {
			if old[r.Old+k] != new[r.New+k] {
				t.Fatalf("run %+v matches unequal lines at %d", r, k)
			}
		}
		at, to = r.Old+r.Len, r.New+r.Len
	}
}

func FuzzMatch(f *testing.F) {
	f.Add("a\nb\nc", "a\nx\nc", uint8(3))
	f.Add("", "\n\n", uint8(0))
	f.Add("x\ny", "y\nx\n", uint8(1))
	f.Fuzz(func(t *testing.T, before, after string, context uint8) {
		old, new := split(before), split(after)
		check(t, old, new, Match(old, new))
		hunks := Hunks(before, after, int(context%8))
		if (len(hunks) == 0) != (before == after) {
			t.Fatalf("%d hunks for %q, %q", len(hunks), before, after)
		}
		if got := apply(t, old, hunks); got != strings.Join(plain(new), "\n") {
			t.Fatalf("applied %q, want %q", got, after)
		}
	})
}

func plain(lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = strings.TrimSuffix(l, "\n")
	}
	return out
}

// apply makes the new lines from the old ones and hunks.
func apply(t *testing.T, old []string, hunks []Hunk) string {
	t.Helper()
	old = plain(old)
	out, at := []string{}, 0
	for _, h := range hunks {
		start := h.OldStart - 1
		if h.OldCount == 0 {
			start++
		}
		out = append(out, old[at:start]...)
		if first := h.NewStart - 1; h.NewCount > 0 && first != len(out) {
			t.Fatalf("hunk begins at new line %d, want %d", first, len(out))
		}
		at = start
		for _, l := range h.Lines {
			if l.Op != Add {
				if old[at] != l.Text {
					t.Fatalf("hunk has %q for old line %d %q", l.Text, at, old[at])
				}
				at++
			}
			if l.Op != Remove {
				out = append(out, l.Text)
			}
		}
	}
	return strings.Join(append(out, old[at:]...), "\n")
}
