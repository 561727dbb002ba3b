package box

import (
	"context"
	"sync"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// World is one box. It is made or looked up at its first use.
type World struct {
	link      *link
	files     remotefs.FS
	processes remoteexec.Runtime
	identity  string
	closing   sync.Mutex
}

// Open makes the world of a row. Nothing is sent.
func Open(ctx context.Context, req backend.OpenRequest) (*World, error) {
	cfg := newConfig(req)
	if cfg.sandbox == "" && !cfg.create && !cfg.perCommand {
		return nil, needsForm()
	}
	client, err := newClient(ctx, cfg, req)
	if err != nil {
		return nil, err
	}
	s := newState(req.StateDir)
	l := &link{client: client, owner: newOwner(cfg, client, s, req.Log), log: req.Log}
	w := &World{link: l, identity: identity(cfg, client.Origin())}
	w.files = remotefs.New(&files{l}, remotefs.Options{
		Locks: remotefs.NewLocks(req.StateDir, w.identity), NewFileMode: req.NewFileMode, Log: req.Log})
	w.processes = remoteexec.New(&processes{l}, remoteexec.Options{})
	return w, nil
}

// identity names the box, or the row that has one made.
func identity(cfg *config, origin string) string {
	switch {
	case cfg.sandbox != "":
		return "box:" + origin + ":" + cfg.account + ":" + cfg.sandbox
	case cfg.create:
		return "box:" + origin + ":row:" + cfg.rowKey()
	}
	return "box:" + origin + ":command:" + token(8)
}

// Files gives the files of the box.
func (w *World) Files() remotefs.FS { return w.files }

// Processes gives the processes of the box.
func (w *World) Processes() remoteexec.Runtime { return w.processes }

// Cwd gives the working directory. Nothing is sent.
func (w *World) Cwd(context.Context) (string, error) { return w.link.owner.cfg.cwd, nil }

// Identity implements backend.World.
func (w *World) Identity() string { return w.identity }

// Close ends what was started, and then the box if it was made for this command
// (DI-1). The end of its connection ends a program and what it has left behind.
func (w *World) Close(ctx context.Context) error {
	w.closing.Lock()
	defer w.closing.Unlock()
	w.link.close()
	err := w.processes.Shutdown(ctx)
	if derr := w.link.owner.close(); err == nil {
		err = derr
	}
	w.link.client.Close()
	return err
}
