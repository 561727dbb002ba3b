package remotefs

import (
	"context"
	"io"
	"os"
)

// spool takes the rest of the content into a temporary file of the host, so
// that all of it is checked before a write in place begins. done ends the file.
func (c *content) spool(ctx context.Context) (done func(), err error) {
	f, err := os.CreateTemp("", "afield-*")
	if err != nil {
		return nil, failure(ctx, mapChange(err, c.op, c.display), c.op, c.display)
	}
	_ = os.Remove(f.Name())
	n, err := fill(ctx, f, c)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, c.broken(ctx, err)
	}
	c.head, c.rest, c.done, c.size, c.raw = nil, f, 0, n, true
	return func() { f.Close() }, nil
}
