package cmd

import (
	"context"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/profile"
	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/remotefs"
	"github.com/afield-dev/afield/pkg/undo"
)

// world is the opened world of a command.
type world struct {
	backend.World
	profile  *profile.Profile
	provider string
	near     bool        // see backend.Provider
	undo     *undo.Files // nil: changes are not remembered
}

// openWorld opens the world that the profile names. It is called after all
// flags are checked. The caller closes it.
func (a *app) openWorld(ctx context.Context) (*world, error) {
	p, err := a.loadProfile()
	if err != nil {
		return nil, err
	}
	files, err := a.openRow(ctx, p, p.FS)
	if err != nil {
		return nil, err
	}
	if p.FSBlock.Undo && files.Files() != nil {
		files.undo = &undo.Files{FS: files.Files(), Store: a.undoStore(files), Warn: func(text string) { a.note("warning: %s", text) }}
	}
	if p.Exec == p.FS {
		return files, nil
	}
	processes, err := a.openRow(ctx, p, p.Exec)
	if err != nil {
		files.Close(ctx)
		return nil, err
	}
	files.World = backend.Split(files.World, processes.World)
	return files, nil
}

// openRow opens the world of one row.
func (a *app) openRow(ctx context.Context, p *profile.Profile, r *profile.Row) (*world, error) {
	req, err := a.openRequest(p, r)
	if err != nil {
		return nil, err
	}
	w := a.viaKeeper(ctx, p, r, req)
	if w == nil {
		w, err = r.Provider.Open(ctx, req)
	}
	if err != nil {
		a.afterwards = nil
		return nil, err
	}
	opened := &world{World: w, profile: p, provider: r.Provider.Name, near: r.Provider.Near}
	if err := opened.checkCwd(ctx, r.Cwd); err != nil {
		opened.Close(ctx)
		return nil, err
	}
	return opened, nil
}

// openRequest gives what the provider of a row needs.
func (a *app) openRequest(p *profile.Profile, r *profile.Row) (backend.OpenRequest, error) {
	dir, err := a.Dir()
	if err != nil {
		return backend.OpenRequest{}, fault.Wrap(err, fault.FSIOError, "", "", "cannot find the directory of this process: %s", err)
	}
	req := r.OpenRequest(p, a.secretsOf())
	req.Environ, req.HostDir, req.StateDir = a.Environ, dir, a.stateDir()
	req.Log, req.Trace = a.logger(), a.tracer()
	return req, nil
}

// checkCwd refuses a working directory that somebody named and that is not
// there (design.md 4.19). It asks near worlds only: elsewhere it would cost a
// round trip, and the backend tells when it goes there.
func (w *world) checkCwd(ctx context.Context, named string) error {
	if named == "" || !w.near || w.Files() == nil {
		return nil
	}
	dir, err := w.Cwd(ctx)
	if err != nil {
		return err
	}
	_, info, err := w.Files().Stat(ctx, remotefs.AtPath(dir, ""))
	switch {
	case err != nil:
		return err
	case info == nil:
		return fault.New(fault.ExecCwdMissing, "open", dir, "the working directory %q does not exist", dir)
	case info.Type != remotefs.TypeDirectory:
		return fault.New(fault.ExecCwdNotDirectory, "open", dir, "the working directory %q is not a directory", dir)
	}
	return nil
}

// stateDir is the directory for locks, ledgers and small caches.
func (a *app) stateDir() string { return profile.NewPlaces(a.Environ).State }

// files gives the file half of the world, behind the fence of the profile where
// it has one.
func (w *world) files() (remotefs.FS, error) {
	fs := w.Files()
	if fs == nil {
		return nil, fault.New(fault.BackendUnsupported, "", "", "the backend %s has no files", w.provider)
	}
	if w.undo != nil {
		fs = w.undo
	}
	if f := w.profile.Fence; f != nil {
		return remotefs.NewFence(fs, remotefs.FenceOptions{Mode: remotefs.FenceMode(f.Mode), Root: f.WorkspaceRoot}), nil
	}
	return fs, nil
}

// processes gives the process half of the world.
func (w *world) processes() (remoteexec.Runtime, error) {
	if r := w.Processes(); r != nil {
		return r, nil
	}
	return nil, fault.New(fault.BackendUnsupported, "", "", "the backend %s runs no processes", w.profile.Exec.Provider.Name)
}
