package remoteexec

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/afield-dev/afield/pkg/fault"
)

// Spawn implements Runtime.
func (p *processes) Spawn(ctx context.Context, spec Spec) (Handle, error) {
	if err := p.open("spawn"); err != nil {
		return nil, err
	}
	if err := checkSpec(spec); err != nil {
		return nil, err
	}
	if err := p.checkLease(spec.Lease); err != nil {
		return nil, err
	}
	env, dropped, err := withoutReserved("spawn", spec.Env, p.facts.ReservedEnv, spec.AllowEnvDrop)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, cancelled(ctx, "spawn")
	}
	spec = owning(spec)
	spec.Env = env
	h := newHandle(ctx, p, spec, dropped)
	if err := p.track("spawn", h); err != nil {
		h.detach()
		return nil, err
	}
	h.launch()
	return h, nil
}

// owning gives a spec that the caller's later changes do not reach.
func owning(s Spec) Spec {
	s.Argv = slices.Clone(s.Argv)
	s.StdinData = bytes.Clone(s.StdinData)
	return s
}

// startSpec is what the driver gets.
func startSpec(s Spec) StartSpec {
	out := StartSpec{
		Argv: s.Argv, Cwd: s.Cwd, Set: s.Env.Set, Remove: s.Env.Remove, Grace: s.Grace, Lease: s.Lease,
		Stdin: s.Stdin, InheritStdin: s.InheritStdin,
	}
	if s.Stdin == StdinData {
		out.Stdin = StdinPipe
	}
	if s.Stdout.Mode == OutputInherit {
		out.InheritStdout = s.Stdout.To
	}
	if s.Stderr.Mode == OutputInherit {
		out.InheritStderr = s.Stderr.To
	}
	return out
}

// launch asks the driver to start the program: at once where no round trip is
// needed, so that the pid is known when Spawn returns (SP-6).
func (h *handle) launch() {
	if !h.rt.facts.Remote {
		if h.start() == nil {
			go h.live()
		}
		return
	}
	go func() {
		if h.start() == nil {
			h.live()
		}
	}()
}

// start gets a program from the driver, or settles the handle without one.
func (h *handle) start() error {
	proc, err := h.rt.driver.Start(h.startCtx, startSpec(h.spec))
	if err == nil && proc.PID() <= 1 {
		proc.Release()
		err = fault.New(fault.ExecTransportCorrupt, "spawn", h.spec.Argv[0],
			"start %s: the world confirmed the unusable process id %d", h.spec.Argv[0], proc.PID())
	}
	switch {
	case fault.Is(err, fault.ExecCancelled):
		err = h.cancelError()
	case err == nil && !h.publish(proc):
		h.bury(proc)
		return errDisposing("spawn")
	}
	if err != nil {
		h.abandon(err)
	}
	return err
}

// live is the life of a handle from the confirmed start on.
func (h *handle) live() {
	h.connect()
	outcome, err := h.proc.Wait()
	if err == nil {
		err = checkOutcome(outcome)
	}
	close(h.exited)
	h.disconnect()
	if err != nil {
		err = h.rollBack(err)
	}
	h.drain()
	if err == nil && !h.isStopping() {
		if err = h.corrupt(); err != nil {
			err = h.rollBack(err)
		}
	}
	h.settle(outcome, err)
	if !h.rt.facts.Remote {
		h.tree.probe(context.Background())
	}
}

// corrupt is the failure of a stream whose framing was invalid (CR-10).
func (h *handle) corrupt() error {
	for _, s := range []Stream{Stdout, Stderr} {
		if o := h.out[s]; !o.cut && fault.Is(o.err, fault.ExecTransportCorrupt) {
			return o.err
		}
	}
	return nil
}

// bury ends a program that arrived after the handle was abandoned (RS-3). Its
// exit is observed, whatever it is.
func (h *handle) bury(proc Proc) {
	exited := make(chan struct{})
	late := &tree{proc: proc, grace: h.spec.Grace, poll: h.rt.poll(), exited: exited, onGone: func() {}}
	end := late.terminate()
	closeStreams(proc)
	proc.Wait()
	close(exited)
	<-end
}

func closeStreams(proc Proc) {
	if in := proc.Stdin(); in != nil {
		in.Close()
	}
	if out := proc.Stdout(); out != nil {
		out.Close()
	}
	if out := proc.Stderr(); out != nil {
		out.Close()
	}
}

// checkOutcome holds OC-4 and OC-5.
func checkOutcome(o Outcome) error {
	if o.Signal == "" && (o.ExitCode < 0 || o.ExitCode > 255) {
		return fault.New(fault.ExecTransportCorrupt, "wait", "", "the world reported %d as exit code", o.ExitCode)
	}
	return nil
}

// rollBack ends a tree whose fate is unknown and reports the original failure
// first (RS-6).
func (h *handle) rollBack(err error) error {
	<-h.tree.terminate()
	if _, cleanup := h.tree.verdict(); cleanup != nil {
		return bothFailed(err, cleanup)
	}
	return err
}

// bothFailed reports a failure and that of its clean-up, the original first.
func bothFailed(err, cleanup error) error {
	both := errors.Join(err, cleanup)
	var f *fault.Error
	if !errors.As(err, &f) {
		return fault.Wrap(both, fault.ExecCleanupFailed, "wait", "", "%v; and then: %v", err, cleanup)
	}
	out := *f
	out.Message = f.Message + "; and then: " + cleanup.Error()
	out.Err = both
	return &out
}
