package e2b

import (
	"context"
	"maps"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/backend/e2b/wire"
	"github.com/afield-dev/afield/pkg/fault"
)

// sandboxes implements backend.Sandboxes over the control plane.
type sandboxes struct{ *session }

func newSandboxes(ctx context.Context, req backend.OpenRequest) (*sandboxes, error) {
	cfg, err := newConfig(ctx, req)
	if err != nil {
		return nil, err
	}
	return &sandboxes{newSession(cfg, newState(req.StateDir), req.Log, req.Trace)}, nil
}

// Create makes a sandbox that is nobody's stray.
func (s *sandboxes) Create(ctx context.Context, spec backend.SandboxSpec) (backend.Sandbox, error) {
	cfg := s.cfg
	cfg.template = first(spec.Template, cfg.template)
	if spec.Life > 0 {
		cfg.life = spec.Life
	}
	if spec.OnExpiry != "" {
		cfg.pause = spec.OnExpiry == "pause"
	}
	cfg.env, cfg.metadata = merged(cfg.env, spec.Env), merged(cfg.metadata, spec.Labels)
	own := newSession(cfg, s.state, s.log, nil)
	own.http, own.control, own.made = s.http, s.control, true
	if err := own.create(ctx, formManual); err != nil {
		return backend.Sandbox{}, err
	}
	id := own.id()
	own.stateKey = digest("id", cfg.account(), cfg.user, id)[:32]
	if _, err := own.prepared(ctx); err != nil {
		own.state.drop(own.stateKey)
		if failed := own.kill(id); failed != nil {
			s.log.Warn(failed.Error())
		}
		return backend.Sandbox{}, err
	}
	return s.Info(ctx, id)
}

func merged(base, over map[string]string) map[string]string {
	out := maps.Clone(base)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, over)
	return out
}

// List gives the sandboxes of the account, newest first.
func (s *sandboxes) List(ctx context.Context, filter backend.SandboxFilter) ([]backend.Sandbox, error) {
	q := wire.ListQuery{Metadata: filter.Labels, States: []string{"running", "paused"}, Limit: 100}
	if filter.State != "" {
		q.States = []string{filter.State}
	}
	out := []backend.Sandbox{}
	for {
		page, next, err := s.control.List(ctx, q)
		if err != nil {
			return nil, s.failed(ctx, err, "list", "")
		}
		for _, d := range page {
			out = append(out, sandboxOf(d))
			if len(out) == filter.Limit {
				return out, nil
			}
		}
		if next == "" {
			return out, nil
		}
		q.Next = next
	}
}

// failed gives the error of a call of ctx.
func (s *sandboxes) failed(ctx context.Context, err error, op, id string) error {
	if ctx.Err() != nil {
		return fault.Aborted(ctx, fault.ExecCancelled, op, id)
	}
	return controlError(err, id)
}

func sandboxOf(d wire.SandboxDetail) backend.Sandbox {
	b := backend.Sandbox{ID: d.SandboxID, State: d.State, CreatedAt: d.StartedAt, Labels: d.Metadata}
	if d.State != "paused" {
		b.ExpiresAt = d.EndAt
	}
	_, b.Owned = d.Metadata[labelForm]
	return b
}

// Info gives one.
func (s *sandboxes) Info(ctx context.Context, id string) (backend.Sandbox, error) {
	d, err := s.control.Get(ctx, id)
	if err != nil {
		return backend.Sandbox{}, s.failed(ctx, err, "info", id)
	}
	return sandboxOf(d), nil
}

// Extend never shortens: connecting, unlike setting the timeout, only extends.
// A paused sandbox has no end to move.
func (s *sandboxes) Extend(ctx context.Context, id string, life time.Duration) (backend.Sandbox, error) {
	b, err := s.Info(ctx, id)
	if err != nil {
		return b, err
	}
	if b.State == "paused" {
		e := fault.New(fault.BackendConflict, "extend", id, "the e2b sandbox %s is paused and has no end to move", id)
		return b, e.WithHint("`afield sandbox resume %s`", id)
	}
	return s.connect(ctx, "extend", id, life)
}

// Resume runs a paused sandbox again.
func (s *sandboxes) Resume(ctx context.Context, id string, life time.Duration) (backend.Sandbox, error) {
	return s.connect(ctx, "resume", id, life)
}

func (s *sandboxes) connect(ctx context.Context, op, id string, life time.Duration) (backend.Sandbox, error) {
	if life <= 0 {
		life = s.cfg.life
	}
	if _, err := s.control.Connect(ctx, id, seconds(life)); err != nil {
		return backend.Sandbox{}, s.failed(ctx, err, op, id)
	}
	return s.Info(ctx, id)
}

// Pause keeps the sandbox without running it; its connections end.
func (s *sandboxes) Pause(ctx context.Context, id string) (backend.Sandbox, error) {
	err := s.control.Pause(ctx, id)
	if err != nil && wire.StatusOf(err) != http.StatusConflict {
		return backend.Sandbox{}, s.failed(ctx, err, "pause", id)
	}
	b, infoErr := s.Info(ctx, id)
	if infoErr == nil && err != nil && b.State != "paused" {
		return b, s.failed(ctx, err, "pause", id)
	}
	return b, infoErr
}

// Kill ends and deletes the sandbox.
func (s *sandboxes) Kill(ctx context.Context, id string) (bool, error) {
	err := s.control.Kill(ctx, id)
	switch {
	case err == nil:
		return true, nil
	case wire.StatusOf(err) == http.StatusNotFound:
		return false, nil
	}
	return false, s.failed(ctx, err, "kill", id)
}

// Strays gives those made from this state directory and this host for a command
// that has ended, or for a row that no longer knows them.
func (s *sandboxes) Strays(ctx context.Context) ([]backend.Sandbox, error) {
	owner, err := s.state.owner()
	if err != nil {
		return nil, fault.Wrap(err, fault.FSIOError, "gc", "", "cannot tell which sandboxes are ours: %s", err)
	}
	all, err := s.List(ctx, backend.SandboxFilter{Labels: map[string]string{labelOwner: owner}})
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, id := range s.state.ids() {
		known[id] = true
	}
	strays := []backend.Sandbox{}
	for _, b := range all {
		switch b.Labels[labelForm] {
		case formCommand:
			if b.Labels[labelHost] == hostname() && !alive(b.Labels[labelPID]) {
				strays = append(strays, b)
			}
		case formShared:
			if !known[b.ID] {
				strays = append(strays, b)
			}
		}
	}
	return strays, nil
}

// alive reports whether a process of this host runs.
func alive(pid string) bool {
	n, err := strconv.Atoi(pid)
	if err != nil || n <= 1 {
		return false
	}
	err = syscall.Kill(n, 0)
	return err == nil || err == syscall.EPERM
}

// Snapshot stores the present state.
func (s *sandboxes) Snapshot(ctx context.Context, id, title string) (backend.Snapshot, error) {
	snap, err := s.control.TakeSnapshot(ctx, id, title)
	if err != nil {
		return backend.Snapshot{}, s.failed(ctx, err, "snapshot", id)
	}
	return backend.Snapshot{ID: snap.SnapshotID, Names: snap.Names}, nil
}
