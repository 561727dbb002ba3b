package provider

import (
	"context"
	"encoding/json"
	"io"
	"sync"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
)

// Processes is the caller's side of a world's processes: a driver, on which
// remoteexec.New builds collection, spill files, drain and waiting on our side.
// The kill ladder runs on the serving side.
type Processes struct {
	conn  *Conn
	world string
	facts remoteexec.Facts
}

var _ remoteexec.Driver = (*Processes)(nil)

// Facts are those that the serving side stated.
func (p *Processes) Facts() remoteexec.Facts { return p.facts }

// LookPath is one call.
func (p *Processes) LookPath(ctx context.Context, command string, env remoteexec.Env) (string, error) {
	s, err := p.conn.Call("exec.which", whichParams{p.world, Raw(command), encodeEnv(env)})
	if err != nil {
		return "", err
	}
	var r whichResult
	err = s.Result(ctx, &r)
	return string(r.Path), err
}

// Start is one call; it returns when the serving side has confirmed the start.
func (p *Processes) Start(ctx context.Context, spec remoteexec.StartSpec) (remoteexec.Proc, error) {
	params := SpawnParams(p.world, remoteexec.Spec{
		Argv: spec.Argv, Cwd: spec.Cwd, Env: remoteexec.Env{Set: spec.Set, Remove: spec.Remove}, Stdin: spec.Stdin, Grace: spec.Grace,
	})
	r, err := p.begin(ctx, "exec.spawn", params)
	if err != nil {
		return nil, err
	}
	return &proc{running: r, piped: params.Stdin == "pipe"}, nil
}

// StartTerminal does so on a new pseudo-terminal.
func (p *Processes) StartTerminal(ctx context.Context, spec remoteexec.TerminalSpec) (remoteexec.TerminalProc, error) {
	r, err := p.begin(ctx, "term.open", TerminalParams(p.world, spec))
	if err != nil {
		return nil, err
	}
	return &terminalProc{running: r, out: r.stream.Reader(PortFirst)}, nil
}

// begin starts a program and waits until it is known to run. Once the call is
// out ctx has no meaning: what arrives late is stopped by the core.
func (p *Processes) begin(ctx context.Context, method string, params StartParams) (*running, error) {
	if ctx.Err() != nil {
		return nil, fault.Aborted(ctx, fault.ExecCancelled, "spawn", "")
	}
	s, err := p.conn.Call(method, params)
	if fault.Is(err, fault.FSTooLarge) {
		return nil, fault.Wrap(err, fault.ExecArgumentsTooLong, "spawn", "", "arguments and environment together are too long: %s", err)
	}
	if err != nil {
		return nil, err
	}
	r := &running{stream: s, conn: p.conn, started: make(chan struct{}), exited: make(chan struct{})}
	go r.watch()
	<-r.started
	if r.pid == 0 {
		err := s.Result(context.Background(), nil)
		if err == nil {
			err = fault.New(fault.PluginProtocol, "spawn", "", "the provider ended %s without a start or an error", method)
		}
		return nil, err
	}
	return r, nil
}

// running is a program on the serving side.
type running struct {
	stream  *Stream
	conn    *Conn
	pid     int
	started chan struct{} // closed when pid is known, or never will be
	exited  chan struct{} // closed when the exit facts are known, or never will be
	outcome remoteexec.Outcome
	err     error
}

// watch takes the events of the call and, at its end, its result.
func (r *running) watch() {
	var starting, ending sync.Once
	known := false
	for e := range r.stream.Events() {
		switch e.Name {
		case "started":
			var f struct {
				PID int `json:"pid"`
			}
			json.Unmarshal(e.Fields, &f)
			starting.Do(func() { r.pid = f.PID; close(r.started) })
		case "exit":
			var f exitFacts
			json.Unmarshal(e.Fields, &f)
			if o, ok := f.decode(); ok && !known {
				known = true
				ending.Do(func() { r.outcome = o; close(r.exited) })
			}
		}
	}
	starting.Do(func() { close(r.started) })
	ending.Do(func() { r.outcome, r.err = r.last(); close(r.exited) })
}

// last gives the exit facts of the result.
func (r *running) last() (remoteexec.Outcome, error) {
	var result spawnResult
	if err := r.stream.Result(context.Background(), &result); err != nil {
		return remoteexec.Outcome{}, lostFate(err)
	}
	o, ok := result.exitFacts.decode()
	if !ok {
		return o, fault.New(fault.ExecTransportCorrupt, "wait", "", "the provider's exit report is neither a code nor a signal")
	}
	return o, nil
}

