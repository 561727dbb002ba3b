package box

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/afield-dev/afield/pkg/backend/box/wire"
	"github.com/afield-dev/afield/pkg/fault"
)

// labelOurs is on every box that afield makes. A second label tells what it was
// made for and from which state directory.
const labelOurs = "afield"

// purpose is what a box was made for.
type purpose string

// The purposes: a row's commands, one command, and whoever asked for it.
const (
	forRow     purpose = "r"
	forCommand purpose = "c"
	forAsker   purpose = "a"
)

// ourLabels are the labels of a box that is made.
func ourLabels(p purpose, mark string) []string {
	return []string{labelOurs, labelOurs + "." + string(p) + "." + mark}
}

// owner makes the box of a world at its first use and deletes it if it was made
// for this command (remoteexec.md 17). Waiting for a box never cancels its
// creation; the owner keeps what comes late (OW-8).
type owner struct {
	cfg    *config
	client *wire.Client
	state  state
	log    *slog.Logger

	life context.Context // of creation
	end  context.CancelCauseFunc

	mu      sync.Mutex
	flight  *flight
	closing bool
	// doomed are boxes that were made here and must be deleted; they are
	// remembered from the instant they exist (OW-5).
	doomed  []string
	release func() // of the record of a command's box
}

// flight is one attempt to get the box.
type flight struct {
	done chan struct{}
	id   string
	err  error
}

func newOwner(cfg *config, client *wire.Client, s state, log *slog.Logger) *owner {
	o := &owner{cfg: cfg, client: client, state: s, log: log, release: func() {}}
	o.life, o.end = context.WithCancelCause(context.Background())
	return o
}

