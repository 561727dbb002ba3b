package box

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/afield-dev/afield/pkg/backend/box/boxtest"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
)

func (s *stand) terminal(ctx context.Context, argv ...string) (remoteexec.Terminal, error) {
	return s.world.Processes().OpenTerminal(ctx, remoteexec.TerminalSpec{
		Argv: argv, Cwd: defaultCwd, Rows: 37, Cols: 113, Grace: 500 * time.Millisecond})
}

// seen reads until the output holds text.
func (s *stand) seen(t remoteexec.Terminal, text string) string {
	s.Helper()
	all := ""
	s.within("output with "+text, func() {
		for buf := make([]byte, 4096); !strings.Contains(all, text); {
			n, err := t.Read(buf)
			all += string(buf[:n])
			if err != nil {
				s.Errorf("output %q ends: %v", all, err)
				return
			}
		}
	})
	return all
}

func ended(s *stand, t remoteexec.Terminal) {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	if err := t.Terminate(ctx); err != nil {
		s.Errorf("terminate: %v", err)
	}
}

// A terminal has its size at creation; a signal goes to the group in front, and
// the shell stays (findings 11, 12, 15, 53; C224, C233).
func TestTerminalSignalsTheForeground(t *testing.T) {
	s := newStand(t)
	term, err := s.terminal(t.Context(), "/bin/sh", "-i")
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		if _, err := term.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	write("stty size\r")
	s.seen(term, "37 113")
	write("sleep 60\r")
	s.until("the foreground moved", func() bool {
		fg, err := term.Foreground(t.Context())
		return err == nil && fg != nil && fg.ProcessGroupID != term.PID()
	})
	if group, err := term.Signal(t.Context(), "SIGINT"); err != nil || group == term.PID() {
		t.Errorf("signal: group %d, %v", group, err)
	}
	write(`echo ST""ILL` + "\r")
	s.seen(term, "STILL")
	ended(s, term)
	s.empty()
}

// Only the kill's own answer proves a delivery (finding 27; C238).
func TestSignalThatIsNotDelivered(t *testing.T) {
	s := newStand(t)
	session, err := s.world.link.session(t.Context(), startOf("sleep", "60"))
	if err != nil {
		t.Fatal(err)
	}
	term := newTerminal(newProc(s.world.link, session, remoteexec.StdinPipe))
	defer term.Close()
	s.fails(term.SignalGroup(t.Context(), 999_999, "SIGTERM"), fault.ExecSignalNotDelivered)
	_, err = term.SignalForeground(t.Context(), "SIGTERM") // it has no terminal at all
	s.fails(err, fault.ExecNoForeground)
}

// Writing to a terminal is no proof of an input wait, nor is anything else that
// is not a read (finding 35).
func TestInputWaitIsNeverGuessed(t *testing.T) {
	s := newStand(t)
	for _, program := range []string{"yes", "sleep 60"} {
		term, err := s.terminal(t.Context(), "/bin/sh", "-c", program)
		if err != nil {
			t.Fatal(err)
		}
		if fg, err := term.Foreground(t.Context()); err != nil || fg == nil || fg.InputWaiting {
			t.Errorf("%s: %+v %v", program, fg, err)
		}
		ended(s, term)
	}
}

// A lost terminal is an error, its output ends, and a watcher is not needed
// (findings 18, 34; C256).
func TestLostTerminal(t *testing.T) {
	s := newStand(t)
	term, err := s.terminal(t.Context(), "/bin/sh", "-c", "echo up; sleep 60")
	if err != nil {
		t.Fatal(err)
	}
	s.seen(term, "up")
	s.server.CutSessions()
	s.within("the end of the output", func() { _, _ = io.Copy(io.Discard, term) })
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	_, err = term.Wait(ctx)
	s.fails(err, fault.ExecTransportLost)
	s.empty()
}

