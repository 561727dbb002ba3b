package shell

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
)

// Runner runs command strings of one world. Its fields are not changed while it
// is in use; its methods may run at the same time.
type Runner struct {
	Runtime  remoteexec.Runtime
	Settings Settings
	// Managed are entries of the environment that win over every command's own
	// (SH-6).
	Managed map[string]string
}

// Command is a command string to run.
type Command struct {
	Script string // run by bash -c, without start-up files (SH-1)
	Cwd    string // absolute, in the world
	Env    remoteexec.Env
	// Timeout replaces the default; nil = the default, and zero is refused.
	Timeout *time.Duration
}

// Result is what a command left. Exit codes, deaths, deadlines and cancellations
// are results, not errors (SH-7). A command that was stopped before it began has
// Started false.
type Result struct {
	remoteexec.Report
	Stdout, Stderr remoteexec.TextChunk
	// TimedOut: the deadline fired first. Aborted: the caller's cancellation
	// did. Never both (SH-4).
	TimedOut bool
	Aborted  bool
	Timeout  time.Duration // the effective deadline
}

// Run runs a command to its end. The error says that it could not be started or
// that its fate is unknown.
func (r *Runner) Run(ctx context.Context, c Command) (Result, error) {
	timeout, err := r.Settings.timeout(c.Timeout)
	if err != nil {
		return Result{}, err
	}
	fused, verdict := fuse(ctx, timeout)
	out, err := r.run(fused, c)
	cause := verdict.settle()
	if err != nil && !(cause != nil && fault.Is(err, fault.ExecCancelled)) {
		return Result{}, err
	}
	out.Timeout = timeout
	out.TimedOut, out.Aborted = cause == errTimeout, cause != nil && cause != errTimeout
	return out, nil
}

// run runs a command until ctx stops it.
func (r *Runner) run(ctx context.Context, c Command) (out Result, err error) {
	h, err := r.Runtime.Spawn(ctx, r.spec(c))
	if err != nil {
		return out, err
	}
	out.Report, err = h.Wait(context.WithoutCancel(ctx))
	out.Stdout, out.Stderr = text(h, remoteexec.Stdout), text(h, remoteexec.Stderr)
	return out, err
}

func text(h remoteexec.Handle, s remoteexec.Stream) remoteexec.TextChunk {
	chunk, _ := h.Collected(s).ReadText(0) // offset 0 is always valid
	return chunk
}

// spec is the request of a command.
func (r *Runner) spec(c Command) remoteexec.Spec {
	out := remoteexec.Output{
		Mode: remoteexec.OutputCollect, MaxBytes: r.Settings.MaxOutputBytes, SpillMax: r.Settings.MaxSpillBytes,
	}
	return remoteexec.Spec{
		Argv: []string{"bash", "-c", c.Script}, Cwd: c.Cwd, Env: r.env(c.Env),
		Stdout: out, Stderr: out, Grace: r.Settings.Grace,
	}
}

// env puts the layers of SH-6 on each other: plain output, the command's own
// entries, the managed ones.
func (r *Runner) env(own remoteexec.Env) remoteexec.Env {
	set := map[string]string{"NO_COLOR": "1", "TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat"}
	maps.Copy(set, own.Set)
	var remove []string
	for _, name := range own.Remove {
		if _, both := own.Set[name]; !both {
			delete(set, name)
		}
		if _, managed := r.Managed[name]; !managed {
			remove = append(remove, name)
		}
	}
	maps.Copy(set, r.Managed)
	return remoteexec.Env{Set: set, Remove: remove}
}

var errTimeout = errors.New("the command's deadline passed")

// verdict is the first cause that stopped a command before it settled (SH-4).
type verdict struct {
	mu      sync.Mutex
	settled bool
	cause   error
	cancel  context.CancelCauseFunc
	release []func() bool
}

// fuse gives a context that ends with ctx or after timeout, whichever is first.
func fuse(ctx context.Context, timeout time.Duration) (context.Context, *verdict) {
	v := &verdict{}
	fused, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	v.cancel = cancel
	if ctx.Err() != nil {
		v.fire(context.Cause(ctx))
		return fused, v
	}
	timer := time.AfterFunc(timeout, func() { v.fire(errTimeout) })
	v.release = []func() bool{timer.Stop, context.AfterFunc(ctx, func() { v.fire(context.Cause(ctx)) })}
	return fused, v
}

// fire records a cause unless the command has settled or another was first.
func (v *verdict) fire(cause error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.settled && v.cause == nil {
		v.cause = cause
		v.cancel(cause)
	}
}

// settle closes the record and gives the cause, if there was one.
func (v *verdict) settle() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.settled {
		v.settled = true
		v.cancel(nil)
		for _, release := range v.release {
			release()
		}
	}
	return v.cause
}
