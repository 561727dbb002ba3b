package keeper

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/afield-dev/afield/pkg/provider"
	"github.com/afield-dev/afield/pkg/remoteexec"
)

// OpenTerminal starts a program on a terminal that the keeper holds.
func (c *Client) OpenTerminal(ctx context.Context, spec remoteexec.TerminalSpec, h Hold) (Info, error) {
	return c.hold(ctx, "term.open", provider.TerminalParams(worldID, spec), h)
}

// StartJob starts a program that the keeper holds.
func (c *Client) StartJob(ctx context.Context, spec remoteexec.Spec, h Hold) (Info, error) {
	return c.hold(ctx, "exec.spawn", provider.SpawnParams(worldID, spec), h)
}

func (c *Client) hold(ctx context.Context, method string, p provider.StartParams, h Hold) (Info, error) {
	var i Info
	body, err := json.Marshal(h)
	if err != nil {
		return i, err
	}
	p.Hold = body
	return i, c.call(ctx, method, p, &i)
}

// Held lists what the keeper holds.
func (c *Client) Held(ctx context.Context) ([]Info, error) {
	var list heldList
	err := c.call(ctx, "held.list", struct{}{}, &list)
	return list.Held, err
}

// ReadRequest asks for a part of an output.
type ReadRequest struct {
	ID     string
	Stream remoteexec.Stream // 0 = the only one, or standard output
	From   int64
	Max    int64         // bytes; 0 = all that is kept
	Wait   time.Duration // for bytes at From
}

// Read reads a part of an output. It may be repeated: nothing is consumed.
func (c *Client) Read(ctx context.Context, r ReadRequest) (ReadResult, []byte, error) {
	var out ReadResult
	s, err := c.conn.Call("held.read", heldParams{ID: r.ID, Port: int(r.Stream), From: r.From, Max: r.Max, WaitMs: r.Wait.Milliseconds()})
	if err != nil {
		return out, nil, err
	}
	stop := context.AfterFunc(ctx, func() { s.Cancel() })
	defer stop()
	b, lost := io.ReadAll(s.Reader(provider.PortFirst))
	if err := s.Result(ctx, &out); err != nil {
		return out, nil, err
	}
	return out, b, lost
}

// Write gives bytes to a program's input and, with eof, ends it. It returns when
// the world has taken them.
func (c *Client) Write(ctx context.Context, id string, content io.Reader, eof bool) (int, error) {
	s, err := c.conn.Call("held.write", heldParams{ID: id, EOF: eof})
	if err != nil {
		return 0, err
	}
	w := s.Writer(provider.PortInput)
	if _, err := io.Copy(w, content); err == nil {
		w.Close()
	} else {
		s.Cancel()
	}
	var r struct{ Bytes int }
	err = s.Result(ctx, &r)
	return r.Bytes, err
}

// about makes a call about one held program.
func (c *Client) about(ctx context.Context, method string, p heldParams, result any) error {
	return c.call(ctx, "held."+method, p, result)
}

// Wait waits for the end of a program, at most as long as asked; 0 = as long as
// ctx allows.
func (c *Client) Wait(ctx context.Context, id string, patience time.Duration) (Info, error) {
	var i Info
	err := c.about(ctx, "wait", heldParams{ID: id, WaitMs: patience.Milliseconds()}, &i)
	return i, err
}

// Drop forgets a program that has ended.
func (c *Client) Drop(ctx context.Context, id string) error {
	return c.about(ctx, "drop", heldParams{ID: id}, nil)
}

// StopJob ends a job and what it left; false when it had ended or was being
// ended (SH-11).
func (c *Client) StopJob(ctx context.Context, id string) (bool, error) {
	var r stopResult
	err := c.about(ctx, "stop", heldParams{ID: id}, &r)
	return r.Stopped, err
}

// CloseTerminal ends a terminal with all of its session and forgets it.
func (c *Client) CloseTerminal(ctx context.Context, id string) error {
	return c.about(ctx, "close", heldParams{ID: id}, nil)
}

// Resize sets the size of a terminal.
func (c *Client) Resize(ctx context.Context, id string, rows, cols int) error {
	return c.about(ctx, "resize", heldParams{ID: id, Rows: rows, Cols: cols}, nil)
}

// Inspect gives the foreground group of a terminal, nil where there is none.
func (c *Client) Inspect(ctx context.Context, id string) (*remoteexec.Foreground, error) {
	var g *groupResult
	if err := c.about(ctx, "inspect", heldParams{ID: id}, &g); err != nil || g == nil {
		return nil, err
	}
	return &remoteexec.Foreground{ProcessGroupID: g.ProcessGroupID, InputWaiting: g.InputWaiting}, nil
}

// Signal sends a signal to the foreground group of a terminal, or to the group
// of a job, and gives its id.
func (c *Client) Signal(ctx context.Context, id, name string) (int, error) {
	var g groupResult
	err := c.about(ctx, "signal", heldParams{ID: id, Signal: name}, &g)
	return g.ProcessGroupID, err
}

// Screen gives what a terminal shows.
func (c *Client) Screen(ctx context.Context, id string) (Screen, error) {
	var s Screen
	err := c.about(ctx, "screen", heldParams{ID: id}, &s)
	return s, err
}

// Run runs one command in a persistent shell.
func (c *Client) Run(ctx context.Context, id, command string, limit time.Duration) (RunResult, error) {
	var r RunResult
	err := c.about(ctx, "run", heldParams{ID: id, Command: command, WaitMs: limit.Milliseconds()}, &r)
	return r, err
}

// Attachment is the live connection with a held terminal.
type Attachment struct {
	stream *provider.Stream
	// Lossy is closed when output was lost: the oldest was not read in time.
	Lossy <-chan struct{}
}

// Attach connects with a held program: its output from an offset on, a negative
// one counted from the end, and with input its input.
func (c *Client) Attach(ctx context.Context, id string, from int64, input bool) (*Attachment, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	s, err := c.conn.Call("held.attach", heldParams{ID: id, From: from, Input: input})
	if err != nil {
		return nil, err
	}
	lossy := make(chan struct{})
	go func() {
		told := false
		for e := range s.Events() {
			if e.Name == "lossy" && !told {
				told = true
				close(lossy)
			}
		}
	}()
	return &Attachment{stream: s, Lossy: lossy}, nil
}

// Read gives the output; io.EOF is the end of the program or of the attachment.
func (a *Attachment) Read(p []byte) (int, error) { return a.stream.Reader(provider.PortFirst).Read(p) }

// Write gives bytes to the input.
func (a *Attachment) Write(p []byte) (int, error) {
	return a.stream.Writer(provider.PortInput).Write(p)
}

// Detach leaves the program alone; Result then says how it is.
func (a *Attachment) Detach() { a.stream.Cancel() }

// Result says how the program is at the end of the attachment.
func (a *Attachment) Result(ctx context.Context) (Info, error) {
	var i Info
	err := a.stream.Result(ctx, &i)
	return i, err
}
