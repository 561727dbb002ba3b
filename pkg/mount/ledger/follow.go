package ledger

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Follower gives the state of one session again and again and reads only what
// was added to its journal since. It writes nothing and is for one goroutine.
type Follower struct {
	store      *Store
	id         string
	state      *State
	generation string // of the journal that was read
	read       int64  // offset up to which it was
}

// Follow gives a follower that has read nothing yet.
func (st *Store) Follow(id string) *Follower { return &Follower{store: st, id: id} }

// Next gives the whole state of the session as it is now, empty for one that
// nobody has used. It holds until the following call; a file that no event
// touched since keeps its entry. Warnings say what of the session's files cannot
// be read. It fails with ErrBusy when the session is locked for longer than
// wait.
func (f *Follower) Next(ctx context.Context, wait time.Duration) (state *State, warnings []string, err error) {
	if err := CheckID(f.id); err != nil {
		return nil, nil, err
	}
	l, err := lockSession(ctx, f.store.dir(f.id), false, wait)
	if err == nil {
		defer l.release()
		warnings, err = f.follow()
	}
	var foreign *foreignError
	switch {
	case errors.Is(err, os.ErrNotExist):
		f.state, f.generation = newState(""), ""
	case errors.As(err, &foreign):
		f.state, f.generation = newState(""), ""
		warnings = append(warnings, fmt.Sprintf("session %s shows empty: %s", f.id, foreign))
	case err != nil:
		return nil, nil, err
	}
	return f.state, warnings, nil
}

// follow reads the journal, only its tail where that can be followed.
func (f *Follower) follow() ([]string, error) {
	journal, err := os.Open(f.store.JournalPath(f.id))
	if err != nil {
		return nil, err
	}
	defer journal.Close()
	info, err := journal.Stat()
	if err != nil {
		return nil, err
	}
	generation, err := generationOf(journal, info.Size())
	if f.generation != "" && err == nil && generation == f.generation && f.read <= info.Size() {
		if ok, err := f.followTail(journal, info.Size()); ok || err != nil {
			return nil, err
		}
	}
	return f.followAll(journal, info.Size(), generation)
}

// followTail applies the events behind those it has. It reports false, and has
// changed nothing, when they cannot be followed without those before.
func (f *Follower) followTail(journal io.ReaderAt, size int64) (bool, error) {
	p, ok, err := parseTail(journal, f.read, size)
	if !ok {
		return false, err
	}
	for _, e := range p.events {
		f.state.apply(e)
	}
	f.read = p.good
	return true, nil
}

func (f *Follower) followAll(journal io.ReaderAt, size int64, generation string) (warnings []string, err error) {
	p, err := parseRange(journal, 0, size)
	if err != nil {
		return nil, err
	}
	if p.damaged {
		warnings = append(warnings, damageWarning(f.id))
		generation = "" // what is wrong is said each time
	}
	f.state, _ = fold(p.events)
	f.generation, f.read = generation, p.good
	return warnings, nil
}
