// Package ledger keeps what a session's conversation already holds: per file
// the ranges of lines that were sent, with the message that carried them. It
// lives on disk, one folder a session, and many processes may use it at once.
//
// A session's folder holds a lock, a journal of events to which one line is
// added per change, and a snapshot of the journal's fold by which the state of
// one file is found without reading that of the others. Drafts are the keyed
// fingerprints of a content's lines. No content is stored. In every doubt (an
// unknown version, a torn record, a missing draft) lines count as not sent.
// Layout and rules are those of mount.md 17.4 and 17.5.
package ledger

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
)

// Store holds the sessions below one folder.
type Store struct {
	// Dir is the folder of all sessions; it is made when the first one is.
	Dir string
	// Now is the clock.
	Now func() time.Time
	// MaxDrafts are kept per session for mounted files, SpareDrafts for others.
	MaxDrafts, SpareDrafts int
	// Limits bound journal and snapshot.
	Limits Limits
}

// Limits say when a session's files are kept in order; 0 stands for the
// default.
type Limits struct {
	// Growth is by how many bytes a journal grows before it is rewritten: 4 MiB.
	Growth int64
	// History is how many events a rewriting keeps for a rewind: 500.
	History int
	// Tail is how many bytes of the journal follow the snapshot before the next
	// writer folds them: 32 KiB.
	Tail int64
}

func (l Limits) withDefaults() Limits {
	if l.Growth <= 0 {
		l.Growth = 4 << 20
	}
	if l.History <= 0 {
		l.History = 500
	}
	if l.Tail <= 0 {
		l.Tail = 32 << 10
	}
	return l
}

// CheckID reports a usage error for an id that no session can have: 1 to 128
// characters of A-Za-z0-9._-, the first one no dot.
func CheckID(id string) error {
	ok := len(id) >= 1 && len(id) <= 128 && id[0] != '.'
	for _, c := range []byte(id) {
		ok = ok && (c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("._-", c) >= 0)
	}
	if !ok {
		return fault.New(fault.Usage, "mount", "", "the session id %q is not valid", id).
			WithHint("1 to 128 characters of A-Z a-z 0-9 . _ -, not starting with a dot")
	}
	return nil
}

func (st *Store) dir(id string) string { return filepath.Join(st.Dir, id) }

// Sessions gives the ids that exist, in byte order.
func (st *Store) Sessions() ([]string, error) {
	entries, err := os.ReadDir(st.Dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	ids := []string{}
	for _, e := range entries {
		if e.IsDir() && CheckID(e.Name()) == nil {
			ids = append(ids, e.Name())
		}
	}
	return ids, nil
}

// Collect removes the sessions that nobody has used since before. One that is
// in use stays. It gives the ids that are gone and those that stay.
func (st *Store) Collect(ctx context.Context, before time.Time) (gone, kept []string, err error) {
	ids, err := st.Sessions()
	gone, kept = []string{}, []string{}
	for _, id := range ids {
		if st.lastUse(id).Before(before) && st.remove(ctx, id, before) {
			gone = append(gone, id)
		} else {
			kept = append(kept, id)
		}
	}
	slices.Sort(gone)
	return gone, kept, err
}

// remove takes the session's lock and deletes its folder.
func (st *Store) remove(ctx context.Context, id string, before time.Time) bool {
	l, err := lockSession(ctx, st.dir(id), true, time.Millisecond)
	if err != nil {
		return false
	}
	defer l.release()
	if !st.lastUse(id).Before(before) {
		return false
	}
	return os.RemoveAll(st.dir(id)) == nil
}

// lastUse is when the session's journal was last written.
func (st *Store) lastUse(id string) time.Time {
	for _, name := range []string{"journal.jsonl", "meta.json", ""} {
		if info, err := os.Stat(filepath.Join(st.dir(id), name)); err == nil {
			return info.ModTime()
		}
	}
	return time.Time{}
}
