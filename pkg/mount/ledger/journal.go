package ledger

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// parsed is a piece of a journal.
type parsed struct {
	events []Event
	good   int64 // offset behind the last whole line
	// damaged: a line in the middle does not parse. What came before it cannot
	// be trusted and is left out.
	damaged bool
}

// parse reads the lines of data, which begins at offset at of the journal. A
// last line that is torn or does not parse is left out.
func parse(data []byte, at int64) (parsed, error) {
	p := parsed{good: at}
	for len(data) > 0 {
		line, rest, whole := bytes.Cut(data, []byte{'\n'})
		if !whole {
			break
		}
		e, err := decode(line)
		var foreign *foreignError
		if errors.As(err, &foreign) {
			return p, err
		}
		e.end = at + int64(len(line)) + 1
		switch {
		case err == nil:
			p.events = append(p.events, e)
			p.good = e.end
		case len(rest) > 0:
			p.damaged = true
			p.events = append(p.events[:0], damage(p.events, e.end))
			p.good = e.end
		}
		data, at = rest, e.end
	}
	return p, nil
}

// parseRange reads the lines of a journal from an offset on.
func parseRange(journal io.ReaderAt, from, size int64) (parsed, error) {
	data := make([]byte, size-from)
	if _, err := journal.ReadAt(data, from); err != nil && !errors.Is(err, io.EOF) {
		return parsed{}, err
	}
	return parse(data, from)
}

// parseTail reads the lines from an offset on for one who has the state there. It
// reports false when they cannot be followed without those before.
func parseTail(journal io.ReaderAt, from, size int64) (p parsed, ok bool, err error) {
	p, err = parseRange(journal, from, size)
	needs := func(e Event) bool { return e.Op == OpRewind || e.Op == OpBase }
	return p, err == nil && !p.damaged && !slices.ContainsFunc(p.events, needs), err
}

// damage gives the event that stands for all before a damaged line: an empty
// ledger to which no rewind goes back, with the totals booked so far.
func damage(before []Event, end int64) Event {
	s := newState("")
	for _, e := range before {
		s.book(e)
		if e.Base != nil {
			s.Base = *e.Base
		}
		s.Seq = e.Seq
	}
	s.Used, s.Window, s.Shift = Unknown, Unknown, Unknown
	base := s.Base
	return Event{V: format, Op: OpBase, Seq: s.Seq, Base: &base, end: end}
}

// generationOf reads the first line of a journal.
func generationOf(journal io.ReaderAt, size int64) (string, error) {
	head := make([]byte, min(size, 4096))
	if _, err := journal.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	line, _, whole := bytes.Cut(head, []byte{'\n'})
	e, err := decode(line)
	if err != nil {
		return "", err
	}
	if !whole || e.Base == nil {
		return "", errors.New("the journal has no base")
	}
	return e.Base.Generation, nil
}

// newGeneration gives a random name.
func newGeneration() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// opening gives the lines that open a journal with the state s.
func opening(s *State, now time.Time) ([]byte, error) {
	base := s.Base
	base.Generation = newGeneration()
	out, err := Event{Seq: base.Seq, At: now, Op: OpBase, Base: &base}.encode()
	for _, f := range s.Files {
		line, lineErr := Event{Seq: base.Seq, At: now, Op: OpFile, File: f}.encode()
		out, err = append(out, line...), errors.Join(err, lineErr)
	}
	return out, err
}

// rewritten gives a new journal of what data still says: the state before the
// last history events and those events.
func rewritten(data []byte, history int, now time.Time) ([]byte, error) {
	p, err := parse(data, 0)
	if err != nil {
		return nil, err
	}
	all, live := fold(p.events)
	totals := all.Totals
	from := max(opened(live), len(live)-history)
	kept := lines(data, live[from:])
	end := int64(0)
	if from > 0 {
		end = live[from-1].end
	}
	var before []Event
	for _, e := range p.events {
		if e.end <= end {
			before = append(before, e)
		}
	}
	s, _ := fold(before)
	s.Totals, s.Counted = totals.without(live[from:]), all.Counted
	out, err := opening(s, now)
	return append(out, kept...), err
}

// opened counts the events that open a journal.
func opened(events []Event) int {
	n := 0
	for n < len(events) && (events[n].Op == OpBase || events[n].Op == OpFile) {
		n++
	}
	return n
}

// without gives the totals without what events have booked: what a rewind has
// undone stays in them.
func (t Totals) without(events []Event) Totals {
	for _, e := range events {
		if e.Booked != nil {
			t.Saved, t.Overhead = t.Saved-e.Booked.Saved, t.Overhead-e.Booked.Overhead
		}
	}
	return t
}

// lines gives the lines of events in data.
func lines(data []byte, events []Event) []byte {
	var out []byte
	for _, e := range events {
		start := bytes.LastIndexByte(data[:e.end-1], '\n') + 1
		out = append(out, data[start:e.end]...)
	}
	return out
}

// Replace publishes a file of mode 0600 in one step.
func Replace(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
