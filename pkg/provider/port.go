package provider

import (
	"encoding/binary"
	"io"
	"sync"
)

// inbox is the receiving end of a port. What the peer sends is kept here until
// it is read; the credit given bounds it. The connection's reader never waits
// for it.
type inbox struct {
	mu     sync.Mutex
	cond   *sync.Cond
	chunks [][]byte
	held   int // bytes in chunks
	window int // most that may be held
	owed   int // consumed bytes whose credit has not been given back
	fin    bool
	late   bool // the consumer takes what is held and no more
	closed bool // the consumer does not want more
	err    error
}

func newInbox(window int) *inbox {
	b := &inbox{window: window}
	b.cond = sync.NewCond(&b.mu)
	return b
}

// put takes a frame's content. Credit that was exceeded and content after the
// end are the peer's mistakes.
func (b *inbox) put(p []byte, fin bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.fin:
		return protocolError("DATA on a closed port")
	case b.held+b.owed+len(p) > b.window:
		return protocolError("the peer sent more than its credit")
	}
	b.fin = fin
	if b.closed || b.late {
		b.owed += len(p)
	} else if len(p) > 0 {
		b.chunks = append(b.chunks, p)
		b.held += len(p)
	}
	b.cond.Broadcast()
	return nil
}

// end wakes the consumer: no more will come. What is held stays readable.
func (b *inbox) end(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.fin {
		b.fin, b.err = true, err
	}
	b.cond.Broadcast()
}

// take waits for content and copies it to p. credit is what is to be given back
// to the peer.
func (b *inbox) take(p []byte) (n int, credit int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.chunks) == 0 && !b.fin && !b.late && !b.closed {
		b.cond.Wait()
	}
	if b.closed {
		return 0, 0, io.ErrClosedPipe
	}
	for n < len(p) && len(b.chunks) > 0 {
		c := copy(p[n:], b.chunks[0])
		n += c
		if b.chunks[0] = b.chunks[0][c:]; len(b.chunks[0]) == 0 {
			b.chunks = b.chunks[1:]
		}
	}
	b.held -= n
	b.owed += n
	if n == 0 && len(p) > 0 {
		if b.err != nil {
			return 0, 0, b.err
		}
		return 0, 0, io.EOF
	}
	return n, b.settle(), nil
}

// settle gives the credit to return now: in steps, so that small reads do not
// cost a frame each. No credit is due once the peer has finished.
func (b *inbox) settle() int {
	if b.fin || b.late || b.owed < b.window/4 {
		return 0
	}
	credit := b.owed
	b.owed = 0
	return credit
}

// stop ends the port behind what is held and reports whether the peer must be
// told.
func (b *inbox) stop() (tell bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	tell = !b.fin && !b.late && !b.closed
	b.late = true
	b.cond.Broadcast()
	return tell
}

// shut drops what is held and reports whether the peer must be told.
func (b *inbox) shut() (tell bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.closed = true
	b.owed += b.held
	b.chunks, b.held = nil, 0
	b.cond.Broadcast()
	return !b.fin
}

// outbox is the credit of the sending end of a port.
type outbox struct {
	mu     sync.Mutex
	cond   *sync.Cond
	credit int
	closed bool // the peer does not want more: a broken pipe
	hasty  bool // the call is cancelled: what finds no credit fails
	fin    bool // we have finished
	err    error
}

func newOutbox(window int) *outbox {
	b := &outbox{credit: window}
	b.cond = sync.NewCond(&b.mu)
	return b
}

// grant takes a WINDOW frame's credit.
func (b *outbox) grant(body []byte) error {
	if len(body) != 4 {
		return protocolError("a WINDOW frame of %d bytes", len(body))
	}
	n := int(binary.BigEndian.Uint32(body))
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.credit += n; b.credit > MaxWindow {
		return protocolError("credit of %d bytes is over the limit", b.credit)
	}
	b.cond.Broadcast()
	return nil
}

// acquire waits for credit and takes at most want bytes of it.
func (b *outbox) acquire(want int) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.credit == 0 && !b.closed && !b.fin && !b.hasty && b.err == nil {
		b.cond.Wait()
	}
	switch {
	case b.err != nil:
		return 0, b.err
	case b.closed, b.fin, b.credit == 0:
		return 0, io.ErrClosedPipe
	}
	n := min(want, b.credit, MaxData)
	b.credit -= n
	return n, nil
}

// finish marks our end and reports whether FIN is still to be sent.
func (b *outbox) finish() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	send := !b.fin && !b.closed && b.err == nil
	b.fin = true
	b.cond.Broadcast()
	return send
}

// refuse marks that the peer wants no more.
func (b *outbox) refuse() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.cond.Broadcast()
}

// hurry keeps senders from waiting for credit: after CANCEL nobody may ever
// read again.
func (b *outbox) hurry() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hasty = true
	b.cond.Broadcast()
}

// fail wakes senders with an error.
func (b *outbox) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = err
	}
	b.cond.Broadcast()
}
