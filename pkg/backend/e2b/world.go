package e2b

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"sync"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// World is one sandbox.
type World struct {
	session   *session
	files     remotefs.FS
	processes remoteexec.Runtime
	identity  string
	prolonged func()
	closing   sync.Once
	closeErr  error
}

// Open makes the world. A sandbox that the row names by its id costs no request
// here; one that is to be made is made.
func Open(ctx context.Context, req backend.OpenRequest) (*World, error) {
	cfg, err := newConfig(ctx, req)
	if err != nil {
		return nil, err
	}
	s := newSession(cfg, newState(req.StateDir), req.Log, req.Trace)
	if err := s.acquire(ctx, req.StateDir); err != nil {
		return nil, err
	}
	w := &World{session: s, identity: name + ":" + cfg.apiURL + ":" + first(s.id(), debugSandbox)}
	w.files = remotefs.New(&Driver{s}, remotefs.Options{
		Locks:       remotefs.NewLocks(req.StateDir, w.identity),
		NewFileMode: req.NewFileMode,
		Log:         req.Log,
	})
	w.processes = remoteexec.New(&Runner{s}, remoteexec.Options{})
	w.prolonged = s.prolong()
	return w, nil
}

// Files gives the files of the sandbox.
func (w *World) Files() remotefs.FS { return w.files }

// Processes gives the processes of the sandbox.
func (w *World) Processes() remoteexec.Runtime { return w.processes }

// Cwd gives the working directory without looking whether it is there.
func (w *World) Cwd(context.Context) (string, error) { return w.session.cfg.cwd, nil }

// Identity names the sandbox.
func (w *World) Identity() string { return w.identity }

// Close ends the processes that were started here, and the sandbox if it is
// that of this command.
func (w *World) Close(ctx context.Context) error {
	w.closing.Do(func() {
		w.closeErr = errors.Join(w.processes.Shutdown(ctx), w.session.release())
		w.prolonged()
		w.session.http.CloseIdleConnections()
	})
	return w.closeErr
}

// token gives 128 random bits as text.
func token() string {
	var raw [16]byte
	rand.Read(raw[:])
	return hex.EncodeToString(raw[:])
}
