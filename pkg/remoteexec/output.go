package remoteexec

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// copyBuffer is the buffer of a copied stream.
const copyBuffer = 128 << 10

// output is one output stream of a handle. It exists before the program does.
type output struct {
	spec      Output
	collected *Collected // of OutputCollect
	spill     *spill     // of OutputCollect, if asked for
	pipe      *latePipe  // of OutputPipe
	count     atomic.Int64
	counted   bool // bytes come through our hands

	src io.ReadCloser // set by begin; nil = the child has a descriptor itself
	// ended is closed when the provider reads no more from src; it is closed
	// from the start for what the provider does not read.
	ended chan struct{}
	err   error // why the stream ended early; valid after ended
	cut   bool  // the drain ran out
}

func newOutput(spec Output, name string, dir *spillDir) *output {
	o := &output{spec: spec, ended: make(chan struct{})}
	switch spec.Mode {
	case OutputCollect:
		o.collected = NewCollected(spec.MaxBytes)
		if spec.SpillMax > 0 {
			o.spill = newSpill(dir, name, spec.SpillMax)
		}
	case OutputPipe:
		o.pipe = newLatePipe()
	}
	return o
}

// begin connects the stream of the started program. overflow is called when a
// transport that cannot be paused has brought more than anybody reads.
func (o *output) begin(src io.ReadCloser, pauses bool, overflow func()) {
	o.src = src
	switch {
	case src == nil:
		o.abandon(nil)
	case o.spec.Mode == OutputCollect:
		o.counted = true
		go o.run(func() error { return o.collect() })
	case o.spec.Mode == OutputInherit && pauses:
		o.counted = true
		go o.run(func() error { return copyStream(o.spec.To, src, &o.count) })
	case o.spec.Mode == OutputInherit:
		o.counted = true
		go o.run(func() error { return o.copyQueued(overflow) })
	case pauses:
		o.pipe.open(src, src)
		close(o.ended)
	default:
		queue := newBacklog()
		o.pipe.open(queue, src)
		go queue.fill(src, overflow)
		close(o.ended)
	}
}

// run does the provider's reading and closes src, so that a child that still
// writes gets a broken pipe.
func (o *output) run(read func() error) {
	defer close(o.ended)
	o.err = read()
	o.src.Close()
}

// abandon ends a stream that has no source.
func (o *output) abandon(err error) {
	if o.pipe != nil {
		if err == nil {
			err = io.EOF
		}
		o.pipe.fail(err)
	}
	close(o.ended)
}

// collect moves the stream into memory and the spill file.
func (o *output) collect() error {
	return transfer(o.src, make([]byte, blockSize), func(p []byte) error {
		if o.spill != nil {
			o.spill.add(o.collected, p)
		}
		o.collected.Append(p)
		return nil
	})
}

// copyQueued copies through a backlog (UO-2, UO-4).
func (o *output) copyQueued(overflow func()) error {
	queue := newBacklog()
	copied := make(chan error, 1)
	go func() { copied <- copyStream(o.spec.To, queue, &o.count) }()
	queue.fill(o.src, overflow)
	if err := queue.failure(); err != nil {
		return err // the copier may hang on a stalled reader: it is left alone
	}
	return <-copied
}

// copyStream copies src to dst, which stays open (OM-3).
func copyStream(dst io.Writer, src io.Reader, count *atomic.Int64) error {
	grow := growOnce(dst)
	return transfer(src, make([]byte, copyBuffer), func(p []byte) error {
		grow(len(p))
		count.Add(int64(len(p)))
		_, err := dst.Write(p)
		return err
	})
}

// transfer moves src into sink until its end. A read deadline makes it take what
// is queued in a pipe and stop.
func transfer(src io.Reader, buf []byte, sink func(p []byte) error) error {
	grow := growOnce(src)
	for {
		n, err := src.Read(buf)
		if n > 0 {
			grow(n)
			if err := sink(buf[:n]); err != nil {
				return err
			}
		}
		if f, ok := src.(*os.File); ok && errors.Is(err, os.ErrDeadlineExceeded) {
			return takeQueued(f, buf, sink)
		}
		if err != nil {
			return endError(err)
		}
	}
}

