package remoteexec

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
)

// fakeTerm is a terminal of a scripted world.
type fakeTerm struct {
	j         *journal
	pid       int
	out       *io.PipeReader
	outW      *io.PipeWriter
	ended     chan struct{}
	once      sync.Once
	outcome   Outcome
	err       error
	group     int
	inspect   func(ctx context.Context) (*Foreground, error)
	kill      error
	survivors []int
}

func newTerm(j *journal) *fakeTerm {
	f := &fakeTerm{j: j, pid: 4711, group: 4800, ended: make(chan struct{})}
	f.out, f.outW = io.Pipe()
	return f
}

func (f *fakeTerm) PID() int                   { return f.pid }
func (f *fakeTerm) Read(p []byte) (int, error) { return f.out.Read(p) }
func (f *fakeTerm) EndOutput()                 { f.j.add("end output"); f.outW.Close() }
func (f *fakeTerm) Close() error               { f.j.add("close"); return f.out.Close() }

func (f *fakeTerm) Write(_ context.Context, p []byte) (int, error) {
	f.j.add("write %s", p)
	return len(p), nil
}

func (f *fakeTerm) Resize(_ context.Context, rows, cols int) error {
	f.j.add("resize %dx%d", rows, cols)
	return nil
}

func (f *fakeTerm) Foreground(ctx context.Context) (*Foreground, error) {
	f.j.add("inspect")
	if f.inspect != nil {
		return f.inspect(ctx)
	}
	return &Foreground{ProcessGroupID: f.group}, nil
}

func (f *fakeTerm) SignalGroup(_ context.Context, group int, name string) error {
	f.j.add("%s to %d", name, group)
	return f.kill
}

func (f *fakeTerm) Wait() (Outcome, error) {
	<-f.ended
	return f.outcome, f.err
}

func (f *fakeTerm) Terminate(context.Context, time.Duration) ([]int, error) {
	f.j.add("terminate")
	if len(f.survivors) == 0 {
		f.exit(Outcome{Signal: "SIGHUP"})
	}
	return f.survivors, nil
}

func (f *fakeTerm) exit(o Outcome) {
	f.once.Do(func() { f.outcome = o; close(f.ended) })
}

func (f *fakeTerm) lose() {
	f.once.Do(func() {
		f.err = fault.New(fault.ExecTransportLost, "wait", "", "lost")
		f.outW.CloseWithError(f.err)
		close(f.ended)
	})
}

func terminalRequest() TerminalSpec {
	return TerminalSpec{Argv: []string{"shell"}, Cwd: "/", Rows: 24, Cols: 80, Grace: 200 * time.Millisecond}
}

// opened gives a terminal of a scripted world.
func opened(t *testing.T, d *scripted, f TerminalProc) (Runtime, Terminal) {
	t.Helper()
	d.terminal = func(context.Context, TerminalSpec) (TerminalProc, error) { return f, nil }
	rt := New(d, Options{})
	term, err := rt.OpenTerminal(t.Context(), terminalRequest())
	if err != nil {
		t.Fatal(err)
	}
	return rt, term
}

// C241, TT-13: an id that is none is no foreground group, and is never
// signalled.
func TestForegroundIDs(t *testing.T) {
	for _, group := range []int{-1, 0, 1} {
		inBubble(t, func(t *testing.T) {
			d := remote()
			f := newTerm(&d.journal)
			f.group = group
			rt, term := opened(t, d, f)
			fg, err := term.Foreground(t.Context())
			if fg != nil || err != nil {
				t.Errorf("group %d: got %+v, %v", group, fg, err)
			}
			_, err = term.Signal(t.Context(), "SIGINT")
			code(t, "signal", err, fault.ExecNoForeground)
			equal(t, "sent", d.count("SIG"), 0)
			shut(t, rt)
		})
	}
}

// C238, TT-20: the kill's own result is the proof.
func TestUndeliveredSignal(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := remote()
		f := newTerm(&d.journal)
		f.kill = fault.New(fault.ExecSignalNotDelivered, "signal", "", "no such group")
		rt, term := opened(t, d, f)
		_, err := term.Signal(t.Context(), "SIGINT")
		code(t, "signal", err, fault.ExecSignalNotDelivered)
		shut(t, rt)
	})
}

// C251, TT-22: the end aborts a stalled probe, refuses what comes later, and
// sends nothing for it.
func TestTerminateGatesOperations(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := remote()
		f := newTerm(&d.journal)
		f.inspect = func(ctx context.Context) (*Foreground, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		rt, term := opened(t, d, f)
		probe := make(chan error, 1)
		go func() {
			_, err := term.Foreground(t.Context())
			probe <- err
		}()
		synctest.Wait()
		equal(t, "terminate", term.Terminate(t.Context()), nil)
		code(t, "stalled probe", <-probe, fault.ExecSessionClosing)
		before := d.all()
		_, err := term.Write([]byte("x"))
		code(t, "write", err, fault.ExecSessionClosing)
		_, err = term.Foreground(t.Context())
		code(t, "inspect", err, fault.ExecSessionClosing)
		_, err = term.Signal(t.Context(), "SIGINT")
		code(t, "signal", err, fault.ExecSessionClosing)
		code(t, "resize", term.Resize(t.Context(), 5, 5), fault.ExecSessionClosing)
		equal(t, "terminate again", term.Terminate(t.Context()), nil)
		equal(t, "journal", d.all(), before)
		shut(t, rt)
	})
}

