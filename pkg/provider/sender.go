package provider

import (
	"io"
	"sync"
)

// maxQueuedControl bounds the control frames that wait for a peer who does not
// read: more is a peer that floods us with requests for answers.
const maxQueuedControl = 4096

// sender writes frames. Control frames never wait for content: they are queued
// and go first. A sender of content waits until its frame is written, which is
// its back-pressure.
type sender struct {
	w       io.Writer
	mu      sync.Mutex
	cond    *sync.Cond
	control []byte // encoded frames
	count   int    // frames in control
	data    []dataFrame
	closing bool
	err     error
	done    chan struct{}
}

type dataFrame struct {
	frame   Frame
	written chan error
}

func newSender(w io.Writer) *sender {
	s := &sender{w: w, done: make(chan struct{})}
	s.cond = sync.NewCond(&s.mu)
	return s
}

// queue puts a control frame in line. It never waits.
func (s *sender) queue(f Frame) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	if s.count++; s.count > maxQueuedControl {
		return protocolError("more than %d control frames wait for the peer to read", maxQueuedControl)
	}
	s.control = AppendFrame(s.control, f)
	s.cond.Signal()
	return nil
}

// send puts a content frame in line and waits until it is written. The body is
// free again when it returns.
func (s *sender) send(f Frame) error {
	d := dataFrame{f, make(chan error, 1)}
	s.mu.Lock()
	if s.err != nil {
		s.mu.Unlock()
		return s.err
	}
	s.data = append(s.data, d)
	s.cond.Signal()
	s.mu.Unlock()
	return <-d.written
}

// run writes until the sender is closed and its line is empty, or a write
// fails. One goroutine runs it.
func (s *sender) run() error {
	defer close(s.done)
	var buf []byte
	for {
		d, control, ok := s.next()
		if !ok {
			return nil
		}
		buf = append(buf[:0], control...)
		if d != nil {
			buf = AppendFrame(buf, d.frame)
		}
		_, err := s.w.Write(buf)
		if d != nil {
			d.written <- err
		}
		if err != nil {
			s.fail(err)
			return err
		}
	}
}

// next waits for work: all control frames in line, and one of content.
func (s *sender) next() (d *dataFrame, control []byte, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.control) == 0 && len(s.data) == 0 && !s.closing && s.err == nil {
		s.cond.Wait()
	}
	if s.err != nil || len(s.control) == 0 && len(s.data) == 0 {
		return nil, nil, false
	}
	control, s.control, s.count = s.control, nil, 0
	if len(s.data) > 0 {
		d = &s.data[0]
		s.data = s.data[1:]
	}
	return d, control, true
}

// close lets run end after what is in line.
func (s *sender) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = true
	s.cond.Signal()
}

// fail ends the sender: nothing more is written, everybody who waits gets err.
func (s *sender) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
	for _, d := range s.data {
		d.written <- s.err
	}
	s.data, s.control = nil, nil
	s.cond.Signal()
}
