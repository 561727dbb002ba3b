package remoteexec

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
)

// errAsked is why a start was given up when Terminate came before it.
var errAsked = errors.New("termination was asked for before the program was started")

// handle is the Handle over a driver's Proc.
type handle struct {
	rt   *processes
	spec Spec
	in   *input // nil with StdinIgnore
	out  [3]*output

	startCtx    context.Context
	cancelStart context.CancelCauseFunc
	detach      func() bool // from the caller's cancellation

	mu       sync.Mutex
	cause    error         // of the cancellation, if there was one
	started  chan struct{} // the start is confirmed or has failed
	startErr error         // valid after started
	proc     Proc          // valid after started; nil with startErr
	tree     *tree         // likewise
	stopping chan struct{} // Terminate was called
	exited   chan struct{} // the root's end is known
	done     chan struct{} // settled

	report Report // valid after done, with err
	err    error
}

// newHandle makes a handle without a program. ctx ends its tree until it has
// settled.
func newHandle(ctx context.Context, rt *processes, spec Spec, dropped []string) *handle {
	h := &handle{
		rt: rt, spec: spec, report: Report{EnvDropped: dropped},
		started: make(chan struct{}), stopping: make(chan struct{}),
		exited: make(chan struct{}), done: make(chan struct{}),
	}
	h.out[Stdout] = newOutput(spec.Stdout, "stdout", rt.spills)
	h.out[Stderr] = newOutput(spec.Stderr, "stderr", rt.spills)
	if spec.Stdin != StdinIgnore {
		h.in = &input{h: h}
	}
	h.startCtx, h.cancelStart = context.WithCancelCause(context.WithoutCancel(ctx))
	h.detach = context.AfterFunc(ctx, func() { h.stop(context.Cause(ctx)) })
	return h
}

// publish makes the program the handle's; false if the handle was abandoned
// before.
func (h *handle) publish(proc Proc) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if isClosed(h.started) {
		return false
	}
	h.proc = proc
	h.tree = &tree{proc: proc, grace: h.spec.Grace, poll: h.rt.poll(), exited: h.exited}
	h.tree.onGone = func() { h.rt.untrack(h, h.tree) }
	if isClosed(h.stopping) {
		h.tree.terminate() // the stop is the first thing sent (RS-1)
	}
	close(h.started)
	return true
}

// connect lets bytes flow.
func (h *handle) connect() {
	pauses := h.rt.facts.Pauses
	h.out[Stdout].begin(h.proc.Stdout(), pauses, h.Terminate)
	h.out[Stderr].begin(h.proc.Stderr(), pauses, h.Terminate)
	switch {
	case h.proc.Stdin() == nil:
	case h.spec.Stdin == StdinData:
		go h.in.feed(h.spec.StdinData)
	case h.spec.Stdin == StdinInherit:
		go h.in.copyFrom(h.spec.InheritStdin)
	}
}

// disconnect destroys the input at the root's end (SI-9).
func (h *handle) disconnect() {
	if h.proc.Stdin() == nil {
		return
	}
	if h.in != nil {
		h.in.shut()
	}
	if h.spec.Stdin == StdinInherit {
		unblock(h.spec.InheritStdin)
	}
}

// cancelError is the failure of a start that was given up.
func (h *handle) cancelError() error {
	h.mu.Lock()
	cause := h.cause
	h.mu.Unlock()
	if cause == nil {
		cause = errAsked
	}
	return fault.Wrap(cause, fault.ExecCancelled, "spawn", h.spec.Argv[0], "start %s: aborted", h.spec.Argv[0])
}

// abandon settles a handle whose session has not opened: waiters, pending
// writes and readers complete with err (SP-8, RS-3, SI-6). It reports false if
// there is a program or the handle was abandoned before.
func (h *handle) abandon(err error) bool {
	h.mu.Lock()
	if isClosed(h.started) {
		h.mu.Unlock()
		return false
	}
	h.startErr = err
	close(h.started)
	h.mu.Unlock()
	h.out[Stdout].abandon(err)
	h.out[Stderr].abandon(err)
	close(h.exited)
	h.settle(Outcome{}, err)
	h.rt.untrack(h)
	return true
}

