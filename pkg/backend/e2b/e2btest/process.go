package e2btest

import (
	"errors"
	"io"
	"os"
	"os/exec"
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

func (p *process) running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended == nil
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
