package box

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/afield-dev/afield/pkg/backend/box/wire"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/script"
)

// link is what the drivers share: the way to the box, and what is made of a
// request that fails.
type link struct {
	client *wire.Client
	owner  *owner
	log    *slog.Logger

	mu     sync.Mutex
	gone   error  // the box is known not to exist
	real   string // its id, where the row gives a name
	closed bool   // the world is being closed
}

// id gives the box.
func (l *link) id(ctx context.Context) (string, error) {
	l.mu.Lock()
	gone, real := l.gone, l.real
	l.mu.Unlock()
	switch {
	case gone != nil:
		return "", gone
	case real != "":
		return real, nil
	}
	return l.owner.box(ctx)
}

// do sends a request to the box. When it fails in a way that a repetition can
// cure, the cure is tried and it is sent once more: the box had paused, or the
// row gave a name. repeat says that sending twice does no harm.
func (l *link) do(ctx context.Context, repeat bool, send func(id string) error) error {
	id, err := l.id(ctx)
	if err != nil {
		return err
	}
	if err = send(id); err == nil || ctx.Err() != nil {
		return err
	}
	again, why := l.cure(ctx, id, err, repeat)
	if again == "" {
		return why
	}
	return send(again)
}

// cure looks at a failure: the id to try again with, or the error that it means.
func (l *link) cure(ctx context.Context, id string, err error, repeat bool) (again string, why error) {
	var e *wire.Error
	if !errors.As(err, &e) || e.Session || e.Corrupt || e.Slow {
		return "", err
	}
	switch {
	case e.Status == http.StatusNotFound:
		return l.missing(ctx, id, err)
	case e.Status >= 500 && repeat && e.Text != "Failed to execute command", e.Status == 0 && e.Sent && repeat:
		return l.wake(ctx, id, err)
	}
	return "", err
}

// missing finds out which of the three meanings a 404 has: no such box, a name
// in place of an id, or no such path, which is the caller's (upstash-box.md 2).
func (l *link) missing(ctx context.Context, id string, err error) (string, error) {
	_, serr := l.client.Status(ctx, id)
	if !isGone(serr) {
		return "", err
	}
	if id == l.owner.cfg.sandbox {
		if b, gerr := l.client.Get(ctx, id); gerr == nil && b.Status != wire.StateDeleted && wire.ValidID(b.ID) && b.ID != id {
			_ = l.owner.state.save(l.owner.nameKey(), record{ID: b.ID})
			l.mu.Lock()
			l.real = b.ID
			l.mu.Unlock()
			return b.ID, nil
		}
	}
	l.owner.state.forget(id)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone = gone(err)
	return "", l.gone
}

// wake resumes a box that has paused, and allows one repetition.
func (l *link) wake(ctx context.Context, id string, err error) (string, error) {
	state, serr := l.client.Status(ctx, id)
	switch {
	case isGone(serr):
		return l.missing(ctx, id, err)
	case serr != nil:
		return "", err
	case state != wire.StatePaused:
		return id, nil
	}
	l.log.Info("the box is paused and is resumed", "box", id)
	if l.client.Resume(ctx, id) != nil {
		return "", err
	}
	for range 30 {
		if state, serr = l.client.Status(ctx, id); serr != nil || state != wire.StatePaused {
			break
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return "", err
		}
	}
	return id, nil
}

// armour runs a program of package script and prints its answer in base64: what
// the service hands on is text.
const armour = `p=$1; shift 2; (eval "$p") | base64`

// run runs a program in the box by one request and gives its answer.
func (l *link) run(ctx context.Context, repeat bool, c script.Call) (*script.Answer, error) {
	argv := append([]string{"sh", "-c", armour, "afield"}, append([]string{script.Program(c.Name), "afield", c.Nonce}, c.Words...)...)
	var res wire.ExecResult
	err := l.do(ctx, repeat, func(id string) (err error) {
		res, err = l.client.Exec(ctx, id, argv, "/")
		return err
	})
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, remote(err)
	}
	answer, err := base64.StdEncoding.DecodeString(res.Stdout)
	if err != nil || res.ExitCode != 0 {
		return nil, fmt.Errorf("the box cannot run %s: status %d, %.200q: it needs sh, base64, stat, find, cksum and dd", c.Name, res.ExitCode, res.Stderr)
	}
	return script.NewAnswer(bytes.NewReader(answer)), nil
}

// session opens an exec session. ctx counts until the start frame is sent.
func (l *link) session(ctx context.Context, start wire.Start) (*wire.Session, error) {
	var s *wire.Session
	err := l.do(ctx, false, func(id string) (err error) {
		s, err = l.open(ctx, id, start)
		return err
	})
	return s, err
}

// open opens a session, and once more when the upgrade was refused by a box that
// had paused: nothing was started then.
func (l *link) open(ctx context.Context, id string, start wire.Start) (*wire.Session, error) {
	s, err := l.client.Open(ctx, id, start)
	if status := wire.StatusOf(err); status < 500 {
		return s, err
	}
	again, why := l.wake(ctx, id, err)
	if again == "" {
		return nil, why
	}
	return l.client.Open(ctx, again, start)
}

// closing says that the world is being given up, so that the end of a
// connection is enough to end a tree.
func (l *link) closing() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

func (l *link) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
}

// failure gives the code of an error that has none: something that went wrong
// while answering.
func protocolError(err error) error {
	if err == nil || fault.CodeOf(err) != "" {
		return err
	}
	return world(err, fault.BackendProtocol, "box: %s", err)
}
