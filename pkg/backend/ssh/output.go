package ssh

import (
	"errors"
	"io"
	"sync"
	"time"

	"github.com/afield-dev/afield/pkg/script"
)

// outputs are the two outputs of a program. Of the standard output OpenSSH can be
// told that nobody reads it, which breaks the program's pipe; what still comes for
// an error output that is given up is dropped. When both are given up and the
// program has ended, the session is closed and whoever still writes gets a broken
// pipe (OC-8).
type outputs struct {
	s  *session
	mu sync.Mutex
	up int // how many are wanted
}

// output is one of them. Read gives what comes after the mark.
type output struct {
	*io.PipeReader
	all  *outputs
	main bool // the standard output
	once sync.Once
}

// add makes an output of what r gives after nonce; "" = there is no mark. A verdict
// is taken out of it.
func (all *outputs) add(r *script.Answer, nonce string, v *verdict) *output {
	pr, pw := io.Pipe()
	all.up++
	go all.pump(r, nonce, v, pw)
	return &output{PipeReader: pr, all: all, main: nonce == ""}
}

// pump hands bytes on as they are taken, so that a program whose output nobody
// reads waits.
func (all *outputs) pump(r *script.Answer, nonce string, v *verdict, to *io.PipeWriter) {
	defer v.end()
	if nonce != "" {
		if _, err := r.Begin(nonce); err != nil {
			to.CloseWithError(all.end(err))
			return
		}
	}
	buf := make([]byte, 64<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			to.Write(v.strain(buf[:n])) // fails when it was given up; the rest is dropped
		}
		if err != nil {
			to.Write(v.rest())
			to.CloseWithError(all.end(err))
			return
		}
	}
}

// end gives io.EOF for an orderly end. A connection that is lost ends the stream
// first and the session a moment later; a program that closes its output ends
// only the stream.
func (all *outputs) end(err error) error {
	if !errors.Is(err, io.EOF) && !errors.Is(err, script.ErrNoMarker) {
		return err
	}
	select {
	case <-all.s.exited:
	case <-all.s.closed:
		if !all.s.known() {
			return all.s.hub.lost(all.s.conn)
		}
	case <-time.After(100 * time.Millisecond):
	}
	return io.EOF
}

// Close gives the output up and ends a read that waits.
func (o *output) Close() error {
	o.once.Do(func() {
		o.PipeReader.Close()
		if o.main {
			o.all.s.SendRequest("eow@openssh.com", false, nil)
		}
		o.all.mu.Lock()
		o.all.up--
		last := o.all.up == 0
		o.all.mu.Unlock()
		if last {
			go o.all.drop()
		}
	})
	return nil
}

func (all *outputs) drop() {
	select {
	case <-all.s.exited:
		all.s.close()
	case <-all.s.closed:
	}
}
