package remoteexec

import (
	"context"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
)

// terminal is the Terminal over a driver's TerminalProc.
type terminal struct {
	rt    *processes
	proc  TerminalProc
	grace time.Duration
	queue *backlog // where the transport cannot be paused

	// ops ends when Terminate begins, and with it every operation in flight.
	ops     context.Context
	stopOps context.CancelFunc

	mu      sync.Mutex
	closing bool
	flying  sync.WaitGroup // operations in flight; none is added once closing
	cleanup *attempt       // the last or running end of the members
	ending  *attempt       // the last or running Terminate

	exited  chan struct{}
	outcome Outcome // valid after exited, with err
	err     error
}

// attempt is one run of something that concurrent callers share and that may be
// tried again after a failure.
type attempt struct {
	done chan struct{}
	err  error
}

// share gives the attempt that runs or has succeeded, or begins a new one. mu
// guards *last.
func share(mu *sync.Mutex, last **attempt, run func() error) *attempt {
	mu.Lock()
	defer mu.Unlock()
	if a := *last; a != nil && (!isClosed(a.done) || a.err == nil) {
		return a
	}
	a := &attempt{done: make(chan struct{})}
	*last = a
	go func() {
		a.err = run()
		close(a.done)
	}()
	return a
}

func newTerminal(rt *processes, proc TerminalProc, grace time.Duration) *terminal {
	t := &terminal{rt: rt, proc: proc, grace: grace, exited: make(chan struct{})}
	t.ops, t.stopOps = context.WithCancel(context.Background())
	if !rt.facts.Pauses {
		t.queue = newBacklog()
		go t.queue.fill(readerFunc(proc.Read), func() { go t.Terminate(context.Background()) })
	}
	return t
}

// readerFunc is a Read as a reader.
type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// live waits for the end of the top-level program and then cleans up after it
// (TT-27).
func (t *terminal) live() {
	outcome, err := t.proc.Wait()
	if err == nil {
		err = checkOutcome(outcome)
	}
	if err == nil && t.queue != nil {
		if overflow := t.queue.failure(); fault.Is(overflow, fault.ExecOutputOverflow) {
			err = overflow
		}
	}
	t.outcome, t.err = outcome, err
	close(t.exited)
	drain := time.AfterFunc(t.grace, t.proc.EndOutput)
	if err != nil {
		drain.Stop()
		t.proc.EndOutput()
	}
	if a := t.endMembers(); t.joined(a) == nil {
		t.rt.untrack(t)
	}
}

func (t *terminal) joined(a *attempt) error {
	<-a.done
	return a.err
}

// endMembers ends what is left of the session.
func (t *terminal) endMembers() *attempt {
	return share(&t.mu, &t.cleanup, func() error {
		survivors, err := t.proc.Terminate(context.Background(), t.grace)
		if fault.Is(err, fault.BackendWorldGone) || err == nil && len(survivors) == 0 {
			return nil
		}
		if err == nil {
			return fault.New(fault.ExecCleanupFailed, "terminate", "", "terminate terminal %d: processes %v survived", t.proc.PID(), survivors)
		}
		return fault.Wrap(err, fault.ExecCleanupFailed, "terminate", "", "terminate terminal %d: %v", t.proc.PID(), err)
	})
}

// Terminate implements Terminal (TT-22).
func (t *terminal) Terminate(ctx context.Context) error {
	t.mu.Lock()
	t.closing = true
	t.mu.Unlock()
	t.stopOps()
	a := share(&t.mu, &t.ending, func() error {
		t.flying.Wait()
		if err := t.joined(t.endMembers()); err != nil {
			return err
		}
		<-t.exited
		t.proc.EndOutput()
		t.proc.Close()
		t.rt.untrack(t)
		return nil
	})
	select {
	case <-a.done:
		return a.err
	case <-ctx.Done():
		return cancelled(ctx, "terminate")
	}
}

// begin counts an operation in, unless the terminal is ending (TT-11).
func (t *terminal) begin(op string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closing:
		return errClosing(op)
	case isClosed(t.exited):
		return errExited(op)
	}
	t.flying.Add(1)
	return nil
}

func errClosing(op string) error {
	return fault.New(fault.ExecSessionClosing, op, "", "%s: the terminal is being closed", op)
}

func errExited(op string) error {
	return fault.New(fault.ExecSessionExited, op, "", "%s: the program of the terminal has ended", op)
}

// done counts an operation out and names the end of the terminal as the reason
// of a failure that it caused.
func (t *terminal) finished(op string, err error) error {
	t.flying.Done()
	switch {
	case err == nil:
		return nil
	case t.ops.Err() != nil:
		return errClosing(op)
	case isClosed(t.exited):
		return errExited(op)
	}
	return err
}

