package box

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/afield-dev/afield/pkg/backend/box/boxtest"
	"github.com/afield-dev/afield/pkg/backend/box/wire"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
)

// watchdog bounds what must come; nothing is measured by it.
const watchdog = 60 * time.Second

// stand is a server with one box and a world of it.
type stand struct {
	*testing.T
	server *boxtest.Server
	box    string
	world  *World
}

func newStand(t *testing.T) *stand {
	t.Helper()
	t.Parallel()
	s := newServer(t, boxtest.Options{})
	id := newBox(t, s)
	st := &stand{T: t, server: s, box: id, world: open(t, s, map[string]any{"sandbox": id})}
	s.ClearJournal()
	return st
}

// session lets a failure strike the next exec session.
func (s *stand) session(f boxtest.SessionFault) {
	s.server.Fault(boxtest.Fault{Match: "exec-session", Times: 1, Session: &f})
}

// spec is a request with the conventions of the specification.
func (s *stand) spec(argv ...string) remoteexec.Spec {
	collect := remoteexec.Output{Mode: remoteexec.OutputCollect, MaxBytes: 64000}
	return remoteexec.Spec{Argv: argv, Cwd: defaultCwd, Stdout: collect, Stderr: collect, Grace: 200 * time.Millisecond}
}

func (s *stand) sh(script string) remoteexec.Spec { return s.spec("/bin/sh", "-c", script) }

func (s *stand) spawn(ctx context.Context, spec remoteexec.Spec) remoteexec.Handle {
	s.Helper()
	h, err := s.world.Processes().Spawn(ctx, spec)
	if err != nil {
		s.Fatalf("spawn: %v", err)
	}
	return h
}

// settle waits for the settlement and gives the output, the report and the
// failure.
func (s *stand) settle(h remoteexec.Handle) (string, remoteexec.Report, error) {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	r, err := h.Wait(ctx)
	if ctx.Err() != nil {
		s.Fatal("the program did not settle")
	}
	out := ""
	if c := h.Collected(remoteexec.Stdout); c != nil {
		if chunk, cerr := c.ReadFrom(0); cerr == nil {
			out = string(chunk.Bytes)
		}
	}
	return out, r, err
}

// fails holds that a failure has a code.
func (s *stand) fails(err error, code fault.Code) {
	s.Helper()
	if !fault.Is(err, code) {
		s.Errorf("got %v (%s), want %s", err, fault.CodeOf(err), code)
	}
}

// within holds that f returns; what it waits for is not measured.
func (s *stand) within(what string, f func()) {
	s.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(watchdog):
		buf := make([]byte, 1<<20)
		s.Fatalf("%s hangs\n%s", what, buf[:runtime.Stack(buf, true)])
	}
}

// until waits for a condition.
func (s *stand) until(what string, is func() bool) {
	s.Helper()
	for end := time.Now().Add(watchdog); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			s.Fatalf("waiting for: %s", what)
		}
	}
}

// frames holds which frames the client has sent.
func (s *stand) frames(want ...string) {
	s.Helper()
	if got := strings.Join(s.server.Frames("client"), " "); got != strings.Join(want, " ") {
		s.Errorf("the client sent %q, want %q", got, strings.Join(want, " "))
	}
}

// sent waits until the client has sent a frame of that type.
func (s *stand) sent(kind string) {
	s.Helper()
	s.until("a frame "+kind, func() bool {
		for _, f := range s.server.Frames("client") {
			if f == kind {
				return true
			}
		}
		return false
	})
}

// empty waits until nothing runs in the box and no session is open.
func (s *stand) empty() {
	s.Helper()
	s.until("an empty box", func() bool {
		left, err := s.server.Processes(s.box)
		return err == nil && len(left) == 0 && s.server.Sessions() == 0
	})
}

// shutdown ends the processes of the world.
func (s *stand) shutdown() error {
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	return s.world.Processes().Shutdown(ctx)
}

var errReason = errors.New("changed my mind")

// cancelled gives a context that ends with errReason when the function is
// called.
func cancellable(t *testing.T) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(t.Context())
	return ctx, func() { cancel(errReason) }
}

func startOf(argv ...string) wire.Start { return wire.Start{Argv: argv, Cwd: defaultCwd} }