// drain waits for the end of the streams that are read here, at most one grace
// from the root's end on, and then closes them (OC-7).
func (h *handle) drain() {
	ctx, cancel := Countdown(h.spec.Grace)
	defer cancel()
	for _, s := range []Stream{Stdout, Stderr} {
		h.out[s].drain(ctx)
	}
}

// settle publishes the outcome.
func (h *handle) settle(outcome Outcome, err error) {
	h.detach()
	h.report.Outcome, h.report.Started = outcome, h.startErr == nil && !neverRan(err)
	h.report.Stdout, h.report.Stderr = h.out[Stdout].seal(), h.out[Stderr].seal()
	h.report.Incomplete = h.report.Stdout.Incomplete || h.report.Stderr.Incomplete
	h.err = err
	if h.tree != nil {
		h.rt.replace(h, h.tree) // what was collected is the caller's from here on
	}
	close(h.done)
}

// neverRan reports whether a world whose launcher had started found out at its
// end that the program itself could not be (RS-12).
func neverRan(err error) bool {
	return fault.Is(err, fault.ExecProgramNotFound) || fault.Is(err, fault.ExecProgramNotExecutable) || fault.Is(err, fault.ExecProgramFormat)
}

// PID implements Handle.
func (h *handle) PID() int {
	if isClosed(h.started) && h.proc != nil {
		return h.proc.PID()
	}
	return 0
}

// Started implements Handle.
func (h *handle) Started() <-chan struct{} { return h.started }

// Stdin implements Handle.
func (h *handle) Stdin() io.WriteCloser {
	if h.spec.Stdin != StdinPipe {
		return nil
	}
	return h.in
}

// Pipe implements Handle.
func (h *handle) Pipe(s Stream) io.ReadCloser {
	if p := h.out[s].pipe; p != nil {
		return p
	}
	return nil
}

// Collected implements Handle.
func (h *handle) Collected(s Stream) *Collected { return h.out[s].collected }

// Done implements Handle.
func (h *handle) Done() <-chan struct{} { return h.done }

// Wait implements Handle.
func (h *handle) Wait(ctx context.Context) (Report, error) {
	select {
	case <-h.done:
		return h.report, h.err
	default:
	}
	select {
	case <-h.done:
		return h.report, h.err
	case <-ctx.Done():
		return Report{}, cancelled(ctx, "wait")
	}
}

// Terminate implements Handle.
func (h *handle) Terminate() { h.stop(nil) }

// stop records the request and begins the ladder if there is a program (RS-1).
func (h *handle) stop(cause error) {
	h.mu.Lock()
	if !isClosed(h.stopping) {
		h.cause = cause
		close(h.stopping)
	}
	tree := h.tree
	h.mu.Unlock()
	h.cancelStart(cause)
	if tree != nil {
		tree.terminate()
	}
}

func (h *handle) isStopping() bool { return isClosed(h.stopping) }
func (h *handle) hasExited() bool  { return isClosed(h.exited) }

// WaitForExit implements Handle.
func (h *handle) WaitForExit(ctx context.Context) (bool, error) {
	if !isClosed(h.started) {
		select {
		case <-h.started:
		case <-ctx.Done():
			return false, nil
		}
	}
	if h.proc == nil {
		return true, nil
	}
	return h.tree.wait(ctx)
}

// survivorsPatience bounds the look of Survivors.
const survivorsPatience = 10 * time.Second

// Survivors implements Handle.
func (h *handle) Survivors() []int {
	if !isClosed(h.started) || h.proc == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), survivorsPatience)
	defer cancel()
	_, members, _ := h.tree.probe(ctx)
	return members
}

// end implements owned.
func (h *handle) end(ctx context.Context) error {
	if h.rt.facts.Remote && h.abandon(errDisposing("spawn")) {
		h.cancelStart(errDisposing("spawn"))
		return nil
	}
	h.Terminate()
	select {
	case <-h.done:
	case <-ctx.Done():
		return cancelled(ctx, "shutdown")
	}
	if h.tree == nil {
		return nil
	}
	return h.tree.end(ctx)
}

// hardKill implements owned.
func (h *handle) hardKill() {
	h.cancelStart(nil)
	if isClosed(h.started) && h.proc != nil {
		h.tree.hardKill()
	}
}
