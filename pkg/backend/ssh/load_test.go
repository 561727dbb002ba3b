package ssh_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
)

// One session at a time, or none: all works over more connections, or the error
// says so.
func TestMaxSessions(t *testing.T) {
	t.Parallel()
	w := startServer(t, "MaxSessions 1").mustOpen(t, nil)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			_, out, _, err := run(t, w.Processes(), remoteexec.Spec{Argv: []string{"echo", fmt.Sprint(i)}})
			if err != nil || out != fmt.Sprintf("%d\n", i) {
				t.Errorf("%d: %q, %v", i, out, err)
			}
		})
	}
	wg.Wait()
	none := startServer(t, "MaxSessions 0")
	fails(t, none.row(nil), fault.BackendUnsupported, "opens no session")
}

// 64 programs at once on one host (C13).
func TestManyAtOnce(t *testing.T) {
	w := startServer(t).mustOpen(t, nil)
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			_, out, _, err := run(t, w.Processes(), remoteexec.Spec{Argv: []string{"echo", fmt.Sprint(i)}})
			if err != nil || out != fmt.Sprintf("%d\n", i) {
				t.Errorf("%d: %q, %v", i, out, err)
			}
		})
	}
	wg.Wait()
}

// Many commands at once against a server that turns away those which it has no room
// for: all are let in after a while.
func TestManyConnectionsAtOnce(t *testing.T) {
	t.Parallel()
	s := startServer(t, "MaxStartups 3")
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if _, err := open(t, s.row(nil), nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
