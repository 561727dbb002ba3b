package box

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/backend/box/wire"
	"github.com/afield-dev/afield/pkg/fault"
)

// sandboxes owns the lifetime of the boxes of an account.
type sandboxes struct {
	cfg    *config
	client *wire.Client
	state  state
}

func openSandboxes(ctx context.Context, req backend.OpenRequest) (backend.Sandboxes, error) {
	cfg := newConfig(req)
	client, err := newClient(ctx, cfg, req)
	if err != nil {
		return nil, err
	}
	return &sandboxes{cfg: cfg, client: client, state: newState(req.StateDir)}, nil
}

// Create implements backend.Sandboxes. A template is a runtime or a snapshot.
func (s *sandboxes) Create(ctx context.Context, spec backend.SandboxSpec) (backend.Sandbox, error) {
	fields, err := s.fields(spec)
	if err != nil {
		return backend.Sandbox{}, err
	}
	var made []string
	b, ours, err := create(ctx, s.client, fields, s.cfg.reuse, func(id string) { made = append(made, id) })
	if err != nil {
		if ours {
			err = errors.Join(remote(err), s.undo(ctx, made))
		}
		return backend.Sandbox{}, remote(err)
	}
	return sandbox(b), nil
}

// undo deletes what a failed creation has left.
func (s *sandboxes) undo(ctx context.Context, ids []string) error {
	fresh, cancel := context.WithTimeout(context.WithoutCancel(ctx), rescueLimit)
	defer cancel()
	var failures []error
	for _, id := range ids {
		failures = append(failures, deleteBox(fresh, s.client, id))
	}
	return errors.Join(failures...)
}

// fields makes the request of a creation; what the service would refuse is
// refused here.
func (s *sandboxes) fields(spec backend.SandboxSpec) (wire.CreateFields, error) {
	f := s.cfg.fields
	if slices.Contains(runtimes(), spec.Template) {
		f.Runtime = spec.Template
	} else if spec.Template != "" {
		if !wire.ValidID(spec.Template) {
			return f, usage("%q is neither a runtime nor a snapshot", spec.Template)
		}
		f.SnapshotID = spec.Template
	}
	if spec.OnExpiry == "pause" {
		return f, unsupported("a box is deleted at the end of its life and cannot be paused then")
	}
	if spec.Life > 0 {
		if !f.Ephemeral {
			return f, unsupported("only short-lived boxes have a life: set ephemeral: true in the profile's row")
		}
		if f.TTL = int64(spec.Life.Round(time.Second) / time.Second); f.TTL < 1 || f.TTL > maxTTL {
			return f, usage("the life of a box is 1 to %d seconds", maxTTL)
		}
	}
	if len(spec.Env) > 0 {
		f.Env = map[string]string{}
		for _, m := range []map[string]string{s.cfg.fields.Env, spec.Env} {
			for k, v := range m {
				f.Env[k] = v
			}
		}
		for _, reserved := range reservedEnv() {
			if _, ok := f.Env[reserved]; ok {
				return f, unsupported("the service reserves the variable %s", reserved)
			}
		}
	}
	mark, err := s.state.mark()
	if err != nil {
		return f, world(err, fault.BackendInternal, "the state directory cannot be written: %s", err)
	}
	return f, s.label(&f, mark, spec.Labels)
}

// label adds our labels and the caller's. A label of a box is one word; a pair
// becomes "key:value".
func (s *sandboxes) label(f *wire.CreateFields, mark string, pairs map[string]string) error {
	labels := slices.Clone(f.Labels)
	for k, v := range pairs {
		if v != "" {
			k += ":" + v
		}
		if !validLabel(k) {
			return usage("the label %q is not 1 to %d letters, digits, dots, underscores and hyphens", k, labelLength)
		}
		labels = append(labels, k)
	}
	if len(labels) > maxLabels {
		return usage("a box takes at most %d labels beside afield's own", maxLabels)
	}
	slices.Sort(labels)
	f.Labels = append(ourLabels(forAsker, mark), labels...)
	return nil
}

func usage(format string, args ...any) *fault.Error { return world(nil, fault.Usage, format, args...) }

func unsupported(format string, args ...any) *fault.Error {
	return world(nil, fault.BackendUnsupported, format, args...)
}

// sandbox turns a record of the service into the contract's.
func sandbox(b wire.Box) backend.Sandbox {
	out := backend.Sandbox{ID: b.ID, State: b.Status, CreatedAt: seconds(b.CreatedAt), ExpiresAt: seconds(b.ExpiresAt),
		Labels: map[string]string{}}
	if b.Status == wire.StateIdle {
		out.State = wire.StateRunning
	}
	for _, l := range b.Labels {
		k, v, _ := strings.Cut(l, ":")
		out.Labels[k] = v
		out.Owned = out.Owned || l == labelOurs || strings.HasPrefix(l, labelOurs+".")
	}
	return out
}

// List implements backend.Sandboxes.
func (s *sandboxes) List(ctx context.Context, filter backend.SandboxFilter) ([]backend.Sandbox, error) {
	all, err := s.client.List(ctx, "")
	if err != nil {
		return nil, remote(err)
	}
	list := []backend.Sandbox{}
	for _, b := range all {
		if one := sandbox(b); matches(one, filter) {
			list = append(list, one)
		}
	}
	slices.SortStableFunc(list, func(a, b backend.Sandbox) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), strings.Compare(a.ID, b.ID))
	})
	if filter.Limit > 0 && len(list) > filter.Limit {
		list = list[:filter.Limit]
	}
	return list, nil
}

func matches(one backend.Sandbox, filter backend.SandboxFilter) bool {
	if filter.State != "" && one.State != filter.State {
		return false
	}
	for k, v := range filter.Labels {
		if has, ok := one.Labels[k]; !ok || has != v {
			return false
		}
	}
	return true
}