// lostFate names a lost connection as the process contract does (RS-7).
func lostFate(err error) error {
	switch fault.CodeOf(err) {
	case fault.PluginCrashed:
		return fault.Wrap(err, fault.ExecTransportLost, "wait", "", "%s", err).WithRetry(fault.RetryUnknown)
	case fault.PluginProtocol:
		return fault.Wrap(err, fault.ExecTransportCorrupt, "wait", "", "%s", err).WithRetry(fault.RetryUnknown)
	}
	return err
}

// settled reports whether the END of the call has said that nothing is left of
// the tree, so that nobody needs to be asked.
func (r *running) settled() bool {
	select {
	case <-r.stream.Ended():
		var s spawnResult
		return r.stream.Result(context.Background(), &s) == nil && s.Quiescent
	default:
		return false
	}
}

// PID is the id in the world.
func (r *running) PID() int { return r.pid }

// Wait gives the exit facts as soon as they are known.
func (r *running) Wait() (remoteexec.Outcome, error) {
	<-r.exited
	return r.outcome, r.err
}

// about makes a call about the program.
func (r *running) about(ctx context.Context, method string, p ofParams, result any) error {
	p.Of = r.stream.ID()
	s, err := r.conn.Call(method, p)
	if err != nil {
		return err
	}
	return s.Result(ctx, result)
}

// proc is a program with streams of its own.
type proc struct {
	*running
	piped bool
}

func (p *proc) Stdin() io.WriteCloser {
	if !p.piped {
		return nil
	}
	return p.stream.Writer(PortInput)
}

func (p *proc) Stdout() io.ReadCloser { return output{p.stream.Reader(PortFirst), p.stream, PortFirst} }
func (p *proc) Stderr() io.ReadCloser {
	return output{p.stream.Reader(PortSecond), p.stream, PortSecond}
}

// output names a lost connection as the process contract does. What has arrived
// by the time it is closed can still be read: the drain's end must not cost
// bytes that only waited for a turn of their reader.
type output struct {
	io.Reader
	stream *Stream
	port   Port
}

func (o output) Close() error { return o.stream.refuse(o.port) }

func (o output) Read(b []byte) (int, error) {
	n, err := o.Reader.Read(b)
	if err != nil && err != io.EOF {
		err = lostFate(err)
	}
	return n, err
}

// Terminate lets the serving side run its ladder and waits for its proof.
func (p *proc) Terminate(ctx context.Context, grace time.Duration) ([]int, error) {
	if p.settled() {
		return nil, nil
	}
	if err := p.about(ctx, "exec.terminate", ofParams{}, nil); err != nil {
		return nil, gone(err)
	}
	var r waitResult
	err := p.about(ctx, "exec.wait", ofParams{TimeoutMs: -1}, &r)
	if err == nil && r.Exited {
		return nil, nil
	}
	return r.Survivors, gone(err)
}

// gone: a program that the serving side has forgotten has left nothing behind,
// and a connection that has ended has taken its programs along.
func gone(err error) error {
	switch fault.CodeOf(err) {
	case fault.ExecUnknownSession:
		return nil
	}
	return err
}

// Signal is not part of the contract level: Terminate is used instead.
func (p *proc) Signal(context.Context, string) error {
	return fault.New(fault.BackendUnsupported, "signal", "", "the serving side ends trees by its own ladder")
}

// Members gives the root while the tree lives; the serving side knows the rest.
func (p *proc) Members(ctx context.Context) ([]int, error) {
	if p.settled() {
		return nil, nil
	}
	var r waitResult
	if err := p.about(ctx, "exec.wait", ofParams{}, &r); err != nil {
		return nil, gone(err)
	}
	switch {
	case r.Exited:
		return nil, nil
	case len(r.Survivors) > 0:
		return r.Survivors, nil
	}
	return []int{p.pid}, nil
}

// WaitQuiescent waits on the serving side.
func (p *proc) WaitQuiescent(ctx context.Context) error {
	var r waitResult
	if err := p.about(ctx, "exec.wait", ofParams{TimeoutMs: -1}, &r); err != nil {
		return gone(err)
	}
	if !r.Exited {
		return context.Cause(ctx)
	}
	return nil
}

// Release has nothing to free: the serving side forgets a tree that is gone.
func (p *proc) Release() {}
