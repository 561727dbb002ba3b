package remoteexec

import (
	"context"
	"slices"

	"github.com/afield-dev/afield/pkg/fault"
)

// OpenTerminal implements Runtime.
func (p *processes) OpenTerminal(ctx context.Context, spec TerminalSpec) (Terminal, error) {
	if err := p.open("terminal"); err != nil {
		return nil, err
	}
	if err := checkTerminal(spec); err != nil {
		return nil, err
	}
	env, _, err := withoutReserved("terminal", spec.Env, p.facts.ReservedEnv, false)
	if err != nil {
		return nil, err
	}
	if !p.facts.Terminals {
		return nil, fault.New(fault.BackendUnsupported, "terminal", "", "%s has no terminals", p.facts.Backend)
	}
	if ctx.Err() != nil {
		return nil, cancelled(ctx, "terminal")
	}
	spec.Argv, spec.Env = slices.Clone(spec.Argv), env
	return p.allocate(ctx, spec)
}

// setup is an allocation that Shutdown waits for (DI-2): until it is published,
// has failed, or is given up and left to a goroutine that ends what comes late.
type setup struct{ settled chan struct{} }

func (s *setup) end(ctx context.Context) error {
	select {
	case <-s.settled:
		return nil
	case <-ctx.Done():
		return cancelled(ctx, "shutdown")
	}
}

func (s *setup) hardKill() {}

// allocate gets a terminal from the driver and publishes it, unless ctx or the
// runtime ends first (TT-4, TT-5).
func (p *processes) allocate(ctx context.Context, spec TerminalSpec) (Terminal, error) {
	s := &setup{settled: make(chan struct{})}
	if err := p.track("terminal", s); err != nil {
		return nil, err
	}
	defer close(s.settled)
	defer p.untrack(s)
	ctx, release := p.within(ctx, "terminal")
	defer release()
	proc, err := p.raceTerminal(ctx, spec)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		endLate(proc, spec)
		return nil, cancelled(ctx, "terminal")
	}
	t := newTerminal(p, proc, spec.Grace)
	if err := p.track("terminal", t); err != nil {
		go t.live()
		t.Terminate(context.Background())
		return nil, err
	}
	go t.live()
	return t, nil
}

// raceTerminal asks the driver and waits no longer than ctx. A terminal that
// comes late is ended.
func (p *processes) raceTerminal(ctx context.Context, spec TerminalSpec) (TerminalProc, error) {
	if !p.facts.Remote {
		return usable(p.driver.StartTerminal(ctx, spec))
	}
	type answer struct {
		proc TerminalProc
		err  error
	}
	got := make(chan answer, 1)
	go func() {
		proc, err := usable(p.driver.StartTerminal(ctx, spec))
		got <- answer{proc, err}
	}()
	select {
	case a := <-got:
		if fault.Is(a.err, fault.ExecCancelled) && ctx.Err() != nil {
			return nil, cancelled(ctx, "terminal")
		}
		return a.proc, a.err
	case <-ctx.Done():
		go func() {
			if late := <-got; late.err == nil {
				endLate(late.proc, spec)
			}
		}()
		return nil, cancelled(ctx, "terminal")
	}
}

// usable holds RS-5.
func usable(proc TerminalProc, err error) (TerminalProc, error) {
	if err != nil || proc.PID() > 1 {
		return proc, err
	}
	proc.Close()
	return nil, fault.New(fault.ExecTransportCorrupt, "terminal", "", "open a terminal: the world confirmed the unusable process id %d", proc.PID())
}

// endLate ends a terminal that nobody waits for any more.
func endLate(proc TerminalProc, spec TerminalSpec) {
	ended := make(chan struct{})
	go func() { proc.Wait(); close(ended) }()
	proc.Terminate(context.Background(), spec.Grace)
	proc.Close()
	<-ended
}
