package keeper

import (
	"context"
	"maps"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/provider"
	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/remoteexec/shell"
)

// shellState is the persistent shell of a held terminal.
type shellState struct {
	*shell.Session
	spec remoteexec.TerminalSpec // without what the session adds
	// running: a command runs, and takes the end of the shell as its own.
	running bool
	ended   chan remoteexec.Outcome
}

func (s *shellState) feed(p []byte) { s.Feed(p) }

// shellTime bounds the start of a shell.
const shellTime = 30 * time.Second

// prepareShell begins a new talk and puts what the shell needs into its
// environment.
func (h *held) prepareShell(_ context.Context, spec *remoteexec.TerminalSpec) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.shell == nil {
		h.shell = &shellState{spec: *spec}
	}
	h.shell.Session = shell.NewSession()
	h.shell.ended = make(chan remoteexec.Outcome, 1)
	spec.Env.Set = maps.Clone(h.shell.spec.Env.Set)
	if spec.Env.Set == nil {
		spec.Env.Set = map[string]string{}
	}
	maps.Copy(spec.Env.Set, h.shell.Environment())
	return nil
}

// awaitShell waits for the first prompt, turns the echo off, and waits for the
// next. A shell that does not get there is ended (TS-3).
func (h *held) awaitShell(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, shellTime)
	defer cancel()
	h.mu.Lock()
	s, t := h.shell, h.term
	h.mu.Unlock()
	err := h.awaitPrompt(ctx, s, t, 1)
	if err == nil {
		_, err = t.Write([]byte(shell.Setup))
	}
	if err == nil {
		err = h.awaitPrompt(ctx, s, t, 2)
	}
	if err != nil {
		t.Terminate(context.WithoutCancel(ctx))
	}
	return err
}

func (h *held) awaitPrompt(ctx context.Context, s *shellState, t remoteexec.Terminal, want int) error {
	for {
		n, next := s.Prompted()
		if n >= want {
			return nil
		}
		select {
		case <-next:
		case <-t.Done():
			return fault.New(fault.ExecSpawnFailed, "open", h.id, "the shell ended before its first prompt").
				WithHint("the profile's term.shellPath and term.shellArgs say which bash is started")
		case <-ctx.Done():
			return fault.New(fault.ExecSpawnFailed, "open", h.id, "the shell shows no prompt")
		}
	}
}

// RunResult is what a command in a persistent shell left.
type RunResult struct {
	Output    string `json:"output"`
	Truncated bool   `json:"truncated"`
	ExitFacts
	TimedOut bool `json:"timedOut"`
	// Reset: the shell was given up and a fresh one is there.
	Reset bool `json:"reset"`
}

// heldRun runs one command in a persistent shell (TS-17). The end of the shell,
// a deadline and a caller that leaves give the shell up; the next command finds
// a fresh one.
func heldRun(x *provider.Stream, h *held, p heldParams) (any, error) {
	h.mu.Lock()
	s, t := h.shell, h.term
	h.mu.Unlock()
	switch {
	case s == nil:
		return nil, fault.New(fault.ExecInvalidSpec, "run", h.id, "%s is no shell session", h.id).WithHint("afield term open --shell-session")
	case h.ended():
		return nil, fault.New(fault.ExecSessionExited, "run", h.id, "the shell of %s has ended", h.id)
	}
	line, done, err := s.Begin(p.Command)
	if err != nil {
		return nil, err
	}
	h.setRunning(s, true)
	defer h.setRunning(s, false)
	r, err := h.runLine(x.Context(), s, t, line, done, millis(p.WaitMs))
	r.Output, r.Truncated = s.End()
	if r.Reset && err == nil {
		err = h.restart(t)
	}
	return r, err
}

func (h *held) setRunning(s *shellState, yes bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.running = yes
}

func (h *held) runLine(ctx context.Context, s *shellState, t remoteexec.Terminal, line string, done <-chan int, limit time.Duration) (RunResult, error) {
	if limit <= 0 {
		limit = shell.RunTimeoutMs * time.Millisecond
	}
	if _, err := h.write([]byte(line), false); err != nil {
		return RunResult{}, err
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case status := <-done:
		return RunResult{ExitFacts: exitFacts(remoteexec.Outcome{ExitCode: status})}, nil
	case o := <-s.ended:
		return RunResult{ExitFacts: exitFacts(o), Reset: true}, nil
	case <-timer.C:
		return RunResult{TimedOut: true, Reset: true}, nil
	case <-ctx.Done():
		return RunResult{Reset: true}, nil
	case <-h.over:
		return RunResult{}, fault.New(fault.ExecSessionClosing, "run", h.id, "the shell of %s ended while the command ran", h.id)
	}
}

// restart puts a fresh shell in the place of one that was given up.
func (h *held) restart(old remoteexec.Terminal) error {
	ctx := context.Background()
	if err := old.Terminate(ctx); err != nil {
		return err
	}
	h.mu.Lock()
	spec := h.shell.spec
	spec.Rows, spec.Cols = h.rows, h.cols
	h.mu.Unlock()
	if err := h.prepareShell(ctx, &spec); err != nil {
		return err
	}
	t, err := h.lease.world.Processes().OpenTerminal(ctx, spec)
	if err != nil {
		h.finish(remoteexec.Outcome{}, err)
		return err
	}
	h.mu.Lock()
	h.term = t
	h.mu.Unlock()
	go h.pump(t)
	return h.awaitShell(ctx)
}

// givenUp takes the end of a shell whose command still runs, or that was ended to
// be replaced.
func (h *held) givenUp(o remoteexec.Outcome, err error) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.shell == nil || !h.shell.running || h.stopping || err != nil {
		return false
	}
	h.shell.ended <- o
	return true
}
