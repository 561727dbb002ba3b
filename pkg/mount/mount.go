// Package mount answers reads with what the caller does not have yet. It
// remembers per session which lines of which content the conversation holds,
// sends what is missing or has changed, and a one-line marker for the rest. A
// marker never covers a line that the caller lacks or has in an older form.
//
// It works over any remotefs.FS. Rules are numbered in mount.md; package ledger
// keeps the state on disk.
package mount

import (
	"context"
	"path"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/mount/ledger"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// Mount is one world seen through the ledgers of a store. Its methods may run
// at the same time; those of one session wait for each other.
type Mount struct {
	Files remotefs.FS
	// World is the identity of the world: the same path in another one is
	// another file.
	World string
	// Cwd is the directory to which paths in markers are relative; "" = none.
	Cwd    string
	Config Config
	Store  *ledger.Store
	// Window holds the caps of a read: MaxLimit, MaxLineLength, MaxBytes.
	Window remotefs.WindowOptions
	// FoldsCase reports whether the world's file system takes names that differ
	// in case for one; nil: it does not.
	FoldsCase func(ctx context.Context, key string) bool
	// Warn takes one line about trouble that fails nothing.
	Warn func(line string)
	Now  func() time.Time
}

// Call is what the caller says of the conversation with each command. Nil means
// not reported.
type Call struct {
	// Session is the id; "" = none.
	Session string
	// Hint says that a marker has to name the session, because the environment
	// does not.
	Hint   bool
	Seq    *int64 // of the message that carries the answer
	Used   *int64 // tokens in the prompt
	Window *int64 // tokens that the model takes
	Wait   time.Duration
}

// Check reports a usage error for values that no call can have.
func (c Call) Check() error {
	for _, v := range []struct {
		name string
		at   *int64
		min  int64
	}{{"--seq", c.Seq, 0}, {"--context-used", c.Used, 0}, {"--context-window", c.Window, 1}} {
		if v.at != nil && *v.at < v.min {
			return fault.New(fault.Usage, "mount", "", "%s must be at least %d, not %d", v.name, v.min, *v.at)
		}
	}
	if c.Session != "" {
		return ledger.CheckID(c.Session)
	}
	return nil
}

// next gives the seq of this call's carrier.
func (c Call) next(last int64) (int64, error) {
	switch {
	case c.Seq == nil:
		return last + 1, nil
	case *c.Seq < last:
		return 0, fault.New(fault.Usage, "mount", "", "--seq %d is before the last seq %d of session %s", *c.Seq, last, c.Session).
			WithHint("if the conversation was cut back, say so first: afield mount rewind --to %d", *c.Seq)
	}
	return *c.Seq, nil
}

// usage gives where the conversation stands: as reported now, else as
// remembered.
func (m *Mount) usage(now ledger.Base, c Call) usage {
	u := usage{now.Used, now.Window}
	if c.Used != nil {
		u.used = *c.Used
	}
	if c.Window != nil {
		u.window = *c.Window
	}
	if u.window == ledger.Unknown {
		u.window = m.Config.ContextWindow
	}
	return u
}

// identity gives the key of a file in the ledger and the path that globs and
// searches see.
func (m *Mount) identity(ctx context.Context, t remotefs.Target) (identity, key string) {
	key = t.Key
	if m.FoldsCase != nil && m.FoldsCase(ctx, key) {
		key = foldCase(key)
	}
	return m.World + ":" + key, key
}

// shownPath gives the path of a file for a marker.
func (m *Mount) shownPath(t remotefs.Target) string {
	if m.Cwd == "" || !path.IsAbs(t.Display) {
		return t.Display
	}
	return displayPath(t.Display, m.Cwd)
}

func (m *Mount) warn(line string) {
	if m.Warn != nil {
		m.Warn(line)
	}
}

// open locks the session of a call that changes the ledger.
func (m *Mount) open(ctx context.Context, c Call) (*ledger.Session, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	if c.Session == "" {
		return nil, noSession()
	}
	s, err := m.Store.Open(ctx, c.Session, c.Wait)
	if err != nil {
		return nil, ledgerFault(ctx, err, c.Session)
	}
	for _, w := range s.Warnings {
		m.warn(w)
	}
	return s, nil
}

func noSession() error {
	return fault.New(fault.Usage, "mount", "", "no session is named").
		WithHint("give --session ID or set AFIELD_SESSION")
}

// book adds an event's deltas to the cross-session totals.
func (m *Mount) book(ctx context.Context, before ledger.Base, e ledger.Event) {
	if m.Config.StatsFile == "" {
		return
	}
	var d StatsDelta
	if e.Booked != nil {
		d.Totals = *e.Booked
	}
	if !before.Counted && e.File != nil && len(e.File.Segments) > 0 {
		d.Sessions = 1
	}
	if d == (StatsDelta{}) {
		return
	}
	if err := AddStats(ctx, m.Config.StatsFile, d); err != nil {
		m.warn("cannot update the statistics file: " + err.Error())
	}
}
