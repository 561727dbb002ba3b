package remoteexec

import (
	"sync"

	"github.com/afield-dev/afield/pkg/fault"
)

// blockSize is the piece in which the window of a stream is allocated, so that
// the memory of a stream never exceeds its cap (CR-2).
const blockSize = 64 << 10

// Collected keeps the last bytes of a stream, addressed by position in the
// whole stream (CR-1 to CR-9). Reading consumes nothing. All methods may run at
// the same time.
type Collected struct {
	mu        sync.Mutex
	max       int64
	blocks    [][]byte // a ring of max bytes; position p of the stream is at p % max
	total     int64
	sealed    bool          // nothing is added any more
	changed   chan struct{} // closed and renewed at each change; nil until somebody asks
	spillPath string
}

// Chunk is an answer of ReadFrom.
type Chunk struct {
	Bytes      []byte
	NextOffset int64
	Lossy      bool   // bytes before the window are gone
	SpillPath  string // file that holds the whole stream, while it stands
}

// TextChunk is an answer of ReadText.
type TextChunk struct {
	Text       string
	NextOffset int64
	Lossy      bool
	SpillPath  string
}

// NewCollected keeps the last max bytes of a stream that the caller fills.
func NewCollected(max int64) *Collected { return &Collected{max: max} }

// ReadFrom gives the bytes that are kept from offset on (CR-3).
func (c *Collected) ReadFrom(offset int64) (Chunk, error) {
	if offset < 0 {
		return Chunk{}, fault.New(fault.ExecInvalidSpec, "read", "", "read from %d: an offset must not be negative", offset)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.chunk(offset), nil
}

// ReadText is ReadFrom as text: UTF-8 with one U+FFFD for each maximal invalid
// part (CR-6). While the stream is open an unfinished character at the end is
// left for the next read (CR-7).
func (c *Collected) ReadText(offset int64) (TextChunk, error) {
	if offset < 0 {
		return TextChunk{}, fault.New(fault.ExecInvalidSpec, "read", "", "read from %d: an offset must not be negative", offset)
	}
	c.mu.Lock()
	chunk, sealed := c.chunk(offset), c.sealed
	c.mu.Unlock()
	text, held := decodeText(chunk.Bytes, sealed)
	return TextChunk{
		Text: text, NextOffset: chunk.NextOffset - int64(held), Lossy: chunk.Lossy, SpillPath: chunk.SpillPath,
	}, nil
}

// Total is the length of the stream so far.
func (c *Collected) Total() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}

// Changed gives a channel that is closed at the next change: bytes that are
// added, or the end.
func (c *Collected) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changed == nil {
		c.changed = make(chan struct{})
	}
	return c.changed
}

// Sealed reports whether the stream has ended.
func (c *Collected) Sealed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sealed
}

// wake tells those who wait for a change; c.mu is held.
func (c *Collected) wake() {
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// chunk answers a read; c.mu is held.
func (c *Collected) chunk(offset int64) Chunk {
	first := max(0, c.total-c.max)
	start := min(max(offset, first), c.total)
	return Chunk{Bytes: c.window(start), NextOffset: c.total, Lossy: offset < first, SpillPath: c.spillPath}
}

// window copies what is kept from position at of the stream on; c.mu is held.
func (c *Collected) window(at int64) []byte {
	out := make([]byte, 0, c.total-at)
	for at < c.total {
		i := at % c.max
		block := c.blocks[i/blockSize]
		piece := block[i%blockSize:]
		piece = piece[:min(int64(len(piece)), c.total-at)]
		out = append(out, piece...)
		at += int64(len(piece))
	}
	return out
}

// Append adds bytes at the end of the stream.
func (c *Collected) Append(p []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.wake()
	for len(p) > 0 {
		if skip := int64(len(p)) - c.max; skip > 0 && c.full() {
			c.total += skip
			p = p[skip:]
		}
		n := c.put(c.total%c.max, p)
		c.total += int64(n)
		p = p[n:]
	}
}

// full says that every byte of the ring has been written once.
func (c *Collected) full() bool { return c.total >= c.max }

// put stores a first part of p at position i of the ring and gives its length.
func (c *Collected) put(i int64, p []byte) int {
	n, off := i/blockSize, i%blockSize
	room := min(blockSize, c.max-n*blockSize) - off
	p = p[:min(int64(len(p)), room)]
	if n == int64(len(c.blocks)) {
		c.blocks = append(c.blocks, nil)
	}
	if block := c.blocks[n]; off == int64(len(block)) {
		c.blocks[n] = append(block, p...)
		return len(p)
	}
	return copy(c.blocks[n][off:], p)
}

// setSpill publishes or withdraws the spill file's path.
func (c *Collected) setSpill(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spillPath = path
}

// Seal marks the end of the stream (CR-9).
func (c *Collected) Seal() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sealed = true
	c.wake()
}

// report adds the facts of a sealed stream to r.
func (c *Collected) report(r StreamReport) StreamReport {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.Bytes, r.Truncated, r.SpillPath = c.total, c.total > c.max, c.spillPath
	if r.SpillPath != "" {
		r.SpillWorld = "host"
	}
	return r
}
