package cmd

import (
	"context"
	"log/slog"
	"path/filepath"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/backend/all"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// world is the opened world of a command.
type world struct {
	backend.World
	provider string
	near     bool // see backend.Provider
}

// openWorld opens the world that the profile names. It is called after all
// flags are checked. The caller closes it.
func (a *app) openWorld(ctx context.Context) (*world, error) {
	p, ok := all.Providers().Provider("local")
	if !ok {
		return nil, fault.New(fault.ProfileNoProvider, "", "", "there is no provider %q", "local")
	}
	dir, err := a.Dir()
	if err != nil {
		return nil, fault.Wrap(err, fault.FSIOError, "", "", "cannot find the directory of this process: %s", err)
	}
	w, err := p.Open(ctx, backend.OpenRequest{
		Config:      map[string]any{},
		Secret:      func(context.Context, string) (string, error) { return "", nil },
		Cwd:         a.flags.cwd,
		Environ:     a.Environ,
		HostDir:     dir,
		StateDir:    a.stateDir(),
		NewFileMode: -1,
		Log:         slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	return &world{w, p.Name, p.Near}, nil
}

// stateDir is the directory for locks, ledgers and small caches.
func (a *app) stateDir() string {
	if dir := a.getenv("AFIELD_STATE_DIR"); filepath.IsAbs(dir) {
		return dir
	}
	if dir := a.getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "afield")
	}
	return filepath.Join(a.getenv("HOME"), ".local", "state", "afield")
}

// files gives the file half of the world.
func (w *world) files() (remotefs.FS, error) {
	if fs := w.Files(); fs != nil {
		return fs, nil
	}
	return nil, fault.New(fault.BackendUnsupported, "", "", "the backend %s has no files", w.provider)
}

// processes gives the process half of the world.
func (w *world) processes() (remoteexec.Runtime, error) {
	if r := w.Processes(); r != nil {
		return r, nil
	}
	return nil, fault.New(fault.BackendUnsupported, "", "", "the backend %s runs no processes", w.provider)
}
