package mount

import (
	"context"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/mount/ledger"
)

// ForgetAnswer says whether and how many files were forgotten.
type ForgetAnswer struct {
	Forgotten bool  `json:"forgotten"`
	Count     int   `json:"count"`
	Seq       int64 `json:"seq"`
}

// DropAnswer is what a compaction or a rewind took off the ledger, and the last
// seq after it.
type DropAnswer struct {
	DroppedSegments int   `json:"droppedSegments"`
	DroppedFiles    int   `json:"droppedFiles"`
	Seq             int64 `json:"seq"`
}

// ForkAnswer names both sessions and the seq that they have in common.
type ForkAnswer struct {
	From string `json:"from"`
	To   string `json:"to"`
	Seq  int64  `json:"seq"`
}

// ContextAnswer is what is remembered of the context.
type ContextAnswer struct {
	ContextUsed   *int64 `json:"contextUsed"`
	ContextWindow int64  `json:"contextWindow"`
	Seq           int64  `json:"seq"`
}

// Forget drops what is known of files, so that the next read of each is new. A
// file that is not known is no error. No path: every file.
func (m *Mount) Forget(ctx context.Context, paths []string, c Call) (ForgetAnswer, error) {
	var a ForgetAnswer
	s, err := m.open(ctx, c)
	if err != nil {
		return a, err
	}
	defer s.Close()
	a.Seq = s.State().Seq
	seq, err := c.next(a.Seq)
	if err != nil {
		return a, err
	}
	if len(paths) == 0 {
		a.Count, err = m.forgetAll(s, c, seq)
	}
	for _, p := range paths {
		var known bool
		if known, err = m.forgetOne(ctx, s, c, p, seq); err != nil {
			return a, err
		}
		if known {
			a.Count++
		}
	}
	a.Forgotten, a.Seq = a.Count > 0, s.State().Seq
	return a, err
}

func (m *Mount) forgetAll(s *ledger.Session, c Call, seq int64) (int, error) {
	all, err := s.Files()
	if err != nil {
		return 0, ledgerFault(context.Background(), err, s.ID)
	}
	if len(all.Files) == 0 {
		return 0, nil
	}
	return len(all.Files), m.remember(s, c, ledger.Event{Op: ledger.OpForget, Seq: seq, All: true})
}

func (m *Mount) forgetOne(ctx context.Context, s *ledger.Session, c Call, path string, seq int64) (bool, error) {
	t, err := m.Files.Resolve(ctx, path, "")
	if err != nil {
		return false, err
	}
	identity, _ := m.identity(ctx, t)
	e, err := s.Entry(identity, nil)
	if err != nil {
		return false, ledgerFault(ctx, err, s.ID)
	}
	if e == nil {
		return false, nil
	}
	return true, m.remember(s, c, ledger.Event{Op: ledger.OpForget, Seq: seq, Forget: identity})
}

// Compact notes that messages left the conversation (mount.md 14): what only
// they carried is no longer mounted. The last seq stays.
func (m *Mount) Compact(ctx context.Context, gone ledger.Carriers, c Call) (DropAnswer, error) {
	s, err := m.open(ctx, c)
	if err != nil {
		return DropAnswer{}, err
	}
	defer s.Close()
	return m.dropping(s, c, ledger.Event{Op: ledger.OpCompact, Seq: s.State().Seq, Compact: &gone})
}

// Rewind goes back to the state after the last event up to seq; totals stay. It
// brings back what a later compaction dropped. Where the history does not reach
// so far, the ledger is empty after it.
func (m *Mount) Rewind(ctx context.Context, seq int64, c Call) (DropAnswer, error) {
	if seq < 0 {
		return DropAnswer{}, fault.New(fault.Usage, "mount rewind", "", "--to must be at least 0, not %d", seq)
	}
	s, err := m.open(ctx, c)
	if err != nil {
		return DropAnswer{}, err
	}
	defer s.Close()
	return m.dropping(s, c, ledger.Event{Op: ledger.OpRewind, Seq: seq})
}

// dropping records an event and counts what is gone after it.
func (m *Mount) dropping(s *ledger.Session, c Call, e ledger.Event) (DropAnswer, error) {
	before, err := s.Files()
	if err != nil {
		return DropAnswer{}, ledgerFault(context.Background(), err, s.ID)
	}
	if err := m.remember(s, c, e); err != nil {
		return DropAnswer{}, err
	}
	after, err := s.Files()
	if err != nil {
		return DropAnswer{}, ledgerFault(context.Background(), err, s.ID)
	}
	a := DropAnswer{Seq: after.Seq}
	for id, f := range before.Files {
		now := after.Files[id]
		if now == nil {
			a.DroppedFiles++
			a.DroppedSegments += len(f.Segments)
		} else {
			a.DroppedSegments += max(0, len(f.Segments)-len(now.Segments))
		}
	}
	return a, nil
}

// Fork makes the session to as a copy of c's at seq; nil: as it is now.
func (m *Mount) Fork(ctx context.Context, to string, seq *int64, c Call) (ForkAnswer, error) {
	s, err := m.open(ctx, c)
	if err != nil {
		return ForkAnswer{}, err
	}
	defer s.Close()
	at := s.State().Seq
	if seq != nil {
		at = min(at, *seq)
	}
	if at < 0 {
		return ForkAnswer{}, fault.New(fault.Usage, "mount fork", "", "--at must be at least 0, not %d", at)
	}
	if err := s.Fork(ctx, to, at, c.Wait); err != nil {
		return ForkAnswer{}, ledgerFault(ctx, err, to)
	}
	return ForkAnswer{c.Session, to, at}, nil
}

// Context notes what the caller reports without reading anything.
func (m *Mount) Context(ctx context.Context, c Call) (ContextAnswer, error) {
	s, err := m.open(ctx, c)
	if err != nil {
		return ContextAnswer{}, err
	}
	defer s.Close()
	e := ledger.Event{Op: ledger.OpContext, Seq: s.State().Seq}
	if c.Seq != nil {
		if e.Seq, err = c.next(e.Seq); err != nil {
			return ContextAnswer{}, err
		}
	}
	if err := m.remember(s, c, e); err != nil {
		return ContextAnswer{}, err
	}
	u := m.usage(s.State(), Call{})
	return ContextAnswer{known(u.used), u.window, s.State().Seq}, nil
}

// Collection is what Collect removed and kept.
type Collection struct {
	Removed []string `json:"removed"`
	Kept    []string `json:"kept"`
}

// Collect removes the sessions that nobody has used for so long.
func (m *Mount) Collect(ctx context.Context, idle time.Duration) (Collection, error) {
	gone, kept, err := m.Store.Collect(ctx, m.Now().Add(-idle))
	if err != nil {
		err = ledgerFault(ctx, err, "")
	}
	return Collection{gone, kept}, err
}
