package ssh

import (
	"context"
	"io"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
)

// proc is a program without a terminal.
type proc struct {
	tree
	session *session
	stdin   io.WriteCloser
	stdout  *output
	stderr  *output
	verdict *verdict // nil for a program with input: nobody tells who is left
}

var (
	_ remoteexec.Proc       = (*proc)(nil)
	_ remoteexec.Terminator = (*proc)(nil)
	_ remoteexec.Quiescer   = (*proc)(nil)
	_ remoteexec.HardKiller = (*proc)(nil)
)

// Stdin is the program's input, or nil.
func (p *proc) Stdin() io.WriteCloser {
	if p.stdin == nil {
		return nil
	}
	return p.stdin
}

// Stdout is the program's output.
func (p *proc) Stdout() io.ReadCloser { return p.stdout }

// Stderr is the program's error output.
func (p *proc) Stderr() io.ReadCloser { return p.stderr }

// Wait waits for the server's report of the program's end, and for the word of its
// watcher, which holds the error output until then.
func (p *proc) Wait() (remoteexec.Outcome, error) {
	outcome, err := p.session.outcome()
	if err == nil && p.verdict != nil {
		p.verdict.quiet(context.Background())
	}
	return outcome, err
}

// Members lists the live members of the tree. After the end of a program without
// input it needs no request: its watcher has told.
func (p *proc) Members(ctx context.Context) ([]int, error) {
	if p.quiet(ctx) {
		return nil, nil
	}
	return p.tree.Members(ctx)
}

// WaitQuiescent waits in the world until nothing of the tree lives, or knows it
// already.
func (p *proc) WaitQuiescent(ctx context.Context) error {
	if p.quiet(ctx) {
		return nil
	}
	return p.tree.WaitQuiescent(ctx)
}

// quiet reports whether the watcher has proven that nobody is left.
func (p *proc) quiet(ctx context.Context) bool {
	return p.verdict != nil && p.session.known() && p.verdict.quiet(ctx)
}

// endInput tells a server that does not know by itself that a program which has
// ended takes no more input; the watcher waits for that.
func (p *proc) endInput() {
	select {
	case <-p.session.exited:
		p.session.CloseWrite()
	case <-p.session.closed:
	}
}

// outcome is how the program of a session ended.
func (s *session) outcome() (remoteexec.Outcome, error) {
	select {
	case <-s.exited:
	case <-s.closed:
	}
	switch {
	case !s.known():
		return remoteexec.Outcome{}, s.hub.lost(s.conn)
	case s.signal != "":
		return remoteexec.Outcome{Signal: "SIG" + s.signal}, nil
	}
	return remoteexec.Outcome{ExitCode: s.status}, nil
}

// stdin is the input of a program. One goroutine hands the bytes on and then says
// that they end, because the library does not let both run at once; closing ends
// a write that waits.
type stdin struct{ *io.PipeWriter }

func newStdin(s *session) *stdin {
	r, w := io.Pipe()
	go func() {
		buf := make([]byte, 32<<10)
		for {
			n, err := r.Read(buf)
			if n > 0 {
				if _, failed := s.Write(buf[:n]); failed != nil {
					r.CloseWithError(fault.Wrap(failed, fault.ExecSessionExited, "write", "", "the program takes no more input"))
					return
				}
			}
			if err != nil {
				s.CloseWrite()
				return
			}
		}
	}()
	go func() {
		<-s.closed
		r.CloseWithError(fault.New(fault.ExecSessionExited, "write", "", "the program has ended"))
	}()
	return &stdin{w}
}
