package e2btest

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/creack/pty"

	"github.com/afield-dev/afield/pkg/backend/e2b/wire"
)

func processStart(c *call, in *wire.EnvelopeReader, send func(any) error) error {
	var req wire.StartRequest
	if err := readOne(in, &req); err != nil {
		return err
	}
	p, err := c.start(req)
	if err != nil {
		return err
	}
	s, _ := p.subscribe()
	defer p.unsubscribe(s)
	c.box.mu.Lock()
	c.box.procs[p.pid] = p
	c.box.ran = true
	c.box.mu.Unlock()
	go c.box.run(p)
	if c.timeout == 0 {
		return c.forward(p, s, nil, send)
	}
	ctx, cancel := context.WithTimeout(c.ctx, c.timeout)
	defer cancel()
	// The deadline also fires when the client has gone.
	time.AfterFunc(c.timeout, func() {
		if p.running() {
			p.cmd.Process.Kill()
		}
	})
	timed := *c
	timed.ctx = ctx
	err = timed.forward(p, s, nil, send)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fail(wire.CodeDeadlineExceeded, "the operation timed out")
	}
	return err
}

func processConnect(c *call, in *wire.EnvelopeReader, send func(any) error) error {
	var req wire.ConnectRequest
	if err := readOne(in, &req); err != nil {
		return err
	}
	p, err := c.box.find(req.Process, true)
	if err != nil {
		return err
	}
	s, ended := p.subscribe()
	defer p.unsubscribe(s)
	return c.forward(p, s, ended, send)
}

func processList(c *call, _ struct{}) (wire.ListResponse, error) {
	c.box.mu.Lock()
	defer c.box.mu.Unlock()
	var res wire.ListResponse
	for _, p := range c.box.procs {
		if p.running() {
			res.Processes = append(res.Processes, wire.ProcessInfo{Config: p.config, PID: uint32(p.pid), Tag: p.tag})
		}
	}
	return res, nil
}

func processSignal(c *call, req wire.SendSignalRequest) (struct{}, error) {
	p, err := c.box.find(req.Process, false)
	if err != nil {
		return struct{}{}, err
	}
	if req.Signal != wire.SignalKill && req.Signal != wire.SignalTerm {
		return struct{}{}, fail(wire.CodeUnimplemented, "signal %d is not supported", req.Signal)
	}
	if err := p.cmd.Process.Signal(syscall.Signal(req.Signal)); err != nil {
		return struct{}{}, fail(wire.CodeInternal, "error sending signal: %s", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.signaled {
		p.signaled = true
		close(p.signal)
	}
	return struct{}{}, nil
}

func processUpdate(c *call, req wire.UpdateRequest) (struct{}, error) {
	p, err := c.box.find(req.Process, false)
	if err != nil || req.PTY == nil || req.PTY.Size == nil {
		return struct{}{}, err
	}
	if p.tty == nil {
		return struct{}{}, fail(wire.CodeInternal, "error resizing tty: tty not assigned to process")
	}
	size := &pty.Winsize{Cols: uint16(req.PTY.Size.Cols), Rows: uint16(req.PTY.Size.Rows)}
	if err := pty.Setsize(p.tty, size); err != nil {
		return struct{}{}, fail(wire.CodeInternal, "error resizing tty: %s", err)
	}
	return struct{}{}, nil
}
