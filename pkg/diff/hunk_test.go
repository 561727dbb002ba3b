package diff

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// numberedText gives lines 1..n, some replaced.
func numberedText(n int, replaced map[int]string) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		line, ok := replaced[i]
		if !ok {
			line = fmt.Sprint("line ", i)
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// Case 292 of remotefs.md: three lines of context.
func TestChangeInTheMiddleShowsThreeLinesAround(t *testing.T) {
	hunks := Hunks(numberedText(8, nil), numberedText(8, map[int]string{4: "four"}), 3)
	if len(hunks) != 1 {
		t.Fatalf("%d hunks, want 1", len(hunks))
	}
	side := func(four string) string {
		return "line 1\nline 2\nline 3\n" + four + "\nline 5\nline 6\nline 7"
	}
	if got, want := *hunks[0].OldText(), side("line 4"); got != want {
		t.Errorf("old %q, want %q", got, want)
	}
	if got, want := *hunks[0].NewText(), side("four"); got != want {
		t.Errorf("new %q, want %q", got, want)
	}
}

// Case 293: equal texts have no hunk; a change without a final line feed has no
// marker text.
func TestEqualTextsAndMissingFinalLineFeed(t *testing.T) {
	if hunks := Hunks("same\n", "same\n", 3); hunks != nil {
		t.Errorf("equal texts give %v", hunks)
	}
	for _, c := range [][2]string{{"x", "y"}, {"x", "x\n"}, {"x\n", "x"}} {
		hunks := Hunks(c[0], c[1], 3)
		if len(hunks) != 1 {
			t.Fatalf("%q: %d hunks, want 1", c, len(hunks))
		}
		old, new := strings.TrimSuffix(c[0], "\n"), strings.TrimSuffix(c[1], "\n")
		if *hunks[0].OldText() != old || *hunks[0].NewText() != new {
			t.Errorf("%q: %+v", c, hunks[0])
		}
	}
}

// Case 294: six unchanged lines between two changes share a hunk, seven do not.
func TestNearChangesShareAHunk(t *testing.T) {
	for between, want := range map[int]int{5: 1, 6: 1, 7: 2} {
		after := numberedText(30, map[int]string{10: "A", 11 + between: "B"})
		if got := len(Hunks(numberedText(30, nil), after, 3)); got != want {
			t.Errorf("%d lines between: %d hunks, want %d", between, got, want)
		}
	}
}

// A side without lines has no text.
func TestAddedAndRemovedFiles(t *testing.T) {
	h := Hunks("", "a\nb\n", 3)
	if len(h) != 1 || h[0].OldText() != nil || *h[0].NewText() != "a\nb" || h[0].OldStart != 0 {
		t.Errorf("added: %+v", h)
	}
	h = Hunks("a\n", "", 3)
	if len(h) != 1 || h[0].NewText() != nil || *h[0].OldText() != "a" || h[0].NewStart != 0 {
		t.Errorf("removed: %+v", h)
	}
}

func TestUnifiedForm(t *testing.T) {
	var b strings.Builder
	hunks := Hunks("a\nb\nc\nd\ne\nf\n", "a\nb\nc\nd\nE\nf\ng\n", 1)
	if err := WriteUnified(&b, "a.txt", "a.txt", hunks); err != nil {
		t.Fatal(err)
	}
	want := "--- a.txt\n+++ a.txt\n@@ -4,3 +4,4 @@\n d\n-e\n+E\n f\n+g\n"
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Error(d)
	}
	b.Reset()
	if err := WriteUnified(&b, "a", "b", nil); err != nil || b.Len() != 0 {
		t.Errorf("no hunks wrote %q, %v", b.String(), err)
	}
}

// A 20,000-line text with one changed line costs no table.
func TestLargeTextWithASmallChange(t *testing.T) {
	hunks := Hunks(numberedText(20000, nil), numberedText(20000, map[int]string{9000: "x"}), 3)
	if len(hunks) != 1 || hunks[0].OldStart != 8997 || hunks[0].OldCount != 7 {
		t.Errorf("%+v", hunks)
	}
}
