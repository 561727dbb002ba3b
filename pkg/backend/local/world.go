// Package local is the world of this machine: its files and its processes, as
// the user who runs afield.
package local

import (
	"context"
	"os"
	"path/filepath"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// Provider makes local worlds.
func Provider() backend.Provider {
	return backend.Provider{
		Name:     "local",
		Near:     true,
		Services: []backend.Service{backend.ServiceFS, backend.ServiceExec},
		Config: backend.Schema{
			{Key: "cwd", Kind: backend.KindText, Doc: "working directory; a relative one is joined to the one afield was started in"},
		},
		Open: func(_ context.Context, req backend.OpenRequest) (backend.World, error) { return Open(req) },
	}
}

// World is this machine.
type World struct {
	cwd       string
	files     remotefs.FS
	processes remoteexec.Runtime
	identity  string
}

// Open makes the world. It touches no disk but to learn the host's name; a
// working directory that is missing shows at the first use.
func Open(req backend.OpenRequest) (*World, error) {
	identity := "local:" + hostname()
	cwd := workingDirectory(req)
	w := &World{cwd: cwd, identity: identity}
	w.files = remotefs.New(NewDriver(cwd), remotefs.Options{
		Locks:       remotefs.NewLocks(req.StateDir, identity),
		NewFileMode: req.NewFileMode,
		Log:         req.Log,
	})
	w.processes = Processes(ProcessOptions{Environ: req.Environ, Dir: req.HostDir})
	return w, nil
}

// workingDirectory is the default directory of the world, absolute.
func workingDirectory(req backend.OpenRequest) string {
	cwd := req.Cwd
	if cwd == "" {
		cwd, _ = req.Config["cwd"].(string)
	}
	if filepath.IsAbs(cwd) {
		return filepath.Clean(cwd)
	}
	return filepath.Join(req.HostDir, cwd)
}

// hostname is part of the identity: a state directory may be shared between
// hosts, and their files are not the same.
func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return name
}

// Files gives the files of this machine.
func (w *World) Files() remotefs.FS { return w.files }

// Processes gives the processes of this machine.
func (w *World) Processes() remoteexec.Runtime { return w.processes }

// Cwd gives the working directory without looking whether it is there.
func (w *World) Cwd(context.Context) (string, error) { return w.cwd, nil }

// Identity names this machine.
func (w *World) Identity() string { return w.identity }

// Close ends the processes that were started here.
func (w *World) Close(ctx context.Context) error {
	if w.processes == nil {
		return nil
	}
	return w.processes.Shutdown(ctx)
}