// Cancelling the allocation is prompt; a terminal that comes late is stopped and
// closed (findings 13, 28, 54; C257).
func TestTerminalThatComesLate(t *testing.T) {
	s := newStand(t)
	s.session(boxtest.SessionFault{Hold: true})
	ctx, cancel := cancellable(t)
	failed := make(chan error, 1)
	go func() {
		_, err := s.terminal(ctx, "sleep", "60")
		failed <- err
	}()
	s.sent("start")
	cancel()
	s.within("the cancelled allocation", func() {
		if err := <-failed; !errors.Is(err, errReason) {
			t.Errorf("%v", err)
		}
	})
	s.server.Release()
	s.empty()
	s.frames("start", "terminate")
}

// Shutdown refuses new work, gives up set-ups that stall, and stops what comes
// late (findings 29, 37, 42, 48, 51, 55, 60; C102, C203, C259, C260, C315).
func TestShutdownDuringHandshakes(t *testing.T) {
	s := newStand(t)
	s.server.Fault(boxtest.Fault{Match: "exec-session", Session: &boxtest.SessionFault{Hold: true}})
	spec := s.spec("sleep", "60")
	spec.Stdin = remoteexec.StdinPipe
	h := s.spawn(t.Context(), spec)
	wrote, allocated := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := h.Stdin().Write([]byte("x"))
		wrote <- err
	}()
	go func() {
		_, err := s.terminal(t.Context(), "sleep", "60")
		allocated <- err
	}()
	s.until("both set-ups", func() bool { return len(s.server.Frames("client")) == 2 })
	s.within("shutdown", func() { _ = s.shutdown() })
	s.within("the pending write", func() {
		if err := <-wrote; err == nil {
			t.Error("the pending write succeeded")
		}
	})
	s.within("the allocation", func() {
		if err := <-allocated; err == nil {
			t.Error("the allocation succeeded")
		}
	})
	_, _, err := s.settle(h)
	s.fails(err, fault.ExecDisposing)
	_, err = s.world.Processes().Spawn(t.Context(), s.spec("true"))
	s.fails(err, fault.ExecDisposing)
	s.server.Release()
	s.empty()
}

// One cleanup that fails at once does not cut short its sibling's (finding 39;
// C312).
func TestShutdownWaitsForSiblings(t *testing.T) {
	s := newStand(t)
	s.session(boxtest.SessionFault{CutAt: "terminate", From: "client"})
	h := s.spawn(t.Context(), s.spec("sleep", "60"))
	<-h.Started()
	slow := s.spawn(t.Context(), s.sh("trap 'sleep 0.3; exit 5' TERM; echo up; while :; do sleep 0.02; done"))
	s.until("the slow sibling", func() bool {
		c, err := slow.Collected(remoteexec.Stdout).ReadFrom(0)
		return err == nil && string(c.Bytes) == "up\n"
	})
	s.within("shutdown", func() { _ = s.shutdown() })
	select {
	case <-slow.Done():
	default:
		t.Error("shutdown returned before the sibling had ended")
	}
	s.empty()
}

// Terminate gates new operations and lets nothing stay in flight (finding 19;
// C251).
func TestTerminateGatesAndDrains(t *testing.T) {
	s := newStand(t)
	term, err := s.terminal(t.Context(), "sleep", "60")
	if err != nil {
		t.Fatal(err)
	}
	s.server.Fault(boxtest.Fault{Match: "POST", Times: 1, Hang: true})
	probe := make(chan error, 1)
	go func() {
		_, err := term.Foreground(t.Context())
		probe <- err
	}()
	s.until("a stalled probe", func() bool { return len(s.server.Requests("POST")) == 1 })
	s.within("terminate", func() { ended(s, term) })
	s.within("the probe", func() {
		if err := <-probe; err == nil {
			t.Error("the stalled probe succeeded")
		}
	})
	s.server.ClearJournal()
	_, werr := term.Write([]byte("x"))
	_, serr := term.Signal(t.Context(), "SIGINT")
	for _, err := range []error{werr, serr, term.Resize(t.Context(), 2, 2)} {
		if err == nil {
			t.Error("a closed terminal takes operations")
		}
	}
	if j := s.server.Journal(); len(j) != 0 {
		t.Errorf("%d requests after the end", len(j))
	}
}

