package provider

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
)

// terminalProc is a program on a terminal of the serving side.
type terminalProc struct {
	*running
	out io.ReadCloser
}

// Read gives the terminal's output.
func (t *terminalProc) Read(p []byte) (int, error) {
	n, err := t.out.Read(p)
	if err != nil && err != io.EOF {
		err = lostFate(err)
	}
	return n, err
}

// EndOutput has nothing to do: the serving side ends the output.
func (t *terminalProc) EndOutput() {}

// Write waits for credit, or until ctx ends.
func (t *terminalProc) Write(ctx context.Context, p []byte) (int, error) {
	type written struct {
		n   int
		err error
	}
	done := make(chan written, 1)
	go func() {
		n, err := t.stream.Writer(PortInput).Write(p)
		done <- written{n, err}
	}()
	select {
	case w := <-done:
		if errors.Is(w.err, io.ErrClosedPipe) {
			w.err = fault.Wrap(w.err, fault.ExecSessionExited, "write", "", "the terminal's program has ended")
		}
		return w.n, w.err
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// Resize is one call.
func (t *terminalProc) Resize(ctx context.Context, rows, cols int) error {
	return ended(t.about(ctx, "term.resize", ofParams{Rows: rows, Cols: cols}, nil))
}

// ended names a terminal that the serving side has forgotten.
func ended(err error) error {
	if fault.Is(err, fault.ExecUnknownSession) {
		return fault.Wrap(err, fault.ExecSessionExited, "terminal", "", "the terminal's program has ended")
	}
	return err
}

// Foreground is one call.
func (t *terminalProc) Foreground(ctx context.Context) (*remoteexec.Foreground, error) {
	var raw json.RawMessage
	if err := t.about(ctx, "term.foreground", ofParams{}, &raw); err != nil {
		return nil, gone(err)
	}
	var g *groupResult
	if err := json.Unmarshal(raw, &g); err != nil || g == nil {
		return nil, nil
	}
	return &remoteexec.Foreground{ProcessGroupID: g.ProcessGroupID, InputWaiting: g.InputWaiting}, nil
}

// SignalForeground inspects and signals in one call.
func (t *terminalProc) SignalForeground(ctx context.Context, name string) (int, error) {
	var g groupResult
	err := t.about(ctx, "term.signal", ofParams{Signal: name}, &g)
	if fault.Is(err, fault.ExecUnknownSession) {
		err = fault.Wrap(err, fault.ExecNoForeground, "signal", "", "the terminal has no foreground group")
	}
	return g.ProcessGroupID, err
}

// SignalGroup is not part of the protocol: SignalForeground is used instead.
func (t *terminalProc) SignalGroup(context.Context, int, string) error {
	return fault.New(fault.BackendUnsupported, "signal", "", "the serving side signals the foreground group it finds")
}

// Terminate ends the session on the serving side.
func (t *terminalProc) Terminate(ctx context.Context, _ time.Duration) ([]int, error) {
	return nil, gone(t.about(ctx, "term.terminate", ofParams{}, nil))
}

// Close gives the terminal up.
func (t *terminalProc) Close() error {
	select {
	case <-t.stream.Ended():
	default:
		t.stream.Cancel()
	}
	return t.out.Close()
}