// Info implements backend.Sandboxes.
func (s *sandboxes) Info(ctx context.Context, id string) (backend.Sandbox, error) {
	b, err := s.get(ctx, id)
	if err != nil {
		return backend.Sandbox{}, err
	}
	return sandbox(b), nil
}

// get gives the record of a live box; that of a deleted one is there too.
func (s *sandboxes) get(ctx context.Context, id string) (wire.Box, error) {
	if !wire.ValidID(id) {
		return wire.Box{}, usage("%q is not the id or name of a box", id)
	}
	b, err := s.client.Get(ctx, id)
	if err == nil && b.Status == wire.StateDeleted {
		return b, gone(nil)
	}
	return b, remote(err)
}

// Extend implements backend.Sandboxes: the service cannot.
func (s *sandboxes) Extend(context.Context, string, time.Duration) (backend.Sandbox, error) {
	return backend.Sandbox{}, unsupported("the life of a box is fixed when it is made").
		WithHint("make one with a longer life, or keep its state: `afield sandbox snapshot`")
}

// Pause implements backend.Sandboxes.
func (s *sandboxes) Pause(ctx context.Context, id string) (backend.Sandbox, error) {
	b, err := s.get(ctx, id)
	switch {
	case err != nil:
		return backend.Sandbox{}, err
	case b.Status == wire.StatePaused:
		return sandbox(b), nil
	case b.Ephemeral || b.KeepAlive:
		return backend.Sandbox{}, unsupported("short-lived and keep-alive boxes cannot be paused").
			WithHint("make one with ephemeral: false in the profile's row")
	}
	if err := s.client.Pause(ctx, b.ID); err != nil {
		return backend.Sandbox{}, remote(err)
	}
	return s.settled(ctx, b.ID, wire.StatePaused)
}

// Resume implements backend.Sandboxes. The life of a box cannot be changed.
func (s *sandboxes) Resume(ctx context.Context, id string, _ time.Duration) (backend.Sandbox, error) {
	b, err := s.get(ctx, id)
	if err != nil || b.Status != wire.StatePaused {
		return sandbox(b), err
	}
	if err := s.client.Resume(ctx, b.ID); err != nil {
		return backend.Sandbox{}, remote(err)
	}
	return s.settled(ctx, b.ID, wire.StateIdle)
}

// settled waits until a change of state shows, which takes the service some
// seconds, and gives the record as it is after half a minute at most.
func (s *sandboxes) settled(ctx context.Context, id, state string) (backend.Sandbox, error) {
	for range 30 {
		b, err := s.get(ctx, id)
		if err != nil || b.Status == state {
			return sandbox(b), err
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return backend.Sandbox{}, aborted(ctx, "wait")
		}
	}
	return s.Info(ctx, id)
}

// Kill implements backend.Sandboxes.
func (s *sandboxes) Kill(ctx context.Context, id string) (bool, error) {
	b, err := s.get(ctx, id)
	if fault.Is(err, fault.BackendWorldGone) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	err = s.client.Delete(ctx, b.ID)
	s.state.forget(b.ID)
	if isGone(err) {
		return false, nil
	}
	return err == nil, remote(err)
}

// Strays implements backend.Sandboxes: boxes with the mark of this state
// directory that belong to no row and to no command that lives.
func (s *sandboxes) Strays(ctx context.Context) ([]backend.Sandbox, error) {
	mark, err := s.state.mark()
	if err != nil {
		return nil, world(err, fault.BackendInternal, "the state directory cannot be read: %s", err)
	}
	all, err := s.client.List(ctx, labelOurs)
	if err != nil {
		return nil, remote(err)
	}
	used := map[string]bool{}
	for _, r := range s.state.rows() {
		used[r.ID] = true
	}
	strays := []backend.Sandbox{}
	for _, b := range all {
		row := slices.Contains(b.Labels, ourLabels(forRow, mark)[1]) && !used[b.ID]
		command := slices.Contains(b.Labels, ourLabels(forCommand, mark)[1]) && !s.state.busy(b.ID)
		if row || command {
			strays = append(strays, sandbox(b))
		}
	}
	return strays, nil
}

// Snapshot implements backend.Sandboxes. The service wants a name.
func (s *sandboxes) Snapshot(ctx context.Context, id, name string) (backend.Snapshot, error) {
	b, err := s.get(ctx, id)
	if err != nil {
		return backend.Snapshot{}, err
	}
	if name == "" {
		name = "afield-" + token(4)
	}
	snap, err := s.client.Snapshot(ctx, b.ID, name)
	if err != nil {
		return backend.Snapshot{}, remote(err)
	}
	return snapshot(snap), nil
}

func snapshot(s wire.Snapshot) backend.Snapshot {
	out := backend.Snapshot{ID: s.ID}
	if s.Name != "" {
		out.Names = []string{s.Name}
	}
	return out
}

// Snapshots implements backend.SnapshotKeeper.
func (s *sandboxes) Snapshots(ctx context.Context) ([]backend.Snapshot, error) {
	all, err := s.client.Snapshots(ctx, "")
	if err != nil {
		return nil, remote(err)
	}
	list := []backend.Snapshot{}
	for _, one := range all {
		if one.Status != wire.StateDeleted {
			list = append(list, snapshot(one))
		}
	}
	return list, nil
}

// DeleteSnapshot implements backend.SnapshotKeeper.
func (s *sandboxes) DeleteSnapshot(ctx context.Context, id string) (bool, error) {
	n, err := s.client.DeleteSnapshots(ctx, id)
	if wire.StatusOf(err) == http.StatusNotFound {
		return false, nil
	}
	return n > 0, remote(err)
}
