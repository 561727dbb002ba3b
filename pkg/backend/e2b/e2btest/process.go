package e2btest

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"

	"github.com/afield-dev/afield/pkg/backend/e2b/wire"
)

const (
	stopSignal     = syscall.SIGSTOP
	continueSignal = syscall.SIGCONT
	// remembered is how long the end of a program can still be asked for.
	remembered = 30 * time.Second
	// searchPath is the PATH of the daemon.
	searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// process is a program of a sandbox.
type process struct {
	pid    int
	config wire.ProcessConfig
	tag    *string
	cmd    *exec.Cmd
	stdin  io.WriteCloser // nil without
	tty    *os.File       // nil without
	outs   []*os.File     // read ends of the pipes

	inputMu sync.Mutex

	mu       sync.Mutex
	subs     map[*subscriber]bool
	ended    *wire.EndEvent
	signal   chan struct{} // closed when the daemon has sent a signal
	signaled bool
}

// subscriber is a client that reads a program's events. One that does not read
// holds up the program.
type subscriber struct {
	events chan wire.ProcessEvent
	gone   chan struct{}
}

// start runs a program as the daemon does: through a shell that sets
// priorities, without a session of its own unless it has a terminal.
func (c *call) start(req wire.StartRequest) (*process, error) {
	cwd := ""
	if req.Process.Cwd != nil {
		cwd = *req.Process.Cwd
	}
	dir, err := c.path(cwd)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil, fail(wire.CodeInvalidArgument, "cwd '%s' does not exist", dir)
	}
	args := append([]string{"-c", `exec nice -n 0 "$@"`, "--", req.Process.Cmd}, req.Process.Args...)
	cmd := exec.Command("/bin/sh", args...)
	cmd.Dir = dir
	cmd.Env = c.environment(req.Process.Envs)
	p := &process{
		config: req.Process, tag: req.Tag, cmd: cmd,
		subs: map[*subscriber]bool{}, signal: make(chan struct{}),
	}
	if req.PTY != nil {
		err = p.startTerminal(req.PTY)
	} else {
		err = p.startPipes(req.Stdin == nil || *req.Stdin)
	}
	if err != nil {
		return nil, startError(err)
	}
	p.pid = cmd.Process.Pid
	return p, nil
}

func startError(err error) error {
	if errors.Is(err, syscall.E2BIG) {
		return fail(wire.CodeInvalidArgument, "error starting process: argument list too long")
	}
	return fail(wire.CodeInvalidArgument, "error starting process: %s", err)
}

// environment is what a program starts with.
func (c *call) environment(extra map[string]string) []string {
	env := map[string]string{"PATH": searchPath, "HOME": c.user.home, "USER": c.user.name, "LOGNAME": c.user.name}
	for _, m := range []map[string]string{c.box.env, extra} {
		for k, v := range m {
			env[k] = v
		}
	}
	list := make([]string, 0, len(env))
	for k, v := range env {
		list = append(list, k+"="+v)
	}
	return list
}

func (p *process) startTerminal(req *wire.PTY) error {
	size := &pty.Winsize{}
	if req.Size != nil {
		size.Cols, size.Rows = uint16(req.Size.Cols), uint16(req.Size.Rows)
	}
	tty, err := pty.StartWithSize(p.cmd, size)
	p.tty = tty
	return err
}

func (p *process) startPipes(stdin bool) error {
	var child []*os.File
	defer func() {
		for _, f := range child {
			f.Close()
		}
	}()
	for _, out := range []*io.Writer{&p.cmd.Stdout, &p.cmd.Stderr} {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		*out = w
		child = append(child, w)
		p.outs = append(p.outs, r)
	}
	if stdin {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		p.cmd.Stdin, p.stdin = r, w
		child = append(child, r)
	}
	err := p.cmd.Start()
	if err != nil {
		for _, f := range p.outs {
			f.Close()
		}
	}
	return err
}

// run reads the output and waits for the end. The end waits for every holder
// of the pipes, except after a signal from the daemon.
func (b *Sandbox) run(p *process) {
	var readers sync.WaitGroup
	if p.tty != nil {
		readers.Go(func() { p.pump(p.tty, 16<<10, func(d []byte) wire.DataEvent { return wire.DataEvent{PTY: d} }) })
	} else {
		readers.Go(func() { p.pump(p.outs[0], 32<<10, func(d []byte) wire.DataEvent { return wire.DataEvent{Stdout: d} }) })
		readers.Go(func() { p.pump(p.outs[1], 32<<10, func(d []byte) wire.DataEvent { return wire.DataEvent{Stderr: d} }) })
	}
	drained := make(chan struct{})
	go func() { readers.Wait(); close(drained) }()
	select {
	case <-drained:
	case <-p.signal:
	}
	p.cmd.Wait()
	end := endOf(p.cmd.ProcessState)
	p.mu.Lock()
	p.ended = &end
	p.mu.Unlock()
	p.publish(wire.ProcessEvent{End: &end})
	for _, f := range p.outs {
		f.Close()
	}
	if p.tty != nil {
		p.tty.Close()
	}
	time.AfterFunc(remembered, func() { b.forget(p) })
}