// C250, C252, C268: concurrent ends share one run; survivors are named and keep
// the terminal in the books; a later end may succeed.
func TestTerminateSharesAndRetries(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := remote()
		f := newTerm(&d.journal)
		f.survivors = []int{4801}
		rt, term := opened(t, d, f)
		errs := make(chan error, 5)
		for range 5 {
			go func() { errs <- term.Terminate(t.Context()) }()
		}
		for range 5 {
			code(t, "terminate", <-errs, fault.ExecCleanupFailed)
		}
		code(t, "shutdown", rt.Shutdown(t.Context()), fault.ExecCleanupFailed)
		f.survivors = nil
		shut(t, rt)
		equal(t, "closed", d.count("close"), 1)
		equal(t, "owned", len(rt.(*processes).ownedNow()), 0)
	})
}

// C268, TT-27: an exit by itself cleans up after it, and keeps the terminal if
// that fails.
func TestExitCleansUp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := remote()
		f := newTerm(&d.journal)
		f.survivors = []int{4801}
		rt, term := opened(t, d, f)
		f.exit(Outcome{ExitCode: 7})
		outcome, err := term.Wait(t.Context())
		equal(t, "outcome", outcome, Outcome{ExitCode: 7})
		equal(t, "error", err, nil)
		synctest.Wait()
		equal(t, "tried", d.count("terminate"), 1)
		equal(t, "kept", len(rt.(*processes).ownedNow()), 1)
		f.survivors = nil
		shut(t, rt)
		equal(t, "tried again", d.count("terminate"), 2)
	})
}

// C256, TT-28: a lost connection ends the output and fails the terminal.
func TestLostTerminal(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := remote()
		f := newTerm(&d.journal)
		rt, term := opened(t, d, f)
		go f.outW.Write([]byte("bye"))
		buf := make([]byte, 10)
		n, _ := term.Read(buf)
		f.lose()
		_, end := term.Read(buf)
		equal(t, "output", string(buf[:n]), "bye")
		equal(t, "end", end, io.EOF)
		_, err := term.Wait(t.Context())
		code(t, "terminal", err, fault.ExecTransportLost)
		shut(t, rt)
	})
}

// C257, C258, C259: an allocation that is cancelled, or that meets shutdown,
// returns at once; what comes late is ended.
func TestAllocationIsRaced(t *testing.T) {
	for _, by := range []string{"caller", "shutdown"} {
		inBubble(t, func(t *testing.T) {
			d := remote()
			answer := make(chan TerminalProc)
			d.terminal = func(context.Context, TerminalSpec) (TerminalProc, error) { return <-answer, nil }
			rt := New(d, Options{})
			reason := errors.New("changed my mind")
			ctx, cancel := context.WithCancelCause(t.Context())
			result := make(chan error, 1)
			go func() {
				_, err := rt.OpenTerminal(ctx, terminalRequest())
				result <- err
			}()
			synctest.Wait()
			begin := time.Now()
			if by == "caller" {
				cancel(reason)
				err := <-result
				code(t, "open", err, fault.ExecCancelled)
				equal(t, "carries the reason", errors.Is(err, reason), true)
			} else {
				shut(t, rt)
				code(t, "open", <-result, fault.ExecDisposing)
			}
			equal(t, "time on the fake clock", time.Since(begin), 0)
			late := newTerm(&d.journal)
			answer <- late
			synctest.Wait()
			equal(t, "ended", d.count("terminate"), 1)
			equal(t, "closed", d.count("close"), 1)
			cancel(nil)
			shut(t, rt)
		})
	}
}

// C260, DI-2: a terminal that was allocated when shutdown began is ended before
// shutdown returns.
func TestShutdownBeforePublication(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := remote()
		d.facts.Remote = false
		f := newTerm(&d.journal)
		var rt Runtime
		down := make(chan error, 1)
		d.terminal = func(context.Context, TerminalSpec) (TerminalProc, error) {
			go func() { down <- rt.Shutdown(context.Background()) }()
			synctest.Wait()
			equal(t, "shutdown waits", len(down), 0)
			return f, nil
		}
		rt = New(d, Options{})
		_, err := rt.OpenTerminal(t.Context(), terminalRequest())
		code(t, "open", err, fault.ExecDisposing)
		equal(t, "shutdown", <-down, nil)
		equal(t, "ended", d.count("terminate"), 1)
	})
}

// C221: output above the ceiling ends the terminal; its failure is told at the
// real exit.
func TestUnreadTerminal(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := unpaused()
		f := newTerm(&d.journal)
		f.survivors = []int{4801}
		rt, term := opened(t, d, f)
		frames(f.outW, maxBacklog+1<<20)
		synctest.Wait()
		equal(t, "asked to end", d.count("terminate"), 1)
		equal(t, "done before the exit", isClosed(term.Done()), false)
		f.survivors = nil
		equal(t, "terminate", term.Terminate(t.Context()), nil)
		_, err := term.Wait(t.Context())
		code(t, "terminal", err, fault.ExecOutputOverflow)
		equal(t, "closed", d.count("close"), 1)
		shut(t, rt)
	})
}

// TT-10: the output ends one grace after the exit, if nothing else ends it.
func TestTerminalDrain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := remote()
		f := newTerm(&d.journal)
		rt, term := opened(t, d, f)
		begin := time.Now()
		f.exit(Outcome{})
		_, err := io.ReadAll(term)
		equal(t, "end", err, nil)
		equal(t, "after", time.Since(begin), 200*time.Millisecond)
		shut(t, rt)
	})
}
