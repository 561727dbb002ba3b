package provider

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
)

// servedProc is a started program or terminal that calls can name by its
// stream: until its tree is gone, not only until its own call has ended.
type servedProc struct {
	handle   remoteexec.Handle   // of exec.spawn
	terminal remoteexec.Terminal // of term.open
	stream   *Stream             // the call that started it
	ready    chan struct{}       // closed once one of them is set, or never will be
}

// isAboutProc reports whether a method names a program by its stream.
func isAboutProc(method string) bool {
	switch method {
	case "exec.terminate", "exec.wait", "term.resize", "term.foreground", "term.signal", "term.terminate":
		return true
	}
	return false
}

func noProcesses(method string) error {
	return fault.New(fault.BackendUnsupported, method, "", "this world has no processes")
}

func serveWhich(s *Stream, r remoteexec.Runtime) {
	var p whichParams
	err := decodeParams(s, &p)
	if err == nil && r == nil {
		err = noProcesses(s.Method)
	}
	if err != nil {
		s.Fail(err)
		return
	}
	path, err := r.LookPath(s.Context(), string(p.Command), p.decode())
	reply(s, whichResult{Raw(path)}, err)
}

// enter makes a program known by its stream, before it is started: a call about
// it may follow at once.
func (x *session) enter(s *Stream) *servedProc {
	p := &servedProc{stream: s, ready: make(chan struct{})}
	x.mu.Lock()
	x.procs[s.ID()] = p
	x.mu.Unlock()
	return p
}

func (x *session) leave(s *Stream) {
	x.mu.Lock()
	delete(x.procs, s.ID())
	x.mu.Unlock()
}

// spawn starts a program and carries its streams until its exit and the end of
// its output. CANCEL and the loss of the connection end the tree; the END of
// the call does not.
func (x *session) spawn(s *Stream, r remoteexec.Runtime) {
	var p StartParams
	if err := decodeParams(s, &p); err != nil {
		s.Fail(err)
		return
	}
	if r == nil {
		s.Fail(noProcesses(s.Method))
		return
	}
	served := x.enter(s)
	ctx, stop := s.untilCancelled()
	defer stop()
	h, err := r.Spawn(ctx, p.Spec())
	if err != nil {
		close(served.ready)
		x.leave(s)
		s.Fail(err)
		return
	}
	served.handle = h
	close(served.ready)
	carry(s, h, grace(p.GraceMs))
	x.untilQuiescent(s, h)
}

// untilQuiescent keeps the program known until its tree is gone or the
// connection ends, which ends the tree.
func (x *session) untilQuiescent(s *Stream, h remoteexec.Handle) {
	defer x.leave(s)
	stop := context.AfterFunc(s.conn.life, h.Terminate)
	defer stop()
	h.WaitForExit(context.Background())
}

func outputMode(word string) remoteexec.Output {
	if word == "pipe" {
		return remoteexec.Output{Mode: remoteexec.OutputPipe}
	}
	return remoteexec.Output{Mode: remoteexec.OutputInherit, To: io.Discard}
}

// carry moves content between the call and the program and ends the call.
func carry(s *Stream, h remoteexec.Handle, wait time.Duration) {
	<-h.Started()
	if pid := h.PID(); pid > 0 {
		s.Emit("started", map[string]any{"pid": pid})
	}
	go feed(s, h.Stdin())
	var outputs sync.WaitGroup
	outputs.Go(func() { drain(s, PortFirst, h.Pipe(remoteexec.Stdout)) })
	outputs.Go(func() { drain(s, PortSecond, h.Pipe(remoteexec.Stderr)) })
	report, err := h.Wait(context.Background())
	drained := make(chan struct{})
	go func() { outputs.Wait(); close(drained) }()
	if err == nil {
		sendExit(s, report.Outcome, drained, wait)
	}
	<-drained
	if err != nil {
		s.Fail(err)
		return
	}
	survivors := h.Survivors()
	s.Finish(spawnResult{encodeExit(report.Outcome), len(survivors) == 0, survivors, report.EnvDropped})
}

// sendExit tells how the program ended: behind its last output, or after the
// drain grace while a descendant or a slow consumer holds that up.
func sendExit(s *Stream, o remoteexec.Outcome, drained <-chan struct{}, wait time.Duration) {
	patience, cancel := remoteexec.Countdown(wait)
	defer cancel()
	select {
	case <-drained:
	case <-patience.Done():
	}
	facts := encodeExit(o)
	s.Emit("exit", map[string]any{"exitCode": facts.ExitCode, "signal": facts.Signal})
}

