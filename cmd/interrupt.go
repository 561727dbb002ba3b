package cmd

import (
	"context"
	"io"
	"os"

	"github.com/afield-dev/afield/pkg/fault"
)

// newOutput gives stdout as a writer that stops waiting for a slow reader when
// ctx ends.
func (a *app) newOutput(ctx context.Context) io.Writer {
	enlargePipe(a.Out)
	patient := &output{ctx: ctx, w: a.Out}
	if f, ok := a.Out.(*os.File); ok {
		return directOutput(ctx, f, patient)
	}
	return patient
}

// output writes from a goroutine of its own, because a write to a pipe that
// nobody reads cannot be cancelled. After a cancelled write nothing may be
// written any more.
type output struct {
	ctx  context.Context
	w    io.Writer
	in   chan []byte
	done chan written
}

type written struct {
	n   int
	err error
}

func (o *output) Write(p []byte) (int, error) {
	if o.in == nil {
		o.in, o.done = make(chan []byte), make(chan written, 1)
		go o.serve()
	}
	select {
	case o.in <- p:
	case <-o.ctx.Done():
		return 0, outputAborted(o.ctx)
	}
	select {
	case w := <-o.done:
		return w.n, w.err
	case <-o.ctx.Done():
		return 0, outputAborted(o.ctx)
	}
}

func outputAborted(ctx context.Context) error {
	return fault.Aborted(ctx, fault.FSAborted, "output", "")
}

// serve writes until the context ends.
func (o *output) serve() {
	for {
		select {
		case p := <-o.in:
			n, err := o.w.Write(p)
			o.done <- written{n, err}
		case <-o.ctx.Done():
			return
		}
	}
}

// newInput gives r as a reader that stops waiting for input when ctx ends.
func newInput(ctx context.Context, r io.Reader) (io.Reader, error) {
	f, ok := r.(*os.File)
	if !ok {
		return r, nil
	}
	enlargePipe(f)
	return newInterruptible(ctx, f)
}
