package mount

import (
	"context"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/mount/ledger"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// WroteAnswer says whether a written file counts as known (mount.md 7).
type WroteAnswer struct {
	Kind       string         `json:"kind"` // known or unmounted
	Reason     *string        `json:"reason"`
	Mounted    []ledger.Range `json:"mounted"`
	TotalLines int            `json:"totalLines"`
	Seq        int64          `json:"seq"`
}

// EditedAnswer says that the next read compares.
type EditedAnswer struct {
	Kind string `json:"kind"` // stale
	Seq  int64  `json:"seq"`
}

// Wrote notes that the caller stored content in a whole file. What is on disk
// now is compared with it line by line; only if it is the same the file counts
// as known. A nil content says that the caller does not have it.
func (m *Mount) Wrote(ctx context.Context, at remotefs.At, content []byte, c Call) (WroteAnswer, error) {
	var a WroteAnswer
	err := m.changed(ctx, at, c, func(w *writing) error {
		found, err := w.look(ctx, content)
		if err != nil {
			return err
		}
		a, err = w.store(found)
		return err
	})
	return a, err
}

// Edited notes that a file was changed through a tool: its stat is no longer
// believed, and the next read compares and sends what changed.
func (m *Mount) Edited(ctx context.Context, at remotefs.At, c Call) (EditedAnswer, error) {
	a := EditedAnswer{Kind: "stale"}
	err := m.changed(ctx, at, c, func(w *writing) error {
		var err error
		a.Seq, err = w.stale(ledger.OpEdited)
		return err
	})
	return a, err
}

// changed locks the session and finds the file of a write or an edit.
func (m *Mount) changed(ctx context.Context, at remotefs.At, c Call, f func(*writing) error) error {
	s, err := m.open(ctx, c)
	if err != nil {
		return err
	}
	defer s.Close()
	w := &writing{Mount: m, session: s, call: c, now: s.State()}
	if w.seq, err = c.next(w.now.Seq); err != nil {
		return err
	}
	if w.target, w.info, err = m.Files.Stat(ctx, at); err != nil {
		return err
	}
	w.fresh.World, w.fresh.At = m.World, m.Now()
	w.fresh.Identity, w.fresh.Key = m.identity(ctx, w.target)
	w.fresh.Path = m.shownPath(w.target)
	if w.entry, err = s.Entry(w.fresh.Identity, c.Used); err != nil {
		return ledgerFault(ctx, err, c.Session)
	}
	return f(w)
}

// writing is one write or edit that the ledger learns of.
type writing struct {
	*Mount
	session *ledger.Session
	call    Call
	now     ledger.Base
	seq     int64
	target  remotefs.Target
	info    *remotefs.Info
	entry   *ledger.Entry
	fresh   ledger.Entry
}

// found is what is on disk after a write.
type found struct {
	content content
	draft   *ledger.Draft
	reason  string // why the file does not count as known; "" = it does
}

// look compares what is on disk with what was written.
func (w *writing) look(ctx context.Context, written []byte) (found, error) {
	switch {
	case w.info == nil:
		return found{}, fault.New(fault.FSNotFound, "mount wrote", w.target.Display, "cannot read %q: not found", w.target.Display)
	case excluded(w.Config.ExcludeGlobs, w.fresh.Key):
		return found{reason: "excluded"}, nil
	case written == nil:
		return found{reason: "no-content"}, nil
	case w.info.Size > w.Config.MaxManagedBytes:
		return found{reason: "too-large"}, nil
	}
	got, err := w.Files.ReadBytes(ctx, remotefs.AtTarget(w.target), w.Config.MaxManagedBytes)
	if fault.Is(err, fault.FSTooLarge) {
		return found{reason: "too-large"}, nil
	} else if err != nil {
		return found{}, err
	}
	f := found{content: newContent(got.Content)}
	if f.content.total > 0 && remotefs.CheckText(got.Content, w.target.Display) == nil {
		f.draft = w.draftFor(w.session, f.content, w.lineLength())
	}
	switch {
	case f.draft == nil:
		f.reason = "no-draft"
	case !sameLines(got.Content, written):
		f.reason = "content-differs"
	}
	return f, nil
}

func (m *Mount) lineLength() int {
	if m.Window.MaxLineLength > 0 {
		return m.Window.MaxLineLength
	}
	return remotefs.DefaultReadMaxLineLength
}

// store records a write.
func (w *writing) store(f found) (WroteAnswer, error) {
	a := WroteAnswer{Kind: "unmounted", Mounted: []ledger.Range{}}
	if f.reason != "" {
		a.Reason = &f.reason
		if w.entry != nil {
			w.entry.NoBase = w.entry.NoBase || f.reason == "content-differs"
			a.Mounted, a.TotalLines = ledger.Mounted(w.entry.Segments), w.entry.Total
		}
		var err error
		a.Seq, err = w.stale(ledger.OpWrote)
		return a, err
	}
	e := w.fresh
	whole := ledger.Range{Start: 1, End: f.content.total}
	e.Hash, e.Size, e.Total = f.content.hash, int64(len(f.content.bytes)), f.content.total
	e.Stamp, e.Kind = stamp(w.info, e.At), "known"
	position := w.usage(w.now, w.call).used
	e.Segments = []ledger.Segment{{Range: whole, Seq: w.seq, Position: position, Tokens: ledger.Unknown}}
	if w.entry != nil {
		e.Totals = w.entry.Totals
	}
	w.session.KeepDraft(e.Hash, f.draft)
	a.Kind, a.Mounted, a.TotalLines, a.Seq = "known", []ledger.Range{whole}, e.Total, w.seq
	return a, w.append(ledger.Event{Op: ledger.OpWrote, Seq: w.seq, File: &e})
}

// stale records that the stat of the file is not to be believed, if there is
// anything to believe.
func (w *writing) stale(op ledger.Op) (int64, error) {
	e := ledger.Event{Op: op, Seq: w.seq}
	if w.entry == nil {
		if w.call.Seq == nil {
			e.Seq = w.now.Seq
		}
		return e.Seq, w.append(e)
	}
	w.entry.Stamp, w.entry.Valve = nil, 0
	e.File = w.entry
	return w.seq, w.append(e)
}

// append records an event unless it changes nothing.
func (w *writing) append(e ledger.Event) error {
	return w.remember(w.session, w.call, e)
}

// remember adds what the caller reported to an event and records it, unless it
// says nothing new.
func (m *Mount) remember(s *ledger.Session, c Call, e ledger.Event) error {
	now := s.State()
	always := now.Shift != ledger.Unknown || e.Op == ledger.OpRewind
	e.Used, e.Window = news(c.Used, now.Used, always), news(c.Window, now.Window, e.Op == ledger.OpRewind)
	nothing := e.File == nil && e.Forget == "" && !e.All && e.Compact == nil && e.Op != ledger.OpRewind
	if nothing && e.Used == nil && e.Window == nil && e.Seq == now.Seq {
		return nil
	}
	if err := s.Append(e); err != nil {
		return ledgerFault(context.Background(), err, s.ID)
	}
	m.book(context.Background(), now, e)
	return nil
}
