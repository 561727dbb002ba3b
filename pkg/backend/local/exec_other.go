//go:build !linux

package local

import (
	"context"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
)

// execDriver refuses to start programs where trees cannot be observed yet.
type execDriver struct {
	base map[string]string
	dir  string
}

// Facts implements remoteexec.Driver.
func (d *execDriver) Facts() remoteexec.Facts {
	return remoteexec.Facts{Backend: "local", StartFaults: true, Signals: true, Pauses: true}
}

func unsupported(op string) error {
	return fault.New(fault.BackendUnsupported, op, "", "%s: local programs are started on Linux only", op)
}

// Start implements remoteexec.Driver.
func (d *execDriver) Start(context.Context, remoteexec.StartSpec) (remoteexec.Proc, error) {
	return nil, unsupported("spawn")
}

// StartTerminal implements remoteexec.Driver.
func (d *execDriver) StartTerminal(context.Context, remoteexec.TerminalSpec) (remoteexec.TerminalProc, error) {
	return nil, unsupported("terminal")
}
