package box

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/afield-dev/afield/pkg/backend/box/wire"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/script"
)

// proc is a program in an exec session. The session stays open after the exit
// report until Release: its end would end what the program has left behind.
type proc struct {
	*link
	session *wire.Session
	in      *stdin // nil with StdinIgnore
	stdout  *io.PipeReader
	stderr  *io.PipeReader

	done    chan struct{} // the exit report, or the loss
	outcome remoteexec.Outcome
	err     error
	// stopped: a terminate frame was sent.
	stopped atomic.Bool
	over    sync.Once
}

func newProc(l *link, s *wire.Session, mode remoteexec.StdinMode) *proc {
	p := &proc{link: l, session: s, done: make(chan struct{})}
	if mode == remoteexec.StdinIgnore {
		_ = s.CloseStdin() // a lost connection shows in Serve
	} else {
		p.in = &stdin{proc: p}
	}
	var out, err *io.PipeWriter
	p.stdout, out = io.Pipe()
	p.stderr, err = io.Pipe()
	go p.serve(out, err)
	return p
}

// serve moves the output until the exit report.
func (p *proc) serve(stdout, stderr *io.PipeWriter) {
	code, err := p.session.Serve(func(s wire.Stream, b []byte) {
		w := stdout
		if s == wire.Stderr {
			w = stderr
		}
		_, _ = w.Write(b) // a reader that has gone wants nothing
	})
	if err != nil {
		p.err = lost(err)
		p.session.Close()
	}
	p.outcome.ExitCode = code
	close(p.done)
	_ = stdout.CloseWithError(p.err)
	_ = stderr.CloseWithError(p.err)
}

// PID implements remoteexec.Proc.
func (p *proc) PID() int { return p.session.PID }

// Stdin implements remoteexec.Proc.
func (p *proc) Stdin() io.WriteCloser {
	if p.in == nil {
		return nil
	}
	return p.in
}

// Stdout implements remoteexec.Proc.
func (p *proc) Stdout() io.ReadCloser { return p.stdout }

// Stderr implements remoteexec.Proc.
func (p *proc) Stderr() io.ReadCloser { return p.stderr }

// Wait implements remoteexec.Proc. The code is what the server says; no signal
// is read out of it (OC-3).
func (p *proc) Wait() (remoteexec.Outcome, error) {
	<-p.done
	return p.outcome, p.err
}

func (p *proc) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Signal implements remoteexec.Proc: a frame to the whole tree, or, when the
// root has ended and the server no longer listens, a command in the box.
func (p *proc) Signal(ctx context.Context, name string) error {
	short := name[len("SIG"):]
	if !p.ended() {
		return p.session.Signal(short)
	}
	call := script.Kill(p.leader(), short)
	a, err := p.run(ctx, true, call)
	if err != nil {
		return protocolError(err)
	}
	delivery, err := script.ReadDelivery(a, call)
	if err == nil && delivery == script.Refused {
		return fault.New(fault.ExecSignalNotDelivered, "signal", "", "%s was not delivered", name)
	}
	return protocolError(err)
}

func (p *proc) leader() script.Started { return script.Started{PID: p.session.PID} }

// Members implements remoteexec.Proc by one request.
func (p *proc) Members(ctx context.Context) ([]int, error) {
	call := script.Members(p.leader())
	a, err := p.run(ctx, true, call)
	if err != nil {
		return nil, protocolError(err)
	}
	members, err := script.ReadMembers(a, call)
	return members, protocolError(err)
}

// Release implements remoteexec.Proc.
func (p *proc) Release() { p.over.Do(func() { go p.session.Close() }) }

// HardKill implements remoteexec.HardKiller: the end of the connection ends the
// tree.
func (p *proc) HardKill() { p.session.Close() }

// Bounds of a termination beyond the grace.
const (
	answerSlack = 5 * time.Second // for the exit report after the grace
	sweepSlack  = 3 * time.Second // for the tree after the connection's end
	lookEvery   = 50 * time.Millisecond
	lookLimit   = 15 * time.Second // for one look: a stalled one holds no shutdown up for long
)

// Terminate implements remoteexec.Terminator. A program that runs gets one
// terminate frame, and the server climbs the ladder. What the root has left
// behind is ended from inside the box. The end of the connection is the final
// sweep; the proof is a look in the box.
func (p *proc) Terminate(ctx context.Context, grace time.Duration) ([]int, error) {
	begun := time.Now()
	if err := p.stopRoot(ctx, grace); err != nil {
		return nil, err
	}
	if p.closing() {
		p.session.Close()
		return nil, nil
	}
	if !p.stopped.Load() {
		if err := p.Signal(ctx, "SIGTERM"); err != nil && !fault.Is(err, fault.ExecSignalNotDelivered) {
			return nil, err
		}
	}
	left, err := p.watch(ctx, grace-time.Since(begun))
	if err != nil || len(left) == 0 {
		return left, err
	}
	if err := p.Signal(ctx, "SIGKILL"); err != nil && !fault.Is(err, fault.ExecSignalNotDelivered) {
		return left, err
	}
	p.session.Close()
	return p.watch(ctx, max(grace, sweepSlack))
}

// stopRoot ends the root and waits for its exit report. A server that does not
// heed the request loses the connection.
func (p *proc) stopRoot(ctx context.Context, grace time.Duration) error {
	if p.ended() {
		return nil
	}
	p.stopped.Store(true)
	_ = p.session.Terminate(grace) // a lost connection shows in Serve
	timer := time.NewTimer(grace + answerSlack)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	p.session.Close()
	<-p.done
	return nil
}

// watch looks until nobody is left or patience ends.
func (p *proc) watch(ctx context.Context, patience time.Duration) ([]int, error) {
	for end := time.Now().Add(patience); ; {
		left, err := p.look(ctx)
		if err != nil || len(left) == 0 || !time.Now().Before(end) {
			return left, err
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return left, context.Cause(ctx)
		}
	}
}

func (p *proc) look(ctx context.Context) ([]int, error) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	return p.Members(ctx)
}

// stdin is the program's input. After a terminate frame nothing more is sent
// (SI-8).
type stdin struct {
	proc  *proc
	close sync.Once
}

// Write implements io.Writer. It returns when the connection has taken the
// bytes.
func (s *stdin) Write(b []byte) (int, error) {
	switch {
	case s.proc.ended():
		return 0, errExited
	case s.proc.stopped.Load():
		return len(b), nil
	}
	n, err := s.proc.session.Write(b)
	if err != nil {
		return n, lost(err)
	}
	return n, nil
}

// Close sends end-of-file.
func (s *stdin) Close() (err error) {
	s.close.Do(func() {
		if s.proc.ended() || s.proc.stopped.Load() {
			return
		}
		if cerr := s.proc.session.CloseStdin(); cerr != nil && !s.proc.ended() {
			err = lost(cerr)
		}
	})
	return err
}
