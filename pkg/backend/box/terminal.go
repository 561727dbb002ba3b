package box

import (
	"context"
	"errors"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/script"
)

// terminal is a program on a terminal of the box. All output comes as one
// stream, and ends with the exit report.
type terminal struct{ *proc }

func newTerminal(p *proc) *terminal {
	go func() { _, _ = p.stderr.Read(nil) }()
	return &terminal{p}
}

// Read implements remoteexec.TerminalProc.
func (t *terminal) Read(b []byte) (int, error) { return t.stdout.Read(b) }

// EndOutput implements remoteexec.TerminalProc. The output has ended when the
// exit report is there.
func (t *terminal) EndOutput() {}

// Write implements remoteexec.TerminalProc. It returns soon after ctx ends; the
// bytes may then still arrive.
func (t *terminal) Write(ctx context.Context, b []byte) (int, error) {
	if t.ended() {
		return 0, errExited
	}
	if ctx.Err() != nil {
		return 0, aborted(ctx, "write")
	}
	done := make(chan error, 1)
	content := append([]byte(nil), b...)
	go func() {
		_, err := t.session.Write(content)
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			return 0, lost(err)
		}
		return len(b), nil
	case <-ctx.Done():
		return 0, aborted(ctx, "write")
	}
}

// Resize implements remoteexec.TerminalProc.
func (t *terminal) Resize(_ context.Context, rows, cols int) error {
	if err := t.session.Resize(rows, cols); err != nil {
		return lost(err)
	}
	return nil
}

// Foreground implements remoteexec.TerminalProc by one request.
func (t *terminal) Foreground(ctx context.Context) (*remoteexec.Foreground, error) {
	call := script.Foreground(t.leader())
	a, err := t.run(ctx, true, call)
	if err != nil {
		return nil, protocolError(err)
	}
	group, reads, err := script.ReadForeground(a, call)
	if err != nil || group == 0 {
		return nil, protocolError(err)
	}
	return &remoteexec.Foreground{ProcessGroupID: group, InputWaiting: reads}, nil
}

// SignalGroup implements remoteexec.TerminalProc. Only the kill's own answer
// proves the delivery (TT-20).
func (t *terminal) SignalGroup(ctx context.Context, group int, name string) error {
	call := script.SignalGroup(t.leader(), group, name[len("SIG"):])
	a, err := t.run(ctx, false, call)
	if err != nil {
		return protocolError(err)
	}
	delivery, err := script.ReadDelivery(a, call)
	if err == nil && delivery != script.Delivered {
		return notDelivered(name, group)
	}
	return protocolError(err)
}

func notDelivered(name string, group int) error {
	return fault.New(fault.ExecSignalNotDelivered, "signal", "", "%s was not delivered to process group %d", name, group)
}

// SignalForeground implements remoteexec.ForegroundSignaller.
func (t *terminal) SignalForeground(ctx context.Context, name string) (int, error) {
	call := script.SignalForeground(t.leader(), name[len("SIG"):])
	a, err := t.run(ctx, false, call)
	if err != nil {
		return 0, protocolError(err)
	}
	group, delivery, err := script.ReadSignalForeground(a, call)
	switch {
	case err != nil:
		return 0, protocolError(err)
	case group == 0:
		return 0, fault.New(fault.ExecNoForeground, "signal", "", "the terminal has no foreground process group")
	case delivery == script.Own:
		return 0, fault.New(fault.ExecNoForeground, "signal", "", "only the terminal's own program is in front; close the terminal to end it")
	case delivery != script.Delivered:
		return 0, notDelivered(name, group)
	}
	return group, nil
}

// Terminate implements remoteexec.TerminalProc.
func (t *terminal) Terminate(ctx context.Context, grace time.Duration) ([]int, error) {
	left, err := t.proc.Terminate(ctx, grace)
	if fault.Is(err, fault.BackendWorldGone) {
		return nil, nil
	}
	return left, err
}

// Close implements remoteexec.TerminalProc.
func (t *terminal) Close() error {
	t.session.Close()
	return errors.Join(t.stdout.Close(), t.stderr.Close())
}
