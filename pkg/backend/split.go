package backend

import (
	"context"
	"errors"

	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// Split joins the files of one world and the processes of another, for a
// profile that says so. Closing it closes both.
func Split(files, processes World) World { return split{files, processes} }

type split struct{ files, processes World }

func (s split) Files() remotefs.FS            { return s.files.Files() }
func (s split) Processes() remoteexec.Runtime { return s.processes.Processes() }

// Cwd is where processes start.
func (s split) Cwd(ctx context.Context) (string, error) { return s.processes.Cwd(ctx) }

func (s split) Identity() string { return s.files.Identity() + "+" + s.processes.Identity() }

func (s split) Close(ctx context.Context) error {
	return errors.Join(s.processes.Close(ctx), s.files.Close(ctx))
}
