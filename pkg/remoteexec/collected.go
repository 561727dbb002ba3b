package remoteexec

import (
	"sync"

	"github.com/afield-dev/afield/pkg/fault"
)

// Collected keeps the last bytes of a stream, addressed by position in the
// whole stream (CR-1 to CR-9). Reading consumes nothing. All methods may run at
// the same time.
type Collected struct {
	mu    sync.Mutex
	max   int
	ring  []byte // grows up to max, then wraps
	total int64
}

// Chunk is an answer of ReadFrom.
type Chunk struct {
	Bytes      []byte
	NextOffset int64
	Lossy      bool   // bytes before the window are gone
	SpillPath  string // file that holds the whole stream, while it stands
}

func newCollected(max int64) *Collected { return &Collected{max: int(max)} }

// ReadFrom gives what is kept from offset on (CR-3).
func (c *Collected) ReadFrom(offset int64) (Chunk, error) {
	if offset < 0 {
		return Chunk{}, fault.New(fault.ExecInvalidSpec, "read", "", "offset must not be negative")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	first := c.total - int64(len(c.ring))
	start := min(max(offset, first), c.total)
	return Chunk{Bytes: c.copyFrom(start - first), NextOffset: c.total, Lossy: offset < first}, nil
}

// copyFrom gives the window from position at on.
func (c *Collected) copyFrom(at int64) []byte {
	n := int64(len(c.ring))
	out := make([]byte, 0, n-at)
	head := int64(0)
	if n == int64(c.max) {
		head = c.total % n
	}
	for at < n {
		i := (head + at) % n
		end := min(n, i+n-at)
		out = append(out, c.ring[i:end]...)
		at += end - i
	}
	return out
}

// append adds bytes at the end of the stream.
func (c *Collected) append(p []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(p) > 0 {
		if room := c.max - len(c.ring); room > 0 {
			n := min(room, len(p))
			c.ring = append(c.ring, p[:n]...)
			c.total += int64(n)
			p = p[n:]
			continue
		}
		if skip := len(p) - c.max; skip > 0 {
			c.total += int64(skip)
			p = p[skip:]
		}
		n := copy(c.ring[c.total%int64(c.max):], p)
		c.total += int64(n)
		p = p[n:]
	}
}