// within gives a context that also ends when the terminal is being closed.
func (t *terminal) within(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	detach := context.AfterFunc(t.ops, cancel)
	return ctx, func() { detach(); cancel() }
}

// Write implements Terminal.
func (t *terminal) Write(p []byte) (int, error) {
	if err := t.begin("write"); err != nil {
		return 0, err
	}
	n, err := t.proc.Write(t.ops, p)
	return n, t.finished("write", err)
}

// Read implements Terminal. The end of the output is io.EOF whatever ended it;
// why the program ended is Wait's to say.
func (t *terminal) Read(p []byte) (int, error) {
	if t.queue != nil {
		n, err := t.queue.Read(p)
		return n, plainEnd(err)
	}
	n, err := t.proc.Read(p)
	return n, plainEnd(err)
}

func plainEnd(err error) error {
	if err == nil || fault.Is(err, fault.ExecOutputOverflow) {
		return err
	}
	return io.EOF
}

// Resize implements Terminal.
func (t *terminal) Resize(ctx context.Context, rows, cols int) error {
	if err := checkSize(rows, cols); err != nil {
		return err
	}
	if err := t.begin("resize"); err != nil {
		return err
	}
	ctx, release := t.within(ctx)
	defer release()
	return t.finished("resize", t.proc.Resize(ctx, rows, cols))
}

// Foreground implements Terminal.
func (t *terminal) Foreground(ctx context.Context) (*Foreground, error) {
	if err := t.begin("inspect"); fault.Is(err, fault.ExecSessionExited) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	ctx, release := t.within(ctx)
	defer release()
	fg, err := t.proc.Foreground(ctx)
	if err := t.finished("inspect", err); err != nil {
		return nil, err
	}
	if fg == nil || fg.ProcessGroupID <= 1 {
		return nil, nil
	}
	return fg, nil
}

// terminalSignals are what Signal sends (TT-17).
func terminalSignals() []string {
	return []string{"SIGINT", "SIGTERM", "SIGKILL", "SIGTSTP", "SIGHUP"}
}

// Signal implements Terminal.
func (t *terminal) Signal(ctx context.Context, name string) (int, error) {
	if !slices.Contains(terminalSignals(), name) {
		return 0, invalid("signal", "%q is none of SIGINT, SIGTERM, SIGKILL, SIGTSTP, SIGHUP", name)
	}
	if err := t.begin("signal"); fault.Is(err, fault.ExecSessionExited) {
		return 0, errNoForeground(name)
	} else if err != nil {
		return 0, err
	}
	ctx, release := t.within(ctx)
	defer release()
	group, err := t.deliver(ctx, name)
	return group, t.finished("signal", err)
}

// deliver inspects, then signals the whole group.
func (t *terminal) deliver(ctx context.Context, name string) (int, error) {
	if one, ok := t.proc.(ForegroundSignaller); ok {
		return one.SignalForeground(ctx, name)
	}
	fg, err := t.proc.Foreground(ctx)
	if err != nil {
		return 0, err
	}
	if fg == nil || fg.ProcessGroupID <= 1 {
		return 0, errNoForeground(name)
	}
	if name == "SIGKILL" && fg.ProcessGroupID == t.proc.PID() {
		return 0, errNoForeground(name).WithHint("only the top-level program is in front; end it by terminating the terminal")
	}
	return fg.ProcessGroupID, t.proc.SignalGroup(ctx, fg.ProcessGroupID, name)
}

func errNoForeground(name string) *fault.Error {
	return fault.New(fault.ExecNoForeground, "signal", "", "send %s: the terminal has no foreground process group to signal", name)
}

// PID implements Terminal.
func (t *terminal) PID() int { return t.proc.PID() }

// Done implements Terminal.
func (t *terminal) Done() <-chan struct{} { return t.exited }

// Wait implements Terminal.
func (t *terminal) Wait(ctx context.Context) (Outcome, error) {
	select {
	case <-t.exited:
		return t.outcome, t.err
	default:
	}
	select {
	case <-t.exited:
		return t.outcome, t.err
	case <-ctx.Done():
		return Outcome{}, cancelled(ctx, "wait")
	}
}

// end implements owned.
func (t *terminal) end(ctx context.Context) error { return t.Terminate(ctx) }

// hardKill implements owned.
func (t *terminal) hardKill() {
	if k, ok := t.proc.(HardKiller); ok {
		k.HardKill()
	}
}
