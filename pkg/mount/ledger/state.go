package ledger

import "slices"

// State is the fold of a journal: the session and its files by identity. An
// event replaces entries and changes none, so that the events stay as they were.
type State struct {
	Base
	Files map[string]*Entry
	// only, if set, is the one file that is of interest.
	only string
}

func newState(only string) *State {
	return &State{Base: Base{Used: Unknown, Window: Unknown, Shift: Unknown}, Files: map[string]*Entry{}, only: only}
}

// apply folds one event into s; a rewind is not among them.
func (s *State) apply(e Event) {
	s.session(e)
	s.files(e)
}

// session takes what an event says of the session, and moves the positions of
// s.Files when the first report after a compaction comes.
func (s *State) session(e Event) {
	if e.Base != nil {
		s.Base = *e.Base
	}
	s.Seq = e.Seq
	if e.Op == OpCompact && s.Shift == Unknown {
		s.Shift = s.Used
	}
	if e.Window != nil {
		s.Window = *e.Window
	}
	if e.Used != nil {
		s.Report(*e.Used)
	}
	s.book(e)
}

// book takes what stays whatever is rewound.
func (s *State) book(e Event) {
	if e.Booked != nil {
		s.Totals.Add(*e.Booked)
	}
	if mounts(e) {
		s.Counted = true
	}
}

// mounts reports whether the event puts lines on the ledger.
func mounts(e Event) bool {
	return e.File != nil && e.Op != OpFile && len(e.File.Segments) > 0
}

// Report notes the context used. The first report after a compaction moves all
// positions towards the start, once (mount.md 14).
func (s *State) Report(used int64) {
	if moved := s.Shift - used; s.Shift != Unknown && moved > 0 {
		for id, f := range s.Files {
			s.Files[id] = f.shifted(moved)
		}
	}
	s.Shift, s.Used = Unknown, used
}

// shifted gives e with its positions moved towards the start.
func (e *Entry) shifted(by int64) *Entry {
	e = e.Clone()
	for i, s := range e.Segments {
		if s.Position != Unknown {
			e.Segments[i].Position = max(0, s.Position-by)
		}
	}
	return e
}

// files takes what an event says of the files.
func (s *State) files(e Event) {
	switch {
	case e.File != nil:
		if s.only == "" || s.only == e.File.Identity {
			s.Files[e.File.Identity] = e.File
		}
	case e.All:
		clear(s.Files)
	case e.Forget != "":
		delete(s.Files, e.Forget)
	case e.Compact != nil:
		for id, f := range s.Files {
			if s.Files[id] = f.compacted(*e.Compact); len(s.Files[id].Segments) == 0 {
				delete(s.Files, id)
			}
		}
	}
}

// compacted gives e without the segments whose carrier left the conversation and
// with a clear valve.
func (e *Entry) compacted(gone Carriers) *Entry {
	e = e.Clone()
	e.Valve = 0
	e.Segments = slices.DeleteFunc(e.Segments, func(s Segment) bool { return gone.Has(s.Seq) })
	return e
}

// isGlobal reports whether an event changes more than the one file it names.
func (s *State) isGlobal(e Event) bool {
	return e.Op == OpRewind || e.Op == OpBase || e.All || e.Compact != nil || e.Used != nil && s.Shift != Unknown
}

// fold gives the state after events and those of them that a later rewind may
// still go back to, in order. events begin with the base.
func fold(events []Event) (*State, []Event) {
	booked := newState("")
	live := make([]Event, 0, len(events))
	for _, e := range events {
		booked.book(e)
		if e.Base != nil {
			booked.Base = *e.Base
			live = live[:0]
		}
		if e.Op == OpRewind {
			live = undo(live, e.Seq)
		}
		live = append(live, e)
	}
	s := newState("")
	for _, e := range live {
		s.apply(e)
	}
	s.Totals, s.Counted, s.Generation = booked.Totals, booked.Counted, booked.Generation
	return s, live
}

// undo drops the events behind seq, and all of them if the journal does not go
// back so far.
func undo(live []Event, seq int64) []Event {
	n := len(live)
	for n > 0 && live[n-1].Seq > seq {
		n--
	}
	return live[:n]
}
