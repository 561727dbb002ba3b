package e2b

import (
	"context"
	"errors"
	"io"
	"sync"
	"syscall"

	"github.com/afield-dev/afield/pkg/backend/e2b/wire"
)

// inputPiece is the largest piece of input in one message.
const inputPiece = 64 << 10

// input is the standard input of a program, or the keyboard of a terminal: one
// request that stays open, opened by the first write. What goes through it is
// ordered and is not logged by the platform.
type input struct {
	session *session
	pid     int
	tty     bool

	mu     sync.Mutex // one write at a time
	send   func(any) error
	cancel context.CancelFunc
	eof    chan struct{} // closed to end the request
	done   chan struct{} // the request has ended
	err    error         // of the request; valid after done

	endMu sync.Mutex
	ended bool
}

func newInput(s *session, pid int) *input { return &input{session: s, pid: pid} }

// Write sends bytes and returns when the connection has taken them.
func (in *input) Write(p []byte) (int, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.isEnded() {
		return 0, io.ErrClosedPipe
	}
	if in.send == nil {
		if err := in.open(); err != nil {
			return 0, err
		}
	}
	sent := 0
	for sent < len(p) {
		piece := p[sent:min(len(p), sent+inputPiece)]
		data := wire.ProcessInput{Stdin: piece}
		if in.tty {
			data = wire.ProcessInput{PTY: piece}
		}
		if err := in.send(wire.StreamInputRequest{Data: &wire.InputData{Input: data}}); err != nil {
			return sent, in.failure(err)
		}
		sent += len(piece)
	}
	return sent, nil
}

// failure gives why a write failed: the request has ended with an answer.
func (in *input) failure(err error) error {
	<-in.done
	if in.err != nil {
		err = in.err
	}
	var e *wire.Error
	if errors.As(err, &e) && refused(err) == nil {
		return syscall.EPIPE // the program has ended or closed its input (SI-2)
	}
	return execError(in.session.diagnose(err))
}

// open begins the request. Its first message names the process: another one
// would cost the connection.
func (in *input) open() error {
	ctx, cancel := context.WithCancel(context.Background())
	c, err := in.session.dial(ctx)
	if err != nil {
		cancel()
		return execError(err)
	}
	in.endMu.Lock()
	if in.ended {
		in.endMu.Unlock()
		cancel()
		return io.ErrClosedPipe
	}
	in.cancel, in.eof, in.done = cancel, make(chan struct{}), make(chan struct{})
	in.endMu.Unlock()
	ready := make(chan func(any) error)
	go func() {
		defer close(in.done)
		in.err = c.Send(ctx, wire.MethodStreamInput, func(send func(any) error) error {
			select {
			case ready <- send:
			case <-ctx.Done():
				return ctx.Err()
			}
			<-in.eof
			return nil
		})
	}()
	select {
	case in.send = <-ready:
	case <-in.done:
		return in.failure(in.err)
	}
	if err := in.send(wire.StreamInputRequest{Start: &wire.InputStart{Process: wire.ByPID(in.pid)}}); err != nil {
		return in.failure(err)
	}
	return nil
}

// Close ends the input: the request first, so that all bytes have arrived, and
// then the program's own end of it. A write that waits fails.
func (in *input) Close() error {
	if !in.end() {
		return nil
	}
	if in.tty {
		in.stop()
		return nil
	}
	if in.done != nil {
		<-in.done
		if in.err != nil {
			return nil // the program has ended, or does not read any more
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), in.session.cfg.timeout)
	defer cancel()
	err := in.session.use(ctx, func(c *wire.Client) error {
		return c.Call(ctx, wire.MethodCloseStdin, wire.CloseStdinRequest{Process: wire.ByPID(in.pid)}, nil)
	})
	var e *wire.Error
	if errors.As(err, &e) && refused(err) == nil {
		return nil // it has ended already
	}
	return execError(in.session.diagnose(err))
}

// end marks the input as ended and lets the request finish. It reports whether
// this was the first time.
func (in *input) end() bool {
	in.endMu.Lock()
	defer in.endMu.Unlock()
	if in.ended {
		return false
	}
	in.ended = true
	if in.eof != nil {
		close(in.eof)
	}
	return true
}

func (in *input) isEnded() bool {
	in.endMu.Lock()
	defer in.endMu.Unlock()
	return in.ended
}

// stop breaks the request off.
func (in *input) stop() {
	in.endMu.Lock()
	defer in.endMu.Unlock()
	if in.cancel != nil {
		in.cancel()
	}
}

// abandon gives the input up without a word to the program.
func (in *input) abandon() {
	in.end()
	in.stop()
}
