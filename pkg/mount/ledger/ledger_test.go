package ledger

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// Ids that no session can have are refused; they never name a path.
func TestSessionIDs(t *testing.T) {
	for id, ok := range map[string]bool{
		"a": true, "run-7": true, "A.b_c": true, "-x": true, strings.Repeat("a", 128): true,
		"": false, ".x": false, "..": false, "a/b": false, "a b": false, "é": false, "a\n": false, strings.Repeat("a", 129): false,
	} {
		if err := CheckID(id); (err == nil) != ok {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// A segment that is cut keeps its tokens by lines, rounded; none left is not
// known (mount.md 4).
func TestPartsOfSegments(t *testing.T) {
	s := Segment{Range: Range{1, 10}, Seq: 3, Position: 7, Tokens: 25, Expired: 1}
	got := Put([]Segment{s}, []Segment{{Range: Range{4, 5}, Seq: 4, Position: 9, Tokens: 6}})
	want := []Segment{
		{Range{1, 3}, 3, 7, 8, 1}, {Range{4, 5}, 4, 9, 6, 0}, {Range{6, 10}, 3, 7, 13, 1},
	}
	if len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("%+v", got)
	}
	if p := (Segment{Range: Range{1, 10}, Tokens: 4}).Part(Range{1, 1}); p.Tokens != Unknown {
		t.Errorf("%+v", p)
	}
	joined := Join([]Segment{{Range{4, 6}, 1, 5, 3, 0}, {Range{1, 3}, 1, 5, 3, 0}, {Range{7, 9}, 2, 5, 3, 0}})
	if len(joined) != 2 || joined[0] != (Segment{Range{1, 6}, 1, 5, 6, 0}) {
		t.Errorf("%+v", joined)
	}
}

// Sums stay where every reader of JSON keeps them exact.
func TestTotalsSaturate(t *testing.T) {
	sum := Totals{Saved: maxTokens - 1}
	sum.Add(Totals{Saved: 5, Overhead: 1})
	if sum.Saved != maxTokens || sum.Overhead != 1 {
		t.Errorf("%+v", sum)
	}
}

// Whatever a journal holds, reading it, folding it and rewriting it do not fail
// but for another version, and a rewriting says the same as the original.
func FuzzJournal(f *testing.F) {
	open := `{"v":1,"seq":0,"op":"base","base":{"generation":"g","seq":0,"used":-1,"window":-1,"shift":-1}}` + "\n"
	entry := func(seq string) string {
		return `{"v":1,"seq":` + seq + `,"at":"2020-01-01T00:00:00Z","op":"read","file":{"identity":"w:/a","segments":[{"start":1,"end":3,"seq":` +
			seq + `,"position":5,"tokens":9,"expired":0}]},"booked":{"saved":3,"overhead":1}}` + "\n"
	}
	f.Add([]byte(open + entry("1") + entry("2") + `{"v":1,"seq":1,"op":"rewind"}` + "\n"))
	f.Add([]byte(open + entry("1") + "garbage\n" + entry("2")))
	f.Add([]byte(open + entry("4") + `{"v":1,"seq":4,"op":"compact","compact":{"through":4},"used":2}` + "\n{\"v\":1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := parse(data, 0)
		if err != nil {
			return
		}
		whole, _ := fold(p.events)
		short, err := rewritten(data, 1, time.Unix(2, 0).UTC())
		if err != nil {
			t.Fatal(err)
		}
		again, err := parse(short, 0)
		if err != nil || again.damaged || again.good != int64(len(short)) {
			t.Fatalf("rewritten: %v, damaged %v", err, again.damaged)
		}
		same, _ := fold(again.events)
		if len(same.Files) != len(whole.Files) || same.Seq != whole.Seq || same.Used != whole.Used {
			t.Fatalf("rewritten says %+v of %d files, not %+v of %d", same.Base, len(same.Files), whole.Base, len(whole.Files))
		}
	})
}

// What is no draft of this key is none, and no input makes the reader fail.
func FuzzDraft(f *testing.F) {
	key := Key{1, 2, 3}
	d := &Draft{Cut: 2000, Prints: []uint64{1, 2}, Tokens: []uint32{3, 4}, Bytes: []uint32{5, 6}}
	f.Add(d.encode(key))
	f.Add([]byte(draftMagic))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, ok := decodeDraft(data, key)
		if ok && !bytes.Equal(got.encode(key), data) {
			t.Fatal("read and written again it is another file")
		}
		if _, ok := decodeDraft(data, Key{9}); ok && bytes.Equal(data, d.encode(key)) {
			t.Fatal("a draft passes under another key")
		}
	})
}
