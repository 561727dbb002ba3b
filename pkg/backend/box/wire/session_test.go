package wire_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/afield-dev/afield/pkg/backend/box/boxtest"
	"github.com/afield-dev/afield/pkg/backend/box/wire"
)

// outputs collects what a session sends.
type outputs struct{ out, err bytes.Buffer }

func (o *outputs) take(s wire.Stream, p []byte) {
	if s == wire.Stdout {
		o.out.Write(p)
	} else {
		o.err.Write(p)
	}
}

// open starts a program and arranges its end.
func (s *stand) open(id string, start wire.Start) *wire.Session {
	s.t.Helper()
	if start.Cwd == "" {
		start.Cwd = boxtest.Workspace
	}
	session, err := s.Open(s.t.Context(), id, start)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(session.Close)
	return session
}

func TestSessionKeepsStreamsApartAndGivesTheCode(t *testing.T) {
	s := newStand(t, boxtest.Options{})
	session := s.open(s.box(), wire.Start{Argv: []string{"sh", "-c", "echo out; echo err >&2; exit 42"}})
	var o outputs
	code, err := session.Serve(o.take)
	if err != nil || code != 42 || o.out.String() != "out\n" || o.err.String() != "err\n" {
		t.Errorf("code %d, %v, out %q, err %q", code, err, o.out.String(), o.err.String())
	}
	if session.PID <= 1 {
		t.Errorf("pid %d", session.PID)
	}
}

func TestSessionInputAndEnd(t *testing.T) {
	s := newStand(t, boxtest.Options{})
	session := s.open(s.box(), wire.Start{Argv: []string{"cat"}})
	content := bytes.Repeat([]byte("0123456789abcdef"), 64<<10) // 1 MiB
	sent := make(chan error, 1)
	go func() {
		_, err := session.Write(content)
		sent <- errors.Join(err, session.CloseStdin())
	}()
	var o outputs
	code, err := session.Serve(o.take)
	if werr := <-sent; werr != nil {
		t.Fatal(werr)
	}
	if err != nil || code != 0 || !bytes.Equal(o.out.Bytes(), content) {
		t.Errorf("code %d, %v, %d bytes", code, err, o.out.Len())
	}
}

func TestSessionTerminateReportsTheCodeAsIs(t *testing.T) {
	s := newStand(t, boxtest.Options{})
	id := s.box()
	session := s.open(id, wire.Start{Argv: []string{"sh", "-c", "sleep 300 & sleep 300"}})
	if err := session.Terminate(time.Second); err != nil {
		t.Fatal(err)
	}
	if code, err := session.Serve(func(wire.Stream, []byte) {}); err != nil || code != 143 {
		t.Errorf("code %d, %v", code, err)
	}
	// The root's end is told while the others may still be dying.
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		left, err := s.Processes(id)
		if err == nil && len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("left in the box: %q, %v", left, err)
		}
	}
}

func TestSessionTerminalHasItsSizeFromTheStart(t *testing.T) {
	s := newStand(t, boxtest.Options{})
	session := s.open(s.box(), wire.Start{Argv: []string{"sh", "-c", "stty size; tty"}, TTY: true, Rows: 24, Cols: 80})
	var o outputs
	if code, err := session.Serve(o.take); err != nil || code != 0 {
		t.Fatal(code, err)
	}
	if !bytes.HasPrefix(o.out.Bytes(), []byte("24 80\r\n/dev/pts/")) {
		t.Errorf("%q", o.out.String())
	}
}