// box gives the id of the box. It waits no longer than ctx.
func (o *owner) box(ctx context.Context) (string, error) {
	if ctx.Err() != nil {
		return "", aborted(ctx, "open")
	}
	f, err := o.take()
	if err != nil {
		return "", err
	}
	select {
	case <-f.done:
	case <-ctx.Done():
		return "", aborted(ctx, "open")
	case <-o.life.Done():
		return "", disposing()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closing {
		return "", disposing()
	}
	return f.id, f.err
}

func disposing() error {
	return world(nil, fault.ExecDisposing, "the box is being given up")
}

// take joins the attempt that runs or has succeeded, or begins one.
func (o *owner) take() (*flight, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closing {
		return nil, disposing()
	}
	if f := o.flight; f != nil {
		select {
		case <-f.done:
			if f.err == nil {
				return f, nil
			}
		default:
			return f, nil
		}
	}
	f := &flight{done: make(chan struct{})}
	o.flight = f
	go func() {
		f.id, f.err = o.open(o.life)
		close(f.done)
	}()
	return f, nil
}

// open gives the box of the row's form.
func (o *owner) open(ctx context.Context) (string, error) {
	switch {
	case o.cfg.sandbox != "":
		return o.adopt(ctx)
	case o.cfg.create:
		return o.shared(ctx)
	case o.cfg.perCommand:
		return o.make(ctx, forCommand, "")
	}
	return "", needsForm()
}

// adopt uses a box that somebody else made. Its id costs no request; a name was
// resolved by an earlier failure (see rename).
func (o *owner) adopt(ctx context.Context) (string, error) {
	id := o.cfg.sandbox
	if r := o.state.load(o.nameKey()); r != nil {
		id = r.ID
	}
	o.tellPaused(ctx, id)
	return id, nil
}

func (o *owner) nameKey() string { return "name-" + o.cfg.account + "-" + o.cfg.sandbox }

// tellPaused says that a box is going to be woken, to those who want to know.
func (o *owner) tellPaused(ctx context.Context, id string) {
	if !o.log.Enabled(ctx, slog.LevelInfo) {
		return
	}
	if state, err := o.client.Status(ctx, id); err == nil && state == wire.StatePaused {
		o.log.Info("the box is paused and is resumed by this use", "box", id)
	}
}

// shared gives the box that commands with the same row share, and makes it
// where there is none.
func (o *owner) shared(ctx context.Context) (string, error) {
	key := o.cfg.rowKey()
	if id := o.known(key); id != "" {
		return id, nil
	}
	unlock, err := o.state.lock(key+".lock", true)
	if err != nil {
		return "", world(err, fault.BackendInternal, "the state directory cannot be locked: %s", err).
			WithHint("put AFIELD_STATE_DIR on a local disk that can be written")
	}
	defer unlock()
	if id := o.known(key); id != "" {
		return id, nil
	}
	return o.make(ctx, forRow, key)
}

// known gives the recorded box of a row unless its time is over.
func (o *owner) known(key string) string {
	r := o.state.load(key)
	if r == nil || !r.ExpiresAt.IsZero() && time.Now().After(r.ExpiresAt) {
		return ""
	}
	return r.ID
}

// make makes a box, prepares it and records it: one for a row under key, one for
// a command as long as that lives. A failure deletes what was made (OW-5).
func (o *owner) make(ctx context.Context, why purpose, key string) (string, error) {
	fields := o.cfg.fields
	mark, err := o.state.mark()
	if err != nil {
		return "", world(err, fault.BackendInternal, "the state directory cannot be written: %s", err)
	}
	fields.Labels = append(ourLabels(why, mark), fields.Labels...)
	b, made, err := create(ctx, o.client, fields, o.cfg.reuse, o.doom)
	if err == nil {
		err = o.prepare(ctx, b)
	}
	if err == nil && why == forRow {
		err = o.state.save(key, record{ID: b.ID, ExpiresAt: seconds(b.ExpiresAt)})
	}
	if err != nil {
		if made {
			_ = o.deleteDoomed() // what remains is tried again at the end (R7)
		}
		return "", remote(err)
	}
	if why == forRow {
		o.spare(b.ID)
		return b.ID, nil
	}
	if release, err := o.state.begin(b.ID); err == nil {
		o.mu.Lock()
		o.release = release
		o.mu.Unlock()
	}
	return b.ID, nil
}

// create makes a box and waits until it is ready. made tells the id as soon as
// there is one. With reuse a live box of the same name is taken instead.
func create(ctx context.Context, c *wire.Client, f wire.CreateFields, reuse bool, made func(id string)) (wire.Box, bool, error) {
	named := f.Name != ""
	if !named {
		f.Name = "afield-" + token(6) // so that a box whose answer was lost can be found
	}
	b, err := c.Create(ctx, f)
	var e *wire.Error
	switch {
	case err == nil:
	case wire.StatusOf(err) == http.StatusConflict && reuse:
		b, err := c.Get(ctx, f.Name)
		if err == nil {
			b, err = c.Ready(ctx, b)
		}
		return b, false, err
	case errors.As(err, &e) && e.Unknown() && !named:
		fresh, cancel := context.WithTimeout(context.WithoutCancel(ctx), rescueLimit)
		defer cancel()
		found, ferr := c.Get(fresh, f.Name)
		if ferr != nil {
			return wire.Box{}, false, err
		}
		made(found.ID)
		if ctx.Err() != nil {
			return found, true, err
		}
		b = found
	default:
		return wire.Box{}, false, err
	}
	made(b.ID)
	b, err = c.Ready(ctx, b)
	return b, true, err
}

// rescueLimit bounds what is done for a box after its user has gone.
const rescueLimit = 15 * time.Second

// prepare makes the working directory in a box that is ours. The status of the
// command counts, not only that it was run (OW-4, R24).
func (o *owner) prepare(ctx context.Context, b wire.Box) error {
	if o.cfg.cwd == defaultCwd {
		return nil
	}
	res, err := o.client.Exec(ctx, b.ID, []string{"mkdir", "-p", "--", o.cfg.cwd}, "")
	if err == nil && res.ExitCode != 0 {
		return world(nil, fault.ExecCwdMissing, "the working directory %q does not exist in the new box and cannot be made", o.cfg.cwd).
			WithHint("directories of this machine do not exist in the box: set cwd in the profile's row, or -C, to one below %s", defaultCwd)
	}
	return err
}

func (o *owner) doom(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !slices.Contains(o.doomed, id) {
		o.doomed = append(o.doomed, id)
	}
}

func (o *owner) spare(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.doomed = slices.DeleteFunc(o.doomed, func(d string) bool { return d == id })
}

// deleteDoomed deletes what was made here and is not to stay; what cannot be
// deleted stays doomed.
func (o *owner) deleteDoomed() error {
	o.mu.Lock()
	ids := slices.Clone(o.doomed)
	o.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), rescueLimit)
	defer cancel()
	var failures []error
	for _, id := range ids {
		if err := deleteBox(ctx, o.client, id); err != nil {
			failures = append(failures, err)
			continue
		}
		o.spare(id)
	}
	return errors.Join(failures...)
}

// deleteBox deletes a box with repetitions. One that is gone already counts as
// deleted, by the status alone (OW-6).
func deleteBox(ctx context.Context, c *wire.Client, id string) error {
	var err error
	for _, wait := range []time.Duration{0, 200 * time.Millisecond, time.Second} {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return remote(err)
		}
		if err = c.Delete(ctx, id); err == nil || isGone(err) {
			return nil
		}
	}
	return remote(err)
}

// close gives the box up: waiting users get an error, a creation under way is
// ended, and what was made for this command is deleted (C327, DI-1). It may be
// called again to retry a deletion that failed.
func (o *owner) close() error {
	o.mu.Lock()
	o.closing = true
	f := o.flight
	o.mu.Unlock()
	o.end(disposing())
	if f != nil {
		<-f.done
	}
	err := o.deleteDoomed()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.release()
	o.release = func() {}
	return err
}

func seconds(s float64) time.Time {
	if s <= 0 {
		return time.Time{}
	}
	return time.Unix(int64(s), 0).UTC()
}
