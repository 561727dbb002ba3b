package e2b

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/afield-dev/afield/pkg/backend/e2b/wire"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// Labels of the sandboxes that afield makes.
const (
	labelForm  = "afield"       // formCommand, formShared or formManual
	labelOwner = "afield-owner" // the state directory it was made from
	labelHost  = "afield-host"
	labelPID   = "afield-pid"

	formCommand = "command"
	formShared  = "shared"
	formManual  = "manual"
)

// killWaits are the pauses between attempts to delete a sandbox.
var killWaits = []time.Duration{0, 200 * time.Millisecond, time.Second}

// createTimeout bounds the making of a sandbox.
const createTimeout = 5 * time.Minute

// acquire makes the sandbox that the row asks for, if it asks for one.
func (s *session) acquire(ctx context.Context, stateDir string) error {
	switch {
	case s.cfg.debug:
		return nil
	case s.cfg.perCommand:
		s.made = true
		return s.makeOwn(ctx)
	case s.cfg.create:
		s.made = true
		return s.share(ctx, stateDir)
	case s.cfg.sandbox != "":
		s.stateKey = digest("id", s.cfg.account(), s.cfg.user, s.cfg.sandbox)[:32]
		s.rec = s.state.load(s.stateKey)
		return nil
	}
	return needsForm()
}

// makeOwn makes the sandbox of this command; it is deleted by release, also
// after a failed setup.
func (s *session) makeOwn(ctx context.Context) error {
	if err := s.create(ctx, formCommand); err != nil {
		return err
	}
	if _, err := s.prepared(ctx); err != nil {
		return errors.Join(err, s.release())
	}
	return nil
}

// share finds the sandbox that earlier commands of this row have made, or makes
// it. One process at a time does so.
func (s *session) share(ctx context.Context, stateDir string) error {
	s.stateKey = s.cfg.row()
	unlock, err := remotefs.NewLocks(stateDir, name+"-create").Lock(ctx, s.stateKey)
	if err != nil {
		return notShared(ctx, err)
	}
	defer unlock()
	s.rec = s.state.load(s.stateKey)
	if s.rec != nil && time.Now().Before(s.rec.EndAt) {
		return nil
	}
	if s.rec != nil {
		err := s.ask(ctx, s.rec.ID)
		if err == nil || !fault.Is(err, fault.BackendWorldGone) {
			return err
		}
		s.log.Info("the shared sandbox has ended; a new one is made", "sandbox", s.rec.ID)
		s.rec = nil
	}
	if err := s.create(ctx, formShared); err != nil {
		return err
	}
	if _, err := s.prepared(ctx); err != nil {
		s.state.drop(s.stateKey)
		return errors.Join(err, s.kill(s.rec.ID))
	}
	return nil
}

func notShared(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fault.Aborted(ctx, fault.FSAborted, "create", "")
	}
	e := fault.Wrap(err, fault.FSIOError, "create", "", "cannot share a sandbox between commands: %s", err)
	e.Backend = name
	return e.WithHint("put AFIELD_STATE_DIR on a local disk that can be written")
}

// create makes a sandbox. A request that was sent is waited for, also when ctx
// ends, so that no sandbox is left that nobody knows; it is deleted then (OW-5,
// OW-8).
func (s *session) create(ctx context.Context, form string) error {
	if ctx.Err() != nil {
		return fault.Aborted(ctx, fault.FSAborted, "create", "")
	}
	labels, err := s.labels(form)
	if err != nil {
		return err
	}
	sent, cancel := context.WithTimeout(context.WithoutCancel(ctx), createTimeout)
	defer cancel()
	b, err := s.control.Create(sent, wire.NewSandbox{
		TemplateID: s.cfg.template, Timeout: seconds(s.cfg.life), AutoPause: s.cfg.pause, Metadata: labels, EnvVars: s.cfg.env,
	})
	if err != nil {
		return createError(err, s.cfg.template)
	}
	if ctx.Err() != nil {
		return errors.Join(fault.Aborted(ctx, fault.FSAborted, "create", ""), s.kill(b.SandboxID))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = true
	s.keep(recordOf(b, s.cfg.life))
	return nil
}

// createError gives the error of a request for a sandbox.
func createError(err error, template string) error {
	if wire.StatusOf(err) == http.StatusNotFound {
		e := world(err, fault.ProfileInvalid, "e2b knows no template %q", template)
		return e.WithHint("set template in the profile's row to one of the account's templates, or to base")
	}
	return controlError(err, "")
}

// labels mark a sandbox as made by afield, from here, for what.
func (s *session) labels(form string) (map[string]string, error) {
	owner, err := s.state.owner()
	if err != nil {
		e := fault.Wrap(err, fault.FSIOError, "create", "", "cannot mark the sandbox as ours: %s", err)
		return nil, e.WithHint("put AFIELD_STATE_DIR on a disk that can be written")
	}
	labels := map[string]string{}
	for k, v := range s.cfg.metadata {
		labels[k] = v
	}
	labels[labelForm], labels[labelOwner] = form, owner
	labels[labelHost], labels[labelPID] = hostname(), strconv.Itoa(os.Getpid())
	return labels, nil
}

func hostname() string {
	h, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return h
}

// release deletes the sandbox of this command. It may be called twice.
func (s *session) release() error {
	s.mu.Lock()
	rec := s.rec
	own := s.cfg.perCommand && rec != nil
	if own {
		s.rec, s.client = nil, nil
	}
	s.mu.Unlock()
	if !own {
		return nil
	}
	return s.kill(rec.ID)
}

// kill deletes a sandbox, trying several times. One that is gone already, as
// the status says, is no failure (OW-6).
func (s *session) kill(id string) error {
	var err error
	for _, wait := range killWaits {
		time.Sleep(wait)
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		err = s.control.Kill(ctx, id)
		cancel()
		if err == nil || wire.StatusOf(err) == http.StatusNotFound {
			return nil
		}
	}
	var known *fault.Error
	errors.As(controlError(err, id), &known)
	known.Message = "the sandbox " + id + " could not be deleted: " + known.Message
	known.Hint = "`afield sandbox kill " + id + "`; otherwise it ends by itself at the end of its life"
	return known
}

// prolong lets a shared sandbox live on when less than a third of its life is
// left. It runs beside the command and is waited for by the returned function.
func (s *session) prolong() (wait func()) {
	s.mu.Lock()
	rec := s.rec
	s.mu.Unlock()
	if !s.cfg.create || rec == nil || time.Until(rec.EndAt) > s.cfg.life/3 {
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.control.SetTimeout(ctx, rec.ID, seconds(s.cfg.life)); err != nil {
			s.log.Debug("the sandbox was not prolonged", "reason", err)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.rec != nil && s.rec.ID == rec.ID {
			next, client := *s.rec, s.client
			next.EndAt = time.Now().Add(s.cfg.life).UTC()
			s.keep(&next)
			s.client = client
		}
	}()
	return func() { <-done }
}
