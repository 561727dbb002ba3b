package mount

import (
	"context"
	"errors"
	"fmt"

	"time"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/mount/ledger"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// settled is how much older than the look at it a modification time must be: a
// second write can fall into the same tick of the file system's clock.
const settled = 2 * time.Second

// Read answers a read. deliver gets the whole answer and writes it; only when
// it returns nil is anything recorded. A ledger that cannot be used makes the
// answer native, with a warning; so errors are those of the read itself, of
// usage, and of deliver.
func (m *Mount) Read(ctx context.Context, at remotefs.At, opts remotefs.WindowOptions, c Call, deliver func(*Answer) error) error {
	opts, err := m.options(at, opts)
	if err == nil {
		err = c.Check()
	}
	if err != nil {
		return err
	}
	r := &reading{Mount: m, at: at, opts: opts, call: c, deliver: deliver}
	switch {
	case !m.Config.Enabled:
		return r.plain(ctx, "disabled")
	case c.Session == "":
		return r.plain(ctx, "no-session")
	}
	s, err := m.open(ctx, c)
	if err != nil {
		return r.without(ctx, err)
	}
	defer s.Close()
	r.session = s
	return r.managed(ctx)
}

// options fills in the caps and refuses what is wrong before any I/O.
func (m *Mount) options(at remotefs.At, opts remotefs.WindowOptions) (remotefs.WindowOptions, error) {
	if at.Target.Key == "" && remotefs.Blank(at.Path) {
		return opts, fault.New(fault.Usage, "read", at.Path, "file_path must be a non-empty string")
	}
	opts.MaxLimit, opts.MaxLineLength, opts.MaxBytes = m.Window.MaxLimit, m.Window.MaxLineLength, m.Window.MaxBytes
	return opts.Check()
}

// reading is one read.
type reading struct {
	*Mount
	at      remotefs.At
	opts    remotefs.WindowOptions
	call    Call
	deliver func(*Answer) error

	session *ledger.Session // nil where none is used
	seq     int64           // of the carrier
	usage   usage
	target  remotefs.Target
	info    *remotefs.Info
	entry   *ledger.Entry
	fresh   ledger.Entry
}

// without answers natively because the ledger cannot be used.
func (r *reading) without(ctx context.Context, err error) error {
	if fault.Is(err, fault.Usage) || ctx.Err() != nil {
		return err
	}
	reason := "ledger-unavailable"
	if errors.Is(err, ledger.ErrBusy) {
		reason = "ledger-busy"
	}
	r.warn(err.Error() + "; the file is shown as it is")
	return r.plain(ctx, reason)
}

// managed is a read with a session.
func (r *reading) managed(ctx context.Context) error {
	now := r.session.State()
	r.usage = r.Mount.usage(now, r.call)
	var err error
	if r.seq, err = r.call.next(now.Seq); err != nil {
		return err
	}
	if r.target, r.info, err = r.Files.Stat(ctx, r.at); err != nil || r.info == nil || r.info.Type != remotefs.TypeFile {
		return r.plain(ctx, "ledger-unavailable") // and mostly fails as a read does
	}
	looked := r.Now()
	identity, key := r.identity(ctx, r.target)
	switch {
	case excluded(r.Config.ExcludeGlobs, key):
		return r.plain(ctx, "excluded")
	case r.info.Size > r.Config.MaxManagedBytes:
		return r.plain(ctx, "too-large")
	}
	if r.entry, err = r.session.Entry(identity, r.call.Used); err != nil {
		return r.without(ctx, err)
	}
	r.fresh = ledger.Entry{Identity: identity, World: r.World, Key: key, Path: r.shownPath(r.target), At: looked}
	if done, err := r.fromDraft(looked); done {
		return err
	}
	return r.fromBytes(ctx, looked)
}

// fromDraft answers without reading the file if the stat is believed and
// nothing is to be sent (mount.md 17.4). It reports whether it did.
func (r *reading) fromDraft(now time.Time) (bool, error) {
	e := r.entry
	if e == nil || !trusts(e.Stamp, r.info, now, r.Config.TTL) {
		return false, nil
	}
	draft := r.session.Draft(e.Hash)
	if draft == nil {
		return false, nil
	}
	v, ok := measured(draft, r.opts)
	if !ok {
		return false, nil
	}
	r.know(e.Hash, e.Size, v.total)
	r.fresh.Stamp = e.Stamp
	d := r.question(v, nil).decide()
	if d.kind != Dedupe {
		return false, nil
	}
	return true, r.finish(v, d, nil)
}

// trusts reports whether a file is unchanged by its stat alone.
func trusts(s *ledger.Stamp, info *remotefs.Info, now time.Time, ttl time.Duration) bool {
	if s == nil {
		return false
	}
	age := now.Sub(s.Verified)
	return age >= 0 && age < ttl &&
		s.Version == info.Version && s.Size == info.Size && s.ModTime.Equal(info.ModTime)
}

// stamp gives the stat to remember with a content that was read after it; nil
// if it cannot be trusted.
func stamp(info *remotefs.Info, now time.Time) *ledger.Stamp {
	if info.Version == "" || info.ModTime.IsZero() || now.Sub(info.ModTime) < settled {
		return nil
	}
	return &ledger.Stamp{Version: info.Version, Size: info.Size, ModTime: info.ModTime, Verified: now}
}

// fromBytes reads the file and answers.
func (r *reading) fromBytes(ctx context.Context, looked time.Time) error {
	got, err := r.Files.ReadBytes(ctx, remotefs.AtTarget(r.target), r.Config.MaxManagedBytes)
	switch {
	case fault.Is(err, fault.FSTooLarge):
		return r.plain(ctx, "too-large")
	case err != nil:
		return err
	}
	win, err := remotefs.WindowOf(got.Content, r.target.Display, r.opts)
	if err != nil {
		return err
	}
	if len(win.Lines) == 0 {
		return r.native(shown(win), "empty")
	}
	c := newContent(got.Content)
	r.know(c.hash, int64(len(c.bytes)), c.total)
	r.fresh.Stamp = stamp(r.info, looked)
	var draft *ledger.Draft
	if r.entry == nil || r.entry.Hash != c.hash || r.session.Draft(c.hash) == nil {
		draft = r.draftOf(c)
	}
	v := shown(win)
	d := r.question(v, func() survival { return r.survivors(c, draft) }).decide()
	return r.finish(v, d, draft)
}

func (r *reading) know(hash string, size int64, total int) {
	r.fresh.Hash, r.fresh.Size, r.fresh.Total = hash, size, total
}

// draftFor fingerprints a content, nil if it is too large for that.
func (m *Mount) draftFor(s *ledger.Session, c content, cut int) *ledger.Draft {
	if int64(len(c.bytes)) > m.Config.MaxFingerprintBytes {
		return nil
	}
	return c.draft(s.Key, cut)
}

func (r *reading) draftOf(c content) *ledger.Draft {
	return r.draftFor(r.session, c, r.opts.MaxLineLength)
}

// survivors is what is left of the entry in a changed content.
func (r *reading) survivors(c content, draft *ledger.Draft) survival {
	old := base{size: r.entry.Size, hash: r.entry.Hash, total: r.entry.Total, gone: r.entry.NoBase}
	if old.size <= r.Config.MaxFingerprintBytes {
		old.draft = r.session.Draft(old.hash)
	}
	return survive(r.entry.Segments, old, c, draft)
}

func (r *reading) question(v view, survive func() survival) *question {
	l := label{path: r.fresh.Path, hash: r.fresh.Hash, total: v.total}
	if r.call.Hint {
		l.session = r.call.Session
	}
	return &question{
		config: &r.Config, entry: r.entry, fresh: r.fresh, view: v, usage: r.usage, seq: r.seq, label: l, survive: survive,
	}
}

// finish delivers the answer to a question and then records it.
func (r *reading) finish(v view, d decision, draft *ledger.Draft) error {
	now := r.session.State()
	if d.entry != nil {
		d.entry.Kind = string(d.kind)
		d.entry.Totals.Add(d.booked())
	}
	a := r.answer(v, d, now)
	if err := r.deliver(a); err != nil {
		return err
	}
	if draft != nil && d.entry != nil {
		r.session.KeepDraft(d.entry.Hash, draft)
	} else if d.entry != nil {
		r.session.TouchDraft(d.entry.Hash)
	}
	e := ledger.Event{Op: ledger.OpRead, Seq: r.seq, File: d.entry}
	if booked := d.booked(); booked != (ledger.Totals{}) {
		e.Booked = &booked
	}
	r.record(now, e)
	return nil
}

func (d decision) booked() ledger.Totals {
	return ledger.Totals{Saved: int64(d.saved), Overhead: int64(d.overhead)}
}

// record appends what a read has changed: the file, or at least what the caller
// reported. A failure is a warning: the answer is delivered.
func (r *reading) record(now ledger.Base, e ledger.Event) {
	e.Used, e.Window = news(r.call.Used, now.Used, now.Shift != ledger.Unknown), news(r.call.Window, now.Window, false)
	if e.File == nil {
		if e.Used == nil && e.Window == nil && (r.call.Seq == nil || *r.call.Seq == now.Seq) {
			return
		}
		e = ledger.Event{Op: ledger.OpContext, Seq: now.Seq, Used: e.Used, Window: e.Window}
		if r.call.Seq != nil {
			e.Seq = *r.call.Seq
		}
	}
	if err := r.session.Append(e); err != nil {
		r.warn(fmt.Sprintf("cannot record what was sent: %s; it will be sent again", err))
		return
	}
	r.book(context.Background(), now, e)
}

// news gives what was reported if the session does not know it yet, or always.
func news(reported *int64, known int64, always bool) *int64 {
	if reported == nil || *reported == known && !always {
		return nil
	}
	return reported
}

// answer makes the answer of a decision.
func (r *reading) answer(v view, d decision, now ledger.Base) *Answer {
	after := r.entry
	if d.entry != nil {
		after = d.entry
	}
	a := r.blank(v, d.kind, d.reason)
	a.Hash, a.Change, a.Sent = &r.fresh.Hash, d.change, d.sent
	if a.Sent == nil {
		a.Sent = []ledger.Range{}
	}
	seq := r.seqOf(d, now)
	a.Seq = &seq
	a.Tokens = TokenCount{Window: v.weights.of(v.window), Saved: d.saved, Overhead: d.overhead, Resent: d.resent}
	now.Totals.Add(d.booked())
	a.Total = sums(now.Totals)
	a.setFile(&r.Config, after, r.usage)
	if d.marker != "" {
		a.Marker = &d.marker
	} else {
		a.Text = v.render(r.target.Display, r.opts.Limit)
	}
	a.setLines(v.text(d.sent))
	return a
}

// seqOf is the seq by which the ledger knows this answer: one that changes
// nothing does not take the next.
func (r *reading) seqOf(d decision, now ledger.Base) int64 {
	if d.entry == nil && r.call.Seq == nil {
		return now.Seq
	}
	return r.seq
}

// setFile sets what is known of the file after the answer.
func (a *Answer) setFile(c *Config, e *ledger.Entry, u usage) {
	if e == nil {
		a.Freshness = c.freshness(nil, u)
		return
	}
	a.File, a.Mounted = sums(e.Totals), ledger.Mounted(e.Segments)
	a.Valve.Count = e.Valve
	a.Freshness = c.freshness(e.Segments, u)
}

// render gives the text of a view of which the lines were read.
func (v view) render(display string, limit int) string {
	w := remotefs.Window{Offset: v.window.Start, Limit: limit, Lines: v.lines, Total: v.total, Capped: v.capped, BOM: v.bom}
	return w.Render(display)
}

// blank makes an answer of which the ledger knows nothing.
func (r *reading) blank(v view, kind Kind, reason string) *Answer {
	a := &Answer{
		Path: r.shownPath(r.target), Identity: r.fresh.Identity, Kind: kind, Reason: reason, TotalLines: v.total,
		Sent: []ledger.Range{}, Lines: []Line{}, Mounted: []ledger.Range{},
		Valve: ValveCount{Limit: r.Config.ValveReads}, Truncated: v.capped,
		Freshness: r.Config.freshness(nil, r.usage),
	}
	if a.Identity == "" {
		a.Identity = r.World + ":" + r.target.Key
	}
	if r.call.Session != "" {
		a.Session = &r.call.Session
	}
	if v.window.End >= v.window.Start {
		a.Window = &v.window
	}
	if v.next > 0 {
		a.NextOffset = &v.next
	}
	return a
}

// plain is the read as it would be without a ledger, streamed.
func (r *reading) plain(ctx context.Context, reason string) error {
	got, err := remotefs.ReadView(ctx, r.Files, r.at, r.opts)
	if err != nil {
		return err
	}
	r.target = got.Target
	if r.usage.window == 0 {
		r.usage = r.Mount.usage(ledger.Base{Used: ledger.Unknown, Window: ledger.Unknown}, r.call)
	}
	v := shown(got.Window)
	if len(got.Lines) == 0 && reason != "disabled" && reason != "no-session" {
		reason = "empty"
	}
	return r.native(v, reason)
}

// native delivers a window as it is. Nothing is recorded but what the caller
// reported.
func (r *reading) native(v view, reason string) error {
	a := r.blank(v, Passthrough, reason)
	if a.Window != nil {
		a.Sent = []ledger.Range{v.window}
	}
	a.Tokens.Window = v.weights.of(v.window)
	a.Text = v.render(r.target.Display, r.opts.Limit)
	a.setLines(v.text(a.Sent))
	if r.session == nil {
		return r.deliver(a)
	}
	now := r.session.State()
	seq := r.seqOf(decision{}, now)
	a.Seq, a.Total = &seq, sums(now.Totals)
	a.setFile(&r.Config, r.entry, r.usage)
	if err := r.deliver(a); err != nil {
		return err
	}
	r.record(now, ledger.Event{})
	return nil
}
