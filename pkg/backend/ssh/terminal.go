package ssh

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/script"
)

// StartTerminal starts a program on a terminal of the server's, which has its
// size from the first instant.
func (p *processes) StartTerminal(ctx context.Context, spec remoteexec.TerminalSpec) (remoteexec.TerminalProc, error) {
	if err := p.check("terminal"); err != nil {
		return nil, err
	}
	c := script.Start(script.StartSpec{Argv: spec.Argv, Cwd: spec.Cwd, Set: spec.Env.Set, Remove: spec.Env.Remove,
		Input: script.Terminal, Grace: spec.Grace})
	s, err := p.world.sh.session(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil, fault.Aborted(ctx, fault.ExecCancelled, "terminal", "")
		}
		return nil, err
	}
	t := &terminal{tree: tree{world: p.world}, session: s}
	if err := t.begin(ctx, c, spec); err != nil {
		s.close()
		if ctx.Err() != nil {
			return nil, fault.Aborted(ctx, fault.ExecCancelled, "terminal", "")
		}
		return nil, p.failed(ctx, remoteexec.StartSpec{Argv: spec.Argv, Cwd: spec.Cwd}, s, err)
	}
	return t, nil
}

// terminal is a program on a terminal. Its session on the host has the jobs of a
// shell in groups of their own.
type terminal struct {
	tree
	session *session
	*output
}

var (
	_ remoteexec.TerminalProc = (*terminal)(nil)
	_ remoteexec.HardKiller   = (*terminal)(nil)
)

// begin asks for the terminal and the program and reads up to the start report.
// What comes before the program's input is sent only when the echo is off.
func (t *terminal) begin(ctx context.Context, c script.Call, spec remoteexec.TerminalSpec) error {
	s := t.session
	defer context.AfterFunc(ctx, s.close)()
	limit := time.AfterFunc(handshakeLimit, s.close)
	defer limit.Stop()
	term := first(spec.Env.Set["TERM"], "xterm")
	if _, err := s.SendRequest("pty-req", false, ssh.Marshal(struct {
		Term                      string
		Cols, Rows, Width, Height uint32
		Modes                     string
	}{term, uint32(spec.Cols), uint32(spec.Rows), 0, 0, "\x00"})); err != nil {
		return err
	}
	if err := t.world.sh.send(s, c); err != nil {
		return err
	}
	go io.Copy(io.Discard, s.Stderr())
	a := script.NewAnswer(s)
	started, err := script.ReadStarted(a, c)
	if err == nil && started.WantsInput {
		if err = send(s, c.Input); err == nil {
			started, err = script.ReadStarted(a, c)
		}
	}
	if err != nil {
		return err
	}
	t.started = started
	t.output = (&outputs{s: s}).add(a, "", nil)
	return nil
}

// EndOutput bounds the output after the program's end: what has arrived is read,
// then it ends, also while another process holds the terminal.
func (t *terminal) EndOutput() { t.session.close() }

// Write sends bytes exactly.
func (t *terminal) Write(ctx context.Context, p []byte) (int, error) {
	type written struct {
		n   int
		err error
	}
	got := make(chan written, 1)
	q := append([]byte(nil), p...)
	go func() {
		n, err := t.session.Write(q)
		got <- written{n, err}
	}()
	select {
	case w := <-got:
		if w.err != nil {
			w.err = fault.Wrap(w.err, fault.ExecSessionExited, "write", "", "the terminal has ended")
		}
		return w.n, w.err
	case <-ctx.Done():
		return 0, fault.Aborted(ctx, fault.ExecCancelled, "write", "")
	}
}

// Resize changes the size; the kernel tells the foreground group.
func (t *terminal) Resize(_ context.Context, rows, cols int) error {
	_, err := t.session.SendRequest("window-change", false,
		ssh.Marshal(struct{ Cols, Rows, Width, Height uint32 }{uint32(cols), uint32(rows), 0, 0}))
	if err != nil {
		return fault.Wrap(err, fault.ExecSessionExited, "resize", "", "the terminal has ended")
	}
	return nil
}

// Foreground looks at the host's /proc.
func (t *terminal) Foreground(ctx context.Context) (*remoteexec.Foreground, error) {
	c := script.Foreground(t.started)
	var f remoteexec.Foreground
	err := t.world.sh.ask(ctx, c, func(a *script.Answer) (err error) {
		f.ProcessGroupID, f.InputWaiting, err = script.ReadForeground(a, c)
		return err
	})
	if err != nil || f.ProcessGroupID == 0 {
		return nil, err
	}
	return &f, nil
}

// SignalGroup signals one group of the terminal's session.
func (t *terminal) SignalGroup(ctx context.Context, group int, name string) error {
	if group <= 1 {
		return fault.New(fault.ExecSignalNotDelivered, "signal", "", "process group %d is never signalled", group)
	}
	c := script.SignalGroup(t.started, group, strings.TrimPrefix(name, "SIG"))
	var d script.Delivery
	err := t.world.sh.ask(ctx, c, func(a *script.Answer) (err error) {
		d, err = script.ReadDelivery(a, c)
		return err
	})
	if err == nil && d != script.Delivered {
		err = fault.New(fault.ExecSignalNotDelivered, "signal", "", "%s could not be delivered to process group %d", name, group)
	}
	return err
}

// Wait waits for the end of the program.
func (t *terminal) Wait() (remoteexec.Outcome, error) { return t.session.outcome() }

// Close frees the terminal.
func (t *terminal) Close() error {
	t.output.Close()
	t.session.close()
	return nil
}

// Read gives the terminal's output. After its end no error is made of how the
// session closed.
func (t *terminal) Read(p []byte) (int, error) {
	n, err := t.output.Read(p)
	if errors.Is(err, io.ErrClosedPipe) {
		err = io.EOF
	}
	return n, err
}
