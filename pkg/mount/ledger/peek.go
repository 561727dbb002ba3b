package ledger

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
)

// Peek gives the whole state of a session once, as a follower does.
func (st *Store) Peek(ctx context.Context, id string, wait time.Duration) (state *State, warnings []string, err error) {
	return st.Follow(id).Next(ctx, wait)
}

// JournalPath is the file that grows or is replaced with every change of a
// session.
func (st *Store) JournalPath(id string) string {
	return filepath.Join(st.dir(id), "journal.jsonl")
}

// Fork makes the session id from the state that s had at seq: files, key and
// drafts are copied, totals begin at zero. A session that exists is a usage
// error.
func (s *Session) Fork(ctx context.Context, id string, seq int64, wait time.Duration) error {
	if err := CheckID(id); err != nil {
		return err
	}
	at, err := s.At(seq)
	if err != nil {
		return err
	}
	at.Totals, at.Counted = Totals{}, false
	if _, err := os.Stat(s.store.JournalPath(id)); err == nil || id == s.ID {
		return exists(id)
	}
	l, err := lockSession(ctx, s.store.dir(id), true, wait)
	if err != nil {
		return err
	}
	child := &Session{ID: id, store: s.store, limits: s.limits, dir: s.store.dir(id), lock: l}
	defer child.Close()
	if _, err := os.Stat(child.journalPath()); err == nil {
		return exists(id)
	}
	born := Meta{Created: s.store.Now(), Parent: s.ID, ParentSeq: seq, Key: s.Meta.Key}
	if err := writeMeta(child.dir, born); err != nil {
		return err
	}
	if err := s.copyDrafts(child); err != nil {
		return err
	}
	data, err := opening(at, s.store.Now())
	if err != nil {
		return err
	}
	return Replace(child.journalPath(), data)
}

func exists(id string) error {
	return fault.New(fault.Usage, "mount fork", "", "the session %s exists already", id).
		WithHint("fork to an id that nobody has used")
}

// copyDrafts gives child the drafts of s.
func (s *Session) copyDrafts(child *Session) error {
	from, to := filepath.Join(s.dir, "drafts"), filepath.Join(child.dir, "drafts")
	entries, err := os.ReadDir(from)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err == nil {
			err = Replace(filepath.Join(to, e.Name()), data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