// A lookup obeys its caller: nothing is sent when it is cancelled before, and a
// stalled one returns (findings 46, 57, 63; C49, C50, C51).
func TestLookupObeysItsCaller(t *testing.T) {
	s := newStand(t)
	ctx, cancel := cancellable(t)
	cancel()
	_, err := s.world.Processes().LookPath(ctx, "sh", remoteexec.Env{})
	if !errors.Is(err, errReason) || len(s.server.Journal()) != 0 {
		t.Errorf("%v, %d requests", err, len(s.server.Journal()))
	}
	s.server.Fault(boxtest.Fault{Match: "POST", Times: 1, Hang: true})
	ctx, cancel = cancellable(t)
	failed := make(chan error, 1)
	go func() {
		_, err := s.world.Processes().LookPath(ctx, "sh", remoteexec.Env{})
		failed <- err
	}()
	s.until("the request", func() bool { return len(s.server.Journal()) == 1 })
	cancel()
	s.within("the lookup", func() {
		if err := <-failed; !errors.Is(err, errReason) {
			t.Error(err)
		}
	})
	if n := len(s.server.Journal()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// The ceiling: 32 MiB of unread output are kept, one byte more stops the program
// with one frame, and the exit stays what it is (findings 56, 59; C216, C217).
func TestUnreadOutputCeiling(t *testing.T) {
	s := newStand(t)
	for _, size := range []string{"33554432", "33554433"} {
		s.server.ClearJournal()
		spec := s.sh("head -c " + size + " /dev/zero; exec sleep 60")
		spec.Stdout = remoteexec.Output{Mode: remoteexec.OutputPipe}
		h := s.spawn(t.Context(), spec)
		if size == "33554433" {
			s.sent("terminate")
			_, r, err := s.settle(h)
			if err != nil || r.Outcome.ExitCode != 143 {
				t.Errorf("%s: %+v %v", size, r.Outcome, err)
			}
			_, err = io.Copy(io.Discard, h.Pipe(remoteexec.Stdout))
			s.fails(err, fault.ExecOutputOverflow)
			s.frames("start", "stdin_close", "terminate")
			s.gone(h)
			continue
		}
		n, err := io.CopyN(io.Discard, h.Pipe(remoteexec.Stdout), 33554432)
		if n != 33554432 || err != nil {
			t.Errorf("%s: %d bytes, %v", size, n, err)
		}
		h.Terminate()
		s.settle(h)
	}
}

// inherit copies; the program sees no terminal, and our own stream stays open
// (finding 14; C9).
func TestInheritCopies(t *testing.T) {
	s := newStand(t)
	var ours strings.Builder
	spec := s.sh("test -t 1 || echo plain")
	spec.Stdout = remoteexec.Output{Mode: remoteexec.OutputInherit, To: &ours}
	if _, _, err := s.settle(s.spawn(t.Context(), spec)); err != nil || ours.String() != "plain\n" {
		t.Errorf("%q %v", ours.String(), err)
	}
}

// A cancellation shared by many handles and waits retains nothing after them
// (findings 3, 6, 21, 52; C54, C186).
func TestSharedCancellation(t *testing.T) {
	s := newStand(t)
	ctx, cancel := cancellable(t)
	for range 20 {
		h := s.spawn(ctx, s.spec("true"))
		s.settle(h)
		if ok, err := h.WaitForExit(ctx); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	s.server.ClearJournal()
	cancel()
	h := s.spawn(t.Context(), s.sh("exit 4"))
	if _, r, err := s.settle(h); err != nil || r.Outcome.ExitCode != 4 {
		t.Errorf("%+v %v", r, err)
	}
	if slices.Contains(s.server.Frames("client"), "terminate") {
		t.Error("an old cancellation stops a new program")
	}
}

// Input is released at the exit, and later writes fail (finding 2; C108).
func TestInputEndsWithTheProgram(t *testing.T) {
	s := newStand(t)
	spec := s.spec("true")
	spec.Stdin = remoteexec.StdinPipe
	h := s.spawn(t.Context(), spec)
	s.settle(h)
	if _, err := h.Stdin().Write([]byte("x")); err == nil {
		t.Error("a program that has ended takes input")
	}
	s.frames("start")
}