// feed copies the call's input to a program. A program that has closed its
// input refuses the rest.
func feed(s *Stream, w io.WriteCloser) {
	in := s.Reader(PortInput)
	if w == nil {
		in.Close()
		return
	}
	io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{in}, make([]byte, MaxData))
	in.Close()
	w.Close()
}

// drain copies a program's output to the call. A caller that wants no more
// gives the program a broken pipe.
func drain(s *Stream, p Port, r io.ReadCloser) {
	w := s.Writer(p)
	defer w.Close()
	if r == nil {
		return
	}
	defer r.Close()
	io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{r}, make([]byte, MaxData))
}

// openTerminal starts a program on a terminal and carries it until its end.
func (x *session) openTerminal(s *Stream, r remoteexec.Runtime) {
	var p StartParams
	if err := decodeParams(s, &p); err != nil {
		s.Fail(err)
		return
	}
	if r == nil {
		s.Fail(noProcesses(s.Method))
		return
	}
	served := x.enter(s)
	defer x.leave(s)
	t, err := r.OpenTerminal(s.Context(), p.TerminalSpec())
	served.terminal = t
	close(served.ready)
	if err != nil {
		s.Fail(err)
		return
	}
	carryTerminal(s, t, grace(p.GraceMs))
}

// carryTerminal ends the terminal when its call is cancelled or its program has
// ended.
func carryTerminal(s *Stream, t remoteexec.Terminal, wait time.Duration) {
	s.Emit("started", map[string]any{"pid": t.PID()})
	stop := context.AfterFunc(s.Context(), func() { t.Terminate(context.Background()) })
	defer stop()
	go func() {
		io.CopyBuffer(struct{ io.Writer }{t}, struct{ io.Reader }{s.Reader(PortInput)}, make([]byte, MaxData))
		s.Reader(PortInput).Close()
	}()
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		w := s.Writer(PortFirst)
		defer w.Close()
		io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{t}, make([]byte, MaxData))
	}()
	outcome, err := t.Wait(context.Background())
	if err == nil {
		sendExit(s, outcome, copied, wait)
	}
	<-copied
	ended := t.Terminate(context.Background())
	if err == nil {
		err = ended
	}
	reply(s, spawnResult{exitFacts: encodeExit(outcome), Quiescent: ended == nil}, err)
}

// serveProc answers a call about a program that a stream of this connection
// started.
func (x *session) serveProc(s *Stream) {
	var p ofParams
	if err := decodeParams(s, &p); err != nil {
		s.Fail(err)
		return
	}
	x.mu.Lock()
	proc := x.procs[p.Of]
	x.mu.Unlock()
	if proc == nil {
		s.Fail(unknownHandle(s.Method, p.Of))
		return
	}
	<-proc.ready
	switch {
	case proc.handle != nil:
		serveHandle(s, p, proc.handle)
	case proc.terminal != nil:
		serveTerminal(s, p, proc)
	default:
		s.Fail(unknownHandle(s.Method, p.Of))
	}
}

func unknownHandle(method string, of uint32) error {
	return fault.New(fault.ExecUnknownSession, method, "", "no program of stream %d is known any more", of)
}

func serveHandle(s *Stream, p ofParams, h remoteexec.Handle) {
	switch s.Method {
	case "exec.terminate":
		h.Terminate()
		s.Finish(struct{}{})
	case "exec.wait":
		ctx, cancel := bound(s.Context(), p.TimeoutMs)
		defer cancel()
		exited, err := h.WaitForExit(ctx)
		var survivors []int
		if !exited {
			survivors = h.Survivors()
		}
		reply(s, waitResult{exited, survivors}, err)
	default:
		s.Fail(unknownMethod(s.Method))
	}
}

// bound gives a context that ends after ms milliseconds; none without them.
func bound(ctx context.Context, ms int64) (context.Context, context.CancelFunc) {
	if ms < 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Duration(min(ms, remoteexec.MaxDelay.Milliseconds()))*time.Millisecond)
}

func serveTerminal(s *Stream, p ofParams, proc *servedProc) {
	ctx, t := s.Context(), proc.terminal
	switch s.Method {
	case "term.resize":
		reply(s, struct{}{}, t.Resize(ctx, p.Rows, p.Cols))
	case "term.foreground":
		f, err := t.Foreground(ctx)
		if f == nil {
			reply(s, nil, err)
			return
		}
		reply(s, groupResult{f.ProcessGroupID, f.InputWaiting}, err)
	case "term.signal":
		group, err := t.Signal(ctx, p.Signal)
		reply(s, groupResult{ProcessGroupID: group}, err)
	case "term.terminate":
		err := t.Terminate(ctx)
		proc.stream.out[PortFirst].hurry() // its output may find no reader any more
		reply(s, struct{}{}, err)
	default:
		s.Fail(unknownMethod(s.Method))
	}
}
