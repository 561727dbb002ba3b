package cmd

import (
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
)

// output says where a stream of the program goes.
func (o *execOptions) output(a *app, to io.Writer) remoteexec.Output {
	if !a.flags.json {
		return remoteexec.Output{Mode: remoteexec.OutputInherit, To: to}
	}
	out := remoteexec.Output{Mode: remoteexec.OutputCollect, MaxBytes: o.maxOutput}
	if o.spill {
		out.SpillMax = o.spillMax
	}
	return out
}

// runExec runs the program and ends with its status. What is known of the run is
// reported also when the program could not be started.
func runExec(ctx context.Context, a *app, opts execOptions) error {
	env, err := a.environment(ctx, opts.env)
	if err != nil {
		return err
	}
	report, err := a.openReport(opts.report)
	if err != nil {
		return err
	}
	defer report.Close()
	var run execRun
	err = a.withWorld(ctx, func(w *world) error {
		run = a.execute(ctx, w, opts, env)
		return nil
	})
	if err != nil {
		run.err = err
	}
	if err := a.writeRun(report, run); err != nil {
		return err
	}
	return a.endOfRun(ctx, opts, run)
}

// execRun is what is known of a run.
type execRun struct {
	handle    remoteexec.Handle // nil if the world could not be opened
	report    remoteexec.Report
	duration  time.Duration
	timedOut  bool
	survivors []int
	err       error
}

// execute runs the program to its end, and ends what it left behind.
func (a *app) execute(ctx context.Context, w *world, opts execOptions, env remoteexec.Env) execRun {
	procs, err := w.processes()
	if err != nil {
		return execRun{err: err}
	}
	a.signals.atHardExit(procs.HardStop)
	cwd, err := w.Cwd(ctx)
	if err != nil {
		return execRun{err: err}
	}
	began := time.Now()
	h, err := procs.Spawn(ctx, opts.spec(a, cwd, w.environment(a, env)))
	if err != nil {
		return execRun{err: err}
	}
	run := execRun{handle: h}
	run.report, run.err = h.Wait(context.WithoutCancel(ctx))
	run.err = onBackend(run.err, w.provider)
	run.duration = time.Since(began)
	run.timedOut = run.report.Started && errors.Is(context.Cause(ctx), fault.ErrDeadline)
	run.survivors = endTree(ctx, h, opts.grace)
	return run
}

// endTree ends what the program left running, and names what could not be
// ended.
func endTree(ctx context.Context, h remoteexec.Handle, grace time.Duration) []int {
	if len(h.Survivors()) == 0 {
		return nil
	}
	h.Terminate()
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*grace+closeTime)
	defer cancel()
	if quiet, err := h.WaitForExit(bound); quiet && err == nil {
		return nil
	}
	return h.Survivors()
}

// endOfRun gives the status of the run: why afield stopped it, else the
// program's own.
func (a *app) endOfRun(ctx context.Context, opts execOptions, run execRun) error {
	if run.err != nil {
		return run.err
	}
	if len(run.survivors) > 0 {
		a.note("warning: processes that could not be ended: %s", joinInts(run.survivors))
	}
	if run.timedOut {
		a.note("the deadline of %s passed and the program was ended", a.flags.timeout)
	}
	if cause := context.Cause(ctx); cause != nil && !(run.timedOut && opts.exitZero) {
		status, _ := statusOfCause(fault.Aborted(ctx, fault.ExecCancelled, "exec", ""))
		return statusError{status}
	}
	if opts.exitZero {
		return nil
	}
	return childResult(run.report.Outcome)
}

// childResult gives the status of a program that ended: its code, or 128+n for
// a death by signal n that the world reports as a fact.
func childResult(o remoteexec.Outcome) error {
	status := o.ExitCode
	if o.Signal != "" {
		status = 128 + signalNumber(o.Signal)
	}
	if status == exitOK {
		return nil
	}
	return statusError{status}
}

// signalNumber gives the number of a name such as SIGTERM or SIG34.
func signalNumber(name string) int {
	if n := unix.SignalNum(name); n != 0 {
		return int(n)
	}
	n, _ := strconv.Atoi(strings.TrimPrefix(name, "SIG"))
	return n
}

// openReport makes the file of --report before anything runs; nil without one.
func (a *app) openReport(path string) (*os.File, error) {
	if path == "" {
		return nil, nil
	}
	abs, err := a.hostPath(path)
	if err != nil {
		return nil, err
	}
	f, err := os.Create(abs)
	if err != nil {
		return nil, hostError(err, "write", path)
	}
	return f, nil
}
