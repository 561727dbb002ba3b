package remoteexec

import (
	"io"
	"sync"

	"github.com/afield-dev/afield/pkg/fault"
)

// maxBacklog is how much output that nobody reads is kept where the transport
// cannot be paused (UO-1).
const maxBacklog = 32 << 20

// backlog is a queue between a transport that cannot be paused and a reader.
// Adding never blocks; more than maxBacklog bytes trip it for good.
type backlog struct {
	mu      sync.Mutex
	changed *sync.Cond
	pieces  [][]byte
	size    int
	err     error // set at the end: io.EOF, a transport error, or overflow
}

func newBacklog() *backlog {
	b := &backlog{}
	b.changed = sync.NewCond(&b.mu)
	return b
}

// add queues a copy of p; it reports false when that tripped the ceiling. After
// the end it drops p.
func (b *backlog) add(p []byte) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return true
	}
	b.size += len(p)
	if b.size > maxBacklog {
		b.finish(errOverflow())
		b.pieces, b.size = nil, 0
		return false
	}
	b.pieces = append(b.pieces, append([]byte(nil), p...))
	b.changed.Broadcast()
	return true
}

// end lets the reader see err after what is queued.
func (b *backlog) end(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.finish(err)
	}
}

func (b *backlog) finish(err error) {
	b.err = err
	b.changed.Broadcast()
}

// failure is why the queue ended, unless that is a plain end.
func (b *backlog) failure() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == io.EOF {
		return nil
	}
	return b.err
}

// Read implements io.Reader and waits for bytes.
func (b *backlog) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.pieces) == 0 && b.err == nil {
		b.changed.Wait()
	}
	if len(b.pieces) == 0 {
		return 0, b.err
	}
	n := copy(p, b.pieces[0])
	b.size -= n
	if b.pieces[0] = b.pieces[0][n:]; len(b.pieces[0]) == 0 {
		b.pieces = b.pieces[1:]
	}
	return n, nil
}

// fill moves everything from src into the queue; onOverflow is called once if
// it trips, and the rest is drained and dropped so that the exit report behind
// it arrives (UO-3).
func (b *backlog) fill(src io.Reader, onOverflow func()) {
	buf := make([]byte, blockSize)
	for {
		n, err := src.Read(buf)
		if !b.add(buf[:n]) {
			onOverflow()
		}
		if err != nil {
			b.end(err)
			return
		}
	}
}

func errOverflow() error {
	return fault.New(fault.ExecOutputOverflow, "read", "",
		"more than %d bytes of output waited for a reader; the program is being stopped", maxBacklog).
		WithHint("read the output while the program runs, or collect it with a cap")
}
