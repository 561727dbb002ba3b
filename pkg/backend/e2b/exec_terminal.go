package e2b

import (
	"context"
	"slices"
	"time"

	"github.com/afield-dev/afield/pkg/backend/e2b/wire"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
)

// terminal is a program on a pseudo-terminal: it implements
// remoteexec.TerminalProc and HardKiller.
type terminal struct {
	*started
	runner *Runner
	keys   *input
	screen *outlet
	exit   *exit
}

// defaultTerm is what kind of terminal a program is told to have.
const defaultTerm = "xterm-256color"

// StartTerminal starts a program on a terminal that has its size from the first
// instant: one request, and one before it for environment entries. Nothing is
// typed into a shell, so every byte of the output is the program's.
func (r *Runner) StartTerminal(ctx context.Context, spec remoteexec.TerminalSpec) (remoteexec.TerminalProc, error) {
	words, file, err := r.plan(ctx, spec.Argv, spec.Env.Set, spec.Env.Remove)
	if err != nil {
		return nil, err
	}
	start := wire.StartRequest{
		Process: wire.ProcessConfig{Cmd: words[0], Args: words[1:], Cwd: &spec.Cwd},
		PTY:     &wire.PTY{Size: &wire.Size{Cols: uint32(spec.Cols), Rows: uint32(spec.Rows)}},
	}
	if !slices.Contains(spec.Env.Remove, "TERM") {
		start.Process.Envs = map[string]string{"TERM": defaultTerm}
	}
	st, err := r.open(ctx, start, spec.Argv[0])
	if err != nil {
		r.dropFile(file)
		return nil, r.startError(err, spec.Argv, spec.Cwd)
	}
	t := &terminal{started: st, runner: r, keys: newInput(r.session, st.pid), exit: newExit()}
	t.keys.tty = true
	t.screen = newOutlet(nil)
	go t.read()
	go t.exit.watch(r.session, st.pid, t.screen.isHolding)
	return t, nil
}

func (t *terminal) read() {
	err := pump(t.stream, t.exit, func(d *wire.DataEvent) { t.screen.put(d.PTY) })
	t.stream.Close()
	if err != nil {
		err = execError(t.runner.session.diagnose(err))
		t.exit.set(remoteexec.Outcome{}, err)
	}
	t.screen.end(err)
}

// PID gives the id in the sandbox.
func (t *terminal) PID() int { return t.pid }

// Read gives the terminal's output.
func (t *terminal) Read(p []byte) (int, error) { return t.screen.Read(p) }

// EndOutput gives what is queued and no more.
func (t *terminal) EndOutput() { t.screen.end(nil) }

// Write sends keys. It returns when the connection has taken them.
func (t *terminal) Write(ctx context.Context, p []byte) (int, error) {
	stop := context.AfterFunc(ctx, t.keys.stop)
	defer stop()
	n, err := t.keys.Write(p)
	if err != nil && ctx.Err() != nil {
		return n, fault.Aborted(ctx, fault.ExecCancelled, "write", "")
	}
	return n, err
}

// Resize gives the terminal a new size: one request.
func (t *terminal) Resize(ctx context.Context, rows, cols int) error {
	err := t.runner.session.use(ctx, func(c *wire.Client) error {
		return c.Call(ctx, wire.MethodUpdate, wire.UpdateRequest{
			Process: wire.ByPID(t.pid), PTY: &wire.PTY{Size: &wire.Size{Cols: uint32(cols), Rows: uint32(rows)}},
		}, nil)
	})
	if wire.CodeOf(err) == wire.CodeNotFound {
		return fault.Wrap(err, fault.ExecSessionExited, "resize", "", "the terminal's program has ended")
	}
	return execError(t.runner.session.diagnose(err))
}

// SignalGroup sends a signal to a process group.
func (t *terminal) SignalGroup(ctx context.Context, group int, sig string) error {
	return t.runner.session.signalGroup(ctx, group, sig)
}

// Wait gives how the program ended.
func (t *terminal) Wait() (remoteexec.Outcome, error) {
	<-t.exit.known
	return t.exit.outcome, t.exit.err
}

// Terminate ends all members of the session. Interactive shells ignore TERM, so
// they are hung up as well (TT-25).
func (t *terminal) Terminate(ctx context.Context, grace time.Duration) ([]int, error) {
	t.screen.stopHolding()
	return t.runner.tree(t.pid).end(ctx, "HUP TERM CONT", grace)
}

// HardKill sends KILL to all members of the session.
func (t *terminal) HardKill() {
	ctx, cancel := context.WithTimeout(context.Background(), hardKillTimeout)
	defer cancel()
	t.runner.tree(t.pid).kill(ctx)
}

// Close frees the terminal and ends a Read that waits.
func (t *terminal) Close() error {
	t.keys.abandon()
	t.screen.Close()
	t.cancel()
	return nil
}
