package ssh

import (
	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// FileDriver gives the driver behind Files to the suite.
func (w *World) FileDriver() remotefs.Driver { return w.driver }

// ProcessesAt gives a Runtime of its own over the connections of w, with dir as
// the base of lookups.
func (w *World) ProcessesAt(dir string) remoteexec.Runtime {
	at := &World{sh: w.sh, settings: w.settings, cwd: dir, hello: w.hello, noShell: w.noShell}
	return remoteexec.New(&processes{world: at}, remoteexec.Options{})
}

// Cut ends all connections as a broken network does.
func (w *World) Cut() {
	w.sh.mu.Lock()
	defer w.sh.mu.Unlock()
	for _, c := range w.sh.conns {
		c.wire.Close()
	}
}
