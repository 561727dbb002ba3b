package mount

import (
	"sort"

	"github.com/afield-dev/afield/pkg/diff"
	"github.com/afield-dev/afield/pkg/mount/ledger"
)

// Change counts the lines of two contents of one file.
type Change struct {
	Added     int `json:"added"`
	Removed   int `json:"removed"`
	Unchanged int `json:"unchanged"`
}

// base is the content that the ledger knows of a file that has changed.
type base struct {
	size  int64
	hash  string
	total int
	draft *ledger.Draft // nil = none
	gone  bool          // it is no base for anything
}

// survival is what of a changed file the caller still has.
type survival struct {
	segments []ledger.Segment
	change   *Change        // nil = not known
	same     []ledger.Range // lines of the new content that the old one has
	reason   string
	grew     bool
}

// survive finds what is left of segments of the old content in the new one
// (mount.md 8). draft is that of the new content, nil if it has none.
func survive(segments []ledger.Segment, old base, now content, draft *ledger.Draft) survival {
	if old.draft != nil && draft != nil && !old.gone {
		runs := diff.Match(old.draft.Prints, draft.Prints)
		kept := move(segments, runs)
		if len(kept) == 0 {
			return survival{reason: "nothing-kept"}
		}
		n := diff.Kept(runs)
		return survival{
			segments: kept, reason: "line-diff", grew: old.startsOf(now), same: partners(runs),
			change: &Change{len(draft.Prints) - n, len(old.draft.Prints) - n, n},
		}
	}
	if !old.gone && old.startsOf(now) {
		return appended(segments, old, now)
	}
	return survival{reason: "no-draft"}
}

// startsOf reports whether the new content is the old one and more.
func (b base) startsOf(now content) bool {
	return int64(len(now.bytes)) > b.size && hashOf(now.bytes[:b.size]) == b.hash
}

// appended keeps all segments, but for an old last line that had no end.
func appended(segments []ledger.Segment, old base, now content) survival {
	s := survival{segments: segments, reason: "prefix", grew: true,
		change: &Change{now.total - old.total, 0, old.total},
		same:   []ledger.Range{{Start: 1, End: old.total}}}
	if old.size == 0 || now.bytes[old.size-1] == '\n' {
		return s
	}
	last := []ledger.Range{{Start: old.total, End: old.total}}
	s.segments = nil
	for _, seg := range segments {
		for _, r := range ledger.Subtract(last, seg.Range) {
			s.segments = append(s.segments, seg.Part(r))
		}
	}
	s.change = &Change{s.change.Added + 1, 1, s.change.Unchanged - 1}
	s.same = ledger.Subtract(last, s.same[0])
	return s
}

// partners gives the new lines of the runs of a diff.
func partners(runs []diff.Run) []ledger.Range {
	out := make([]ledger.Range, len(runs))
	for i, r := range runs {
		out[i] = ledger.Range{Start: r.New + 1, End: r.New + r.Len}
	}
	return out
}

// move takes segments through the runs of a diff: each breaks into the parts
// that stay together.
func move(segments []ledger.Segment, runs []diff.Run) []ledger.Segment {
	var out []ledger.Segment
	for _, s := range segments {
		first := sort.Search(len(runs), func(i int) bool { return runs[i].Old+runs[i].Len >= s.Start })
		for _, run := range runs[first:] {
			part, ok := s.Overlap(ledger.Range{Start: run.Old + 1, End: run.Old + run.Len})
			if !ok {
				break
			}
			moved := s.Part(part)
			by := run.New - run.Old
			moved.Start, moved.End = part.Start+by, part.End+by
			out = append(out, moved)
		}
	}
	return ledger.Join(out)
}
