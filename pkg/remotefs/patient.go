package remotefs

import (
	"context"
	"io"
)

// patient reads a source that may block, such as a pipe, in a goroutine of its
// own, so that the end of ctx is seen at once. Two buffers go back and forth.
type patient struct {
	ctx   context.Context
	stop  context.CancelFunc
	free  chan []byte
	full  chan chunk
	now   chunk
	taken int
}

type chunk struct {
	buf []byte // its whole room
	n   int
	err error
}

// newPatient starts reading src. The goroutine ends when src has ended or
// failed, or ctx has ended or stop was called and the read under way returns.
func newPatient(ctx context.Context, src io.Reader) *patient {
	ctx, stop := context.WithCancel(ctx)
	p := &patient{ctx: ctx, stop: stop, free: make(chan []byte, 2), full: make(chan chunk, 2)}
	p.free <- make([]byte, streamBuffer)
	p.free <- make([]byte, streamBuffer)
	go p.run(src)
	return p
}

func (p *patient) run(src io.Reader) {
	for {
		select {
		case buf := <-p.free:
			n, err := src.Read(buf)
			p.full <- chunk{buf: buf, n: n, err: err}
			if err != nil {
				return
			}
		case <-p.ctx.Done():
			return
		}
	}
}

func (p *patient) Read(out []byte) (int, error) {
	for p.taken == p.now.n {
		if p.now.err != nil {
			return 0, p.now.err
		}
		if p.now.buf != nil {
			p.free <- p.now.buf
		}
		select {
		case p.now = <-p.full:
			p.taken = 0
		case <-p.ctx.Done():
			p.now, p.taken = chunk{err: p.ctx.Err()}, 0
		}
	}
	n := copy(out, p.now.buf[p.taken:p.now.n])
	p.taken += n
	return n, nil
}
