package cmd

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
)

// screen is the terminal that afield itself runs on.
type screen struct {
	in, out *os.File
	saved   *term.State
}

func openScreen(a *app) (*screen, error) {
	in, inOK := a.In.(*os.File)
	out, outOK := a.Out.(*os.File)
	if !inOK || !outOK {
		return nil, usage("afield term needs a terminal on standard input and output")
	}
	return &screen{in: in, out: out}, nil
}

// size gives rows and columns; those of a plain terminal where it does not know.
func (s *screen) size() (rows, cols int) {
	cols, rows, err := term.GetSize(int(s.out.Fd()))
	if err != nil || rows < 1 || cols < 1 {
		return 24, 80
	}
	return rows, cols
}

// raw makes the keys come as they are typed.
func (s *screen) raw() (err error) {
	s.saved, err = term.MakeRaw(int(s.in.Fd()))
	if err != nil {
		return fault.Wrap(err, fault.ExecSpawnFailed, "term", "", "cannot set the terminal to raw mode: %s", err)
	}
	return nil
}

// restore undoes raw. It may be called more than once.
func (s *screen) restore() {
	if s.saved != nil {
		_ = term.Restore(int(s.in.Fd()), s.saved)
	}
}

// connect joins the screen with t until the program ends or ctx does, ends
// what is left on the terminal, and gives the status.
func (a *app) connect(ctx context.Context, s *screen, t remoteexec.Terminal) error {
	stop := s.follow(ctx, t)
	defer stop()
	go io.Copy(t, s.in)
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		io.Copy(s.out, t)
	}()
	select {
	case <-shown: // the end of the program, and all that it wrote
	case <-ctx.Done():
	}
	closing := context.WithoutCancel(ctx)
	failed := t.Terminate(closing)
	<-shown
	if ctx.Err() != nil {
		return fault.Aborted(ctx, fault.ExecCancelled, "term", "")
	}
	outcome, err := t.Wait(closing)
	switch {
	case err != nil:
		return err
	case failed != nil:
		a.note("warning: %s", failed)
	}
	return childResult(outcome)
}

// follow tells t each new size of the screen.
func (s *screen) follow(ctx context.Context, t remoteexec.Terminal) (stop func()) {
	changed := make(chan os.Signal, 1)
	done := make(chan struct{})
	signal.Notify(changed, syscall.SIGWINCH)
	go func() {
		for {
			select {
			case <-changed:
				rows, cols := s.size()
				_ = t.Resize(ctx, rows, cols)
			case <-done:
				return
			}
		}
	}()
	return func() { signal.Stop(changed); close(done) }
}
