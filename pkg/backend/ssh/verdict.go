package ssh

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/afield-dev/afield/pkg/script"
)

// verdictPatience bounds the wait for a verdict after a program's end. Without
// one the host is asked.
const verdictPatience = 2 * time.Second

// verdict is what the watcher of a program says after its end: who is left. It
// stands as one line in the error output, from which it is taken out. A nil
// verdict leaves an output as it is.
type verdict struct {
	mark []byte
	held []byte // the beginning of a mark, or all of it with a part of the line

	once sync.Once
	told chan struct{} // closed with the verdict, or when none comes any more
	none bool          // nobody is left; valid after told
}

func newVerdict(mark string) *verdict {
	return &verdict{mark: []byte(mark), told: make(chan struct{})}
}

// quiet waits for the verdict and reports whether nobody is left.
func (v *verdict) quiet(ctx context.Context) bool {
	select {
	case <-v.told:
		return v.none
	case <-time.After(verdictPatience):
	case <-ctx.Done():
	}
	return false
}

// end says that no verdict comes any more.
func (v *verdict) end() {
	if v != nil {
		v.once.Do(func() { close(v.told) })
	}
}

// strain gives what of the output so far is the program's, without a copy where
// nothing is held back.
func (v *verdict) strain(p []byte) []byte {
	if v == nil || v.mark == nil {
		return p
	}
	if len(v.held) > 0 {
		p = append(v.held, p...)
		v.held = nil
	}
	at := bytes.Index(p, v.mark)
	if at < 0 {
		keep := overlap(p, v.mark)
		v.held = bytes.Clone(p[len(p)-keep:])
		return p[:len(p)-keep]
	}
	line, after, whole := bytes.Cut(p[at+len(v.mark):], []byte("\n"))
	if !whole {
		v.held = bytes.Clone(p[at:])
		return p[:at]
	}
	left, err := script.ReadVerdict(string(line))
	v.none = err == nil && len(left) == 0
	v.mark = nil
	v.end()
	return append(p[:at:at], after...)
}

// rest is what was held back and turned out to be the program's.
func (v *verdict) rest() []byte {
	if v == nil {
		return nil
	}
	return v.held
}

// overlap is how many bytes at the end of p begin mark.
func overlap(p, mark []byte) int {
	for n := min(len(p), len(mark)-1); n > 0; n-- {
		if bytes.HasSuffix(p, mark[:n]) {
			return n
		}
	}
	return 0
}
