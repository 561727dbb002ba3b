package ledger

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// Session is a session's ledger, held exclusively until Close. It is for one
// goroutine.
type Session struct {
	ID   string
	Key  Key
	Meta Meta
	// Warnings are what was wrong with the session's files and is no longer.
	Warnings []string

	store   *Store
	limits  Limits
	dir     string
	lock    *lock
	journal *os.File
	size    int64 // of the journal's whole lines
	torn    bool  // something else follows them

	offset    int64 // up to which the snapshot holds
	rewritten int64 // size of the journal after its last rewriting
	before    Base  // the session at offset
	tail      []Event
	global    bool   // an event of tail changes more than one file
	full      *State // instead of before and tail, where the snapshot does not help
	state     Base   // the session now

	addedDraft bool
}

// Open locks the session and reads where it stands; it makes one that does not
// exist. It fails with ErrBusy when another process holds the lock for longer
// than wait, and with any error of a folder that cannot be written. The caller
// closes the session.
func (st *Store) Open(ctx context.Context, id string, wait time.Duration) (*Session, error) {
	if err := CheckID(id); err != nil {
		return nil, err
	}
	l, err := lockSession(ctx, st.dir(id), true, wait)
	if err != nil {
		return nil, err
	}
	s := &Session{ID: id, store: st, limits: st.Limits.withDefaults(), dir: st.dir(id), lock: l}
	if err := s.open(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close releases the session.
func (s *Session) Close() {
	if s.journal != nil {
		s.journal.Close()
	}
	s.lock.release()
}

func (s *Session) journalPath() string { return filepath.Join(s.dir, "journal.jsonl") }

// open reads the session. What another version wrote is kept aside, and the
// session starts empty.
func (s *Session) open() error {
	err := s.read()
	var foreign *foreignError
	if !errors.As(err, &foreign) {
		return err
	}
	aside := fmt.Sprintf(".format%d-%d", foreign.version, s.store.Now().UnixNano())
	s.Warnings = append(s.Warnings, fmt.Sprintf("session %s starts empty: %s; what was there is kept as *%s", s.ID, foreign, aside))
	if s.journal != nil {
		s.journal.Close()
		s.journal = nil
	}
	for _, path := range []string{s.journalPath(), filepath.Join(s.dir, "meta.json")} {
		if err := os.Rename(path, path+aside); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return s.read()
}

func (s *Session) read() error {
	meta, err := readMeta(s.dir)
	var foreign *foreignError
	if errors.As(err, &foreign) {
		return err
	}
	if err != nil {
		key := newKey()
		meta = Meta{Created: s.store.Now(), Key: hex.EncodeToString(key[:])}
		if err := writeMeta(s.dir, meta); err != nil {
			return err
		}
	}
	s.Meta, s.Key = meta, meta.key()
	if s.journal, err = os.OpenFile(s.journalPath(), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
		return err
	}
	info, err := s.journal.Stat()
	if err != nil {
		return err
	}
	if info.Size() == 0 {
		return s.begin(newState(""))
	}
	return s.load(info.Size())
}

// begin writes the opening of a journal.
func (s *Session) begin(from *State) error {
	data, err := opening(from, s.store.Now())
	if err != nil {
		return err
	}
	if _, err := s.journal.Write(data); err != nil {
		return err
	}
	return s.load(int64(len(data)))
}

// load reads the snapshot's head and the journal behind it, or all of the
// journal where that does not help.
func (s *Session) load(size int64) error {
	s.offset, s.rewritten, s.tail, s.global, s.full, s.torn = 0, 0, nil, false, nil, false
	generation, err := generationOf(s.journal, size)
	var foreign *foreignError
	if errors.As(err, &foreign) {
		return err
	}
	if h, headErr := s.readHead(); err == nil && headErr == nil && h.Generation == generation && h.Offset <= size {
		if ok, err := s.loadTail(h, size); ok || err != nil {
			return err
		}
	}
	return s.loadAll(size)
}

// loadTail follows the events behind the snapshot. It reports false when they
// cannot be followed without those before.
func (s *Session) loadTail(h head, size int64) (bool, error) {
	p, ok, err := parseTail(s.journal, h.Offset, size)
	if !ok {
		return false, err
	}
	now := &State{Base: h.Base}
	for _, e := range p.events {
		s.global = s.global || now.isGlobal(e)
		now.session(e)
	}
	s.before, s.state, s.tail = h.Base, now.Base, p.events
	s.offset, s.rewritten = h.Offset, h.Rewritten
	s.size, s.torn = p.good, p.good < size
	return true, nil
}

func (s *Session) loadAll(size int64) error {
	p, err := s.parseAll(size)
	if err != nil {
		return err
	}
	s.full, _ = fold(p.events)
	s.state = s.full.Base
	s.size, s.torn = p.good, p.good < size
	if p.damaged {
		s.Warnings = append(s.Warnings, damageWarning(s.ID))
		return s.rewrite(size) // all of it: what is torn shows where the damage is
	}
	return nil
}

func damageWarning(id string) string {
	return fmt.Sprintf("the journal of session %s is damaged: what stood before the damage counts as not sent", id)
}

// parseAll reads the journal up to size.
func (s *Session) parseAll(size int64) (parsed, error) {
	return parseRange(s.journal, 0, size)
}

// all gives the whole state as it is now.
func (s *Session) all() (*State, error) {
	p, err := s.parseAll(s.size)
	if err != nil {
		return nil, err
	}
	all, _ := fold(p.events)
	return all, nil
}

// State gives the session without its files.
func (s *Session) State() Base { return s.state }

// Entry gives what is known of a file, with positions as they are after used
// was reported; nil if nothing is. The caller may change it.
func (s *Session) Entry(identity string, used *int64) (*Entry, error) {
	if s.full == nil {
		st, err := s.follow(identity)
		if err != nil {
			if s.full, err = s.all(); err != nil {
				return nil, err
			}
		} else {
			return entryOf(st, identity, used), nil
		}
	}
	return entryOf(s.full, identity, used), nil
}

func entryOf(st *State, identity string, used *int64) *Entry {
	e := st.Files[identity]
	if e == nil {
		return nil
	}
	e = e.Clone()
	if used != nil {
		only := &State{Base: st.Base, Files: map[string]*Entry{identity: e}}
		only.Report(*used)
		e = only.Files[identity]
	}
	return e
}

// follow finds the file in the snapshot and applies the events behind it.
func (s *Session) follow(identity string) (*State, error) {
	e, upTo, err := s.find(identity, s.before.Generation)
	if err != nil {
		return nil, err
	}
	st := newState(identity)
	st.Base = s.before
	for _, ev := range s.tail {
		if e != nil && ev.end > upTo {
			st.Files[identity], e = e, nil
		}
		st.session(ev)
		if ev.end > upTo {
			st.files(ev)
		}
	}
	if e != nil {
		st.Files[identity] = e
	}
	return st, nil
}

// Append records an event: one line, one write. What was torn behind the last
// whole line is cut off first. An error means that nothing was recorded.
func (s *Session) Append(e Event) error {
	e.At = s.store.Now()
	line, err := e.encode()
	if err != nil {
		return err
	}
	if s.torn {
		if err := s.journal.Truncate(s.size); err != nil {
			return err
		}
		s.torn = false
	}
	if _, err := s.journal.Write(line); err != nil {
		s.torn = true
		return err
	}
	s.size += int64(len(line))
	e.end = s.size
	s.took(e)
	s.upkeep(e.Op == OpRewind)
	return nil
}

// took follows an event that was recorded.
func (s *Session) took(e Event) {
	now := &State{Base: s.state}
	s.global = s.global || now.isGlobal(e)
	if e.Op == OpRewind || s.full != nil {
		if all, err := s.all(); err == nil {
			s.full, s.state = all, all.Base
		}
		return
	}
	now.session(e)
	s.state, s.tail = now.Base, append(s.tail, e)
}

// upkeep keeps journal, snapshot and drafts in bounds. It may fail without
// harm: all it makes can be made again.
func (s *Session) upkeep(rewound bool) {
	switch tail := s.size - s.offset; {
	case s.size-s.rewritten > max(s.limits.Growth, s.rewritten):
		s.rewrite(s.size)
	case rewound && s.size > s.limits.Tail, tail > s.limits.Tail && (s.global || s.full != nil):
		if all, err := s.all(); err == nil {
			s.rebuild(all)
		}
	case tail > s.limits.Tail:
		s.refold(s.tail)
	}
	if s.addedDraft {
		s.sortOutDrafts()
	}
}

// rewrite replaces the journal by a shorter one that says the same.
func (s *Session) rewrite(size int64) error {
	data := make([]byte, size)
	if _, err := s.journal.ReadAt(data, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	data, err := rewritten(data, s.limits.History, s.store.Now())
	if err != nil {
		return err
	}
	if err := Replace(s.journalPath(), data); err != nil {
		return err
	}
	s.journal.Close()
	if s.journal, err = os.OpenFile(s.journalPath(), os.O_RDWR|os.O_APPEND, 0o600); err != nil {
		return err
	}
	if err := s.load(int64(len(data))); err != nil {
		return err
	}
	s.rewritten = s.size
	return s.rebuild(s.full)
}

// Files gives the whole state.
func (s *Session) Files() (*State, error) { return s.all() }

// At gives the state that a rewind to seq would lead to.
func (s *Session) At(seq int64) (*State, error) {
	p, err := s.parseAll(s.size)
	if err != nil {
		return nil, err
	}
	at, _ := fold(append(p.events, Event{V: format, Seq: seq, Op: OpRewind}))
	return at, nil
}