// maxQueued bounds what is taken from a pipe that somebody keeps filling.
const maxQueued = 1 << 20

// takeQueued moves what a pipe holds now. It gives nil if that was all and the
// pipe has ended.
func takeQueued(f *os.File, buf []byte, sink func(p []byte) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	for taken := 0; taken < maxQueued; {
		n, readErr := 0, error(nil)
		if err := raw.Control(func(fd uintptr) { n, readErr = syscall.Read(int(fd), buf) }); err != nil {
			return err
		}
		switch {
		case readErr == syscall.EINTR:
			continue
		case readErr != nil:
			return os.ErrDeadlineExceeded
		case n == 0:
			return nil
		}
		taken += n
		if err := sink(buf[:n]); err != nil {
			return err
		}
	}
	return os.ErrDeadlineExceeded
}

// endError makes a plain end no error.
func endError(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// drain waits for the end of what is read here. If ctx ends first, what has
// arrived is still taken, and the stream is closed on our side. A copier may
// then still hang on a stalled reader of ours; a collector does not.
func (o *output) drain(ctx context.Context) {
	select {
	case <-o.ended:
		return
	default:
	}
	select {
	case <-o.ended:
		return
	case <-ctx.Done():
	}
	if o.flush() {
		o.cut = errors.Is(o.err, os.ErrDeadlineExceeded)
		return
	}
	o.cut = true
	o.src.Close()
	if o.collected != nil {
		<-o.ended
	}
}

// flushPatience is how long a copier may take for what has arrived.
const flushPatience = time.Second

// flush lets the reading end with what has arrived, where the source is a pipe
// of this machine. A busy machine may not have read it yet.
func (o *output) flush() bool {
	f, ok := o.src.(*os.File)
	if !ok || f.SetReadDeadline(time.Unix(1, 0)) != nil {
		return false
	}
	if o.collected != nil {
		<-o.ended
		return true
	}
	select {
	case <-o.ended:
		return true
	case <-time.After(flushPatience):
		return false
	}
}

// seal ends the stream's records at settlement.
func (o *output) seal() StreamReport {
	r := StreamReport{Bytes: -1}
	if o.counted {
		r.Bytes = o.count.Load()
	}
	r.Incomplete = o.cut
	if !o.cut && o.err != nil {
		r.Incomplete, r.Err = true, o.err
	}
	if o.collected == nil {
		return r
	}
	if o.spill != nil {
		o.spill.end(o.collected, !r.Incomplete)
	}
	o.collected.Seal()
	return o.collected.report(r)
}

// latePipe is the reader of a raw stream; it exists before the stream does.
type latePipe struct {
	opened chan struct{}
	once   sync.Once
	src    io.Reader
	closer io.Closer
	err    error
}

func newLatePipe() *latePipe { return &latePipe{opened: make(chan struct{})} }

func (l *latePipe) open(src io.Reader, closer io.Closer) {
	first := false
	l.once.Do(func() { first = true; l.src, l.closer = src, closer; close(l.opened) })
	if !first {
		closer.Close() // the caller has closed it already
	}
}

func (l *latePipe) fail(err error) {
	l.once.Do(func() { l.err = err; close(l.opened) })
}

// Read waits for the start and then for bytes.
func (l *latePipe) Read(p []byte) (int, error) {
	<-l.opened
	if l.src == nil {
		return 0, l.err
	}
	return l.src.Read(p)
}

// Close gives the child a broken pipe.
func (l *latePipe) Close() error {
	l.fail(io.ErrClosedPipe)
	if l.closer != nil {
		return l.closer.Close()
	}
	return nil
}