// endOf gives the daemon's words for a wait status.
func endOf(st *os.ProcessState) wire.EndEvent {
	ws := st.Sys().(syscall.WaitStatus)
	end := wire.EndEvent{ExitCode: int32(st.ExitCode()), Exited: ws.Exited(), Status: st.String()}
	if !ws.Exited() || end.ExitCode != 0 {
		text := end.Status
		end.Error = &text
	}
	return end
}

// pump publishes output until every holder of the pipe has closed it.
func (p *process) pump(r *os.File, size int, data func([]byte) wire.DataEvent) {
	for {
		buf := make([]byte, size)
		n, err := r.Read(buf)
		if n > 0 {
			d := data(buf[:n])
			p.publish(wire.ProcessEvent{Data: &d})
		}
		if err != nil {
			return
		}
	}
}

// publish gives an event to all who listen, waiting for each; without
// listeners it is lost.
func (p *process) publish(ev wire.ProcessEvent) {
	p.mu.Lock()
	subs := make([]*subscriber, 0, len(p.subs))
	for s := range p.subs {
		subs = append(subs, s)
	}
	p.mu.Unlock()
	for _, s := range subs {
		select {
		case s.events <- ev:
		case <-s.gone:
		}
	}
}

func (p *process) subscribe() (*subscriber, *wire.EndEvent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &subscriber{events: make(chan wire.ProcessEvent), gone: make(chan struct{})}
	if p.ended == nil {
		p.subs[s] = true
	}
	return s, p.ended
}

func (p *process) unsubscribe(s *subscriber) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.subs, s)
	close(s.gone)
}

// forward sends a program's events to a client until the end.
func (c *call) forward(p *process, s *subscriber, ended *wire.EndEvent, send func(any) error) error {
	if err := send(wire.StartResponse{Event: wire.ProcessEvent{Start: &wire.StartEvent{PID: uint32(p.pid)}}}); err != nil {
		return err
	}
	if ended != nil {
		return send(wire.StartResponse{Event: wire.ProcessEvent{End: ended}})
	}
	tick := time.NewTicker(c.keepalive)
	defer tick.Stop()
	for {
		ev := wire.ProcessEvent{Keepalive: &struct{}{}}
		select {
		case ev = <-s.events:
		case <-tick.C:
		case <-c.ctx.Done():
			return context.Cause(c.ctx)
		}
		if err := send(wire.StartResponse{Event: ev}); err != nil || ev.End != nil {
			return err
		}
	}
}

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

func (p *process) running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended == nil
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

// find gives the process of a selector. A search by tag stops at the first
// process with another tag.
func (b *Sandbox) find(sel wire.Selector, alsoEnded bool) (*process, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var p *process
	switch {
	case sel.PID != nil:
		p = b.procs[int(*sel.PID)]
	case sel.Tag != nil:
		for _, q := range b.procs {
			if q.tag != nil {
				if *q.tag == *sel.Tag {
					p = q
				}
				break
			}
		}
	default:
		return nil, fail(wire.CodeUnimplemented, "invalid process selector")
	}
	if p == nil || !alsoEnded && !p.running() {
		return nil, fail(wire.CodeNotFound, "process not found")
	}
	return p, nil
}

func (b *Sandbox) forget(p *process) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.procs[p.pid] == p {
		delete(b.procs, p.pid)
	}
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

// signalAll sends a signal to every process of the sandbox. The caller holds
// b.mu.
func (b *Sandbox) signalAll(sig syscall.Signal) {
	if !b.ran {
		return
	}
	for _, pid := range b.members() {
		syscall.Kill(pid, sig)
	}
}

// killAll ends every process of the sandbox.
func (b *Sandbox) killAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.signalAll(syscall.SIGKILL)
}

// members lists the live processes whose environment names this sandbox, the
// only mark that a process which left its session still carries.
func (b *Sandbox) members() []int {
	var pids []int
	mark := "E2B_SANDBOX_ID=" + b.ID
	dirs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range dirs {
		env, err := os.ReadFile(f)
		if err != nil || !hasVariable(env, mark) {
			continue
		}
		if pid := atoi(filepath.Base(filepath.Dir(f))); pid > 1 && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Processes lists the live processes of the sandbox, whatever their session.
func (b *Sandbox) Processes() []int { return b.members() }

func hasVariable(env []byte, mark string) bool {
	for _, v := range strings.Split(string(env), "\x00") {
		if v == mark {
			return true
		}
	}
	return false
}
