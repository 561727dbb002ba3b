package e2btest

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"

	"github.com/afield-dev/afield/pkg/backend/e2b/wire"
)

func processInput(c *call, req wire.SendInputRequest) (struct{}, error) {
	p, err := c.box.find(req.Process, false)
	if err != nil {
		return struct{}{}, err
	}
	return struct{}{}, p.write(req.Input)
}

// write writes to the input that is named; it waits while the pipe is full.
func (p *process) write(in wire.ProcessInput) error {
	p.inputMu.Lock()
	defer p.inputMu.Unlock()
	var w io.Writer
	data := in.Stdin
	switch {
	case in.PTY != nil && p.tty != nil:
		w, data = p.tty, in.PTY
	case in.Stdin != nil && p.stdin != nil:
		w = p.stdin
	case in.PTY == nil && in.Stdin == nil:
		return fail(wire.CodeUnimplemented, "invalid input type")
	default:
		return fail(wire.CodeInternal, "error writing to the process: stdin not enabled or closed")
	}
	if _, err := w.Write(data); err != nil {
		return fail(wire.CodeInternal, "error writing to the process: %s", err)
	}
	return nil
}

func processCloseStdin(c *call, req wire.CloseStdinRequest) (struct{}, error) {
	p, err := c.box.find(req.Process, false)
	if err != nil {
		return struct{}{}, err
	}
	if p.tty != nil {
		return struct{}{}, fail(wire.CodeUnknown, "cannot close stdin of a terminal: send the byte 0x04")
	}
	p.inputMu.Lock()
	defer p.inputMu.Unlock()
	if p.stdin != nil {
		p.stdin.Close()
		p.stdin = nil
	}
	return struct{}{}, nil
}

// processStreamInput takes messages until the client ends its request. One that
// begins with data is cut off without an answer.
func processStreamInput(c *call, in *wire.EnvelopeReader, send func(any) error) error {
	var p *process
	for {
		_, payload, err := in.Read()
		if err == io.EOF {
			return send(struct{}{})
		}
		if err != nil {
			return err
		}
		var msg wire.StreamInputRequest
		if err := json.Unmarshal(payload, &msg); err != nil {
			return fail(wire.CodeInvalidArgument, "unmarshal message: %s", err)
		}
		switch {
		case msg.Start != nil:
			if p, err = c.box.find(msg.Start.Process, false); err != nil {
				return err
			}
		case msg.Data != nil && p == nil:
			panic(http.ErrAbortHandler)
		case msg.Data != nil:
			if err := p.write(msg.Data.Input); err != nil {
				return err
			}
		}
	}
}

func atoi(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}
