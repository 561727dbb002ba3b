package e2b

import (
	"io"
	"sync"
)

// outletMax is how much of a stream waits for its reader before the program is
// held up: somewhat more than a pipe of the kernel holds, since both streams
// of a program share one connection.
const outletMax = 256 << 10

// outlet is an output stream between the connection and its reader. It is
// bounded, so that a reader who does not read stops the program and not our
// memory.
type outlet struct {
	onClose func()

	mu     sync.Mutex
	cond   sync.Cond
	buf    []byte
	at     int // of buf that was read
	ended  bool
	err    error // valid with ended
	closed bool
	passed bool // what there is no room for is dropped

	holding bool // put waits for room
}

func newOutlet(onClose func()) *outlet {
	o := &outlet{onClose: onClose}
	o.cond.L = &o.mu
	return o
}

// put adds bytes, waiting while there is no room. What nobody will read is
// dropped.
func (o *outlet) put(p []byte) {
	if len(p) == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.buf)-o.at >= outletMax && !o.closed && !o.passed {
		o.holding = true
		o.cond.Wait()
	}
	o.holding = false
	if o.closed || o.passed && len(o.buf)-o.at >= outletMax {
		return
	}
	if o.at > 0 && o.at == len(o.buf) {
		o.buf, o.at = o.buf[:0], 0
	}
	o.buf = append(o.buf, p...)
	o.cond.Broadcast()
}

// stopHolding is called when the program is being ended: output that nobody
// reads must not keep the report of its end from arriving.
func (o *outlet) stopHolding() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.passed = true
	o.cond.Broadcast()
}

// end says that no more comes, and why if that is a failure.
func (o *outlet) end(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.ended {
		o.ended, o.err = true, err
	}
	o.cond.Broadcast()
}

// Read gives bytes as they come.
func (o *outlet) Read(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.at == len(o.buf) && !o.ended && !o.closed {
		o.cond.Wait()
	}
	switch {
	case o.closed:
		return 0, io.ErrClosedPipe
	case o.at < len(o.buf):
		n := copy(p, o.buf[o.at:])
		o.at += n
		if o.at >= outletMax {
			o.buf = append(o.buf[:0], o.buf[o.at:]...)
			o.at = 0
		}
		o.cond.Broadcast()
		return n, nil
	case o.err != nil:
		return 0, o.err
	}
	return 0, io.EOF
}

// Close ends a read that waits and drops what comes.
func (o *outlet) Close() error {
	o.mu.Lock()
	first := !o.closed
	o.closed = true
	o.cond.Broadcast()
	o.mu.Unlock()
	if first && o.onClose != nil {
		o.onClose()
	}
	return nil
}

func (o *outlet) isClosed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closed || o.ended
}

// isHolding reports whether the stream is held up by its reader.
func (o *outlet) isHolding() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.holding
}

func (o *outlet) isEnded() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ended
}
