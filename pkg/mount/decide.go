package mount

import (
	"github.com/afield-dev/afield/pkg/mount/ledger"
)

// Kind is what an answer is.
type Kind string

// The kinds of answers.
const (
	New         Kind = "new"
	Dedupe      Kind = "dedupe"
	Increment   Kind = "increment"
	Remount     Kind = "remount"
	Append      Kind = "append"
	Passthrough Kind = "passthrough"
)

// question is a read whose window is known and has lines.
type question struct {
	config  *Config
	entry   *ledger.Entry // what the ledger knows; nil = nothing
	fresh   ledger.Entry  // identity, hash and size of the content
	view    view
	usage   usage
	seq     int64
	label   label
	survive func() survival // of a changed content
}

// decision is the answer to a question and what becomes of the ledger.
type decision struct {
	kind     Kind
	reason   string
	sent     []ledger.Range
	marker   string // "" = none
	change   *Change
	resent   int
	saved    int
	overhead int
	// entry is the new state of the file; nil: nothing is recorded.
	entry *ledger.Entry
}

// decide is the table of mount.md 6 from rule R5 on.
func (q *question) decide() decision {
	switch {
	case q.entry == nil:
		d := decision{kind: New, reason: "first-read", sent: []ledger.Range{q.view.window}}
		d.entry = q.state(q.segments(d.sent, 0), nil)
		return d
	case q.entry.Hash != q.fresh.Hash:
		return q.changed()
	default:
		return q.same()
	}
}

// changed is R6: what survives stays, the rest of the window goes out.
func (q *question) changed() decision {
	s := q.survive()
	d := decision{kind: Remount, reason: s.reason, change: s.change}
	if s.grew {
		d.kind = Append
	}
	d.sent = ledger.Subtract(ledger.Mounted(s.segments), q.view.window)
	q.send(&d, s.segments, s.same, q.entry.History)
	mounted := ledger.Mounted(d.entry.Segments)
	return q.price(d, q.label.changed(s.grew, mounted, d.sent, d.change))
}

// same is R7 to R12.
func (q *question) same() decision {
	kept, expired := q.config.prune(q.entry.Segments, q.usage)
	missing := ledger.Subtract(ledger.Mounted(kept), q.view.window)
	if len(missing) == 0 {
		return q.covered(kept, expired)
	}
	d := decision{kind: Increment, reason: "partial-cover", sent: missing}
	history := remember(q.entry.History, expired...)
	if q.send(&d, kept, d.sent, history) {
		d.reason = "expired"
	}
	d = q.price(d, q.label.increment(ledger.Mounted(d.entry.Segments), d.sent))
	overlaps := q.view.window.Lines() > ledger.CountLines(missing)
	floor := q.config.MinSavedTokens
	if overlaps && floor > 0 && d.saved-Estimate(d.marker) < floor {
		return q.native("below-min", true)
	}
	return d
}

// covered is R8 to R10: the caller has the whole window.
func (q *question) covered(kept []ledger.Segment, expired []ledger.Past) decision {
	history := remember(q.entry.History, expired...)
	valve := q.config.ValveReads
	switch {
	case q.tokens() < q.config.MinSavedTokens:
		return q.native("below-min", false)
	case valve > 0 && q.entry.Valve+1 >= valve:
		d := q.native("valve", false)
		highest := 0
		for _, s := range kept {
			if part, ok := s.Overlap(q.view.window); ok {
				history = remember(history, ledger.Past{Range: part, Count: s.Expired + 1})
				highest = max(highest, s.Expired)
			}
		}
		d.entry = q.state(ledger.Put(kept, q.segments(d.sent, 1+highest)), history)
		return d
	}
	d := decision{kind: Dedupe, reason: "full-cover"}
	d.entry = q.state(kept, history)
	if valve > 0 {
		d.entry.Valve = q.entry.Valve + 1
	}
	return q.price(d, q.label.dedupe(ledger.Mounted(kept)))
}

// native gives the window as it is. The valve is cleared where that is asked
// for and changes something.
func (q *question) native(reason string, clearValve bool) decision {
	d := decision{kind: Passthrough, reason: reason, sent: []ledger.Range{q.view.window}}
	if clearValve && q.entry.Valve > 0 {
		d.entry = q.entry.Clone()
		d.entry.Valve = 0
	}
	return d
}

// send puts what an answer sends on the ledger and reports whether some of it
// had expired before. Of the sent lines those of same had been sent in this
// form; changed ones are not sent again but for the first time.
func (q *question) send(d *decision, kept []ledger.Segment, same []ledger.Range, history []ledger.Past) bool {
	count, consumed, left := inherit(d.sent, history)
	d.resent = q.view.weights.of(ledger.Intersect(ledger.Intersect(d.sent, same), consumed)...)
	d.entry = q.state(ledger.Put(kept, q.segments(d.sent, count)), left)
	return len(consumed) > 0
}

// segments makes the segments of ranges sent by this answer.
func (q *question) segments(ranges []ledger.Range, expired int) []ledger.Segment {
	out := make([]ledger.Segment, len(ranges))
	for i, r := range ranges {
		out[i] = ledger.Segment{
			Range: r, Seq: q.seq, Position: q.usage.used,
			Tokens: int64(q.view.weights.of(r)), Expired: expired,
		}
	}
	return out
}

// state gives the state of the file after an answer, valve cleared.
func (q *question) state(segments []ledger.Segment, history []ledger.Past) *ledger.Entry {
	e := q.fresh
	e.Segments, e.History = segments, history
	if q.entry != nil {
		e.Totals = q.entry.Totals
	}
	return &e
}

// price sets the marker and what it saves and costs (mount.md 12).
func (q *question) price(d decision, marker string) decision {
	d.marker = marker
	d.saved = q.tokens() - q.view.weights.of(d.sent...)
	d.overhead = Estimate(marker) + d.resent
	return d
}

func (q *question) tokens() int { return q.view.weights.of(q.view.window) }
