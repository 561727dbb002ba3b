package cmd

import (
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// progressDelay is how long an operation runs before its bar appears.
const progressDelay = time.Second

// progress is a bar on stderr that appears when something takes long, and only
// where stderr is a terminal. It is for one goroutine.
type progress struct {
	a     *app
	verb  string
	total int64 // -1 = not known
	since time.Time
	done  int64
	bar   *progressbar.ProgressBar
}

// startProgress begins to measure; nil draws nothing.
func (a *app) startProgress(verb string, total int64) *progress {
	if a.flags.noProgress || a.flags.quiet || !a.Terminal(a.Err) {
		return nil
	}
	return &progress{a: a, verb: verb, total: total, since: time.Now()}
}

// add counts n bytes and draws when it is time.
func (p *progress) add(n int) {
	p.done += int64(n)
	if p.bar == nil {
		if time.Since(p.since) < progressDelay {
			return
		}
		p.bar = progressbar.NewOptions64(p.total,
			progressbar.OptionSetWriter(p.a.Err),
			progressbar.OptionSetDescription(p.verb),
			progressbar.OptionShowBytes(true),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionFullWidth(),
			progressbar.OptionClearOnFinish())
	}
	p.bar.Set64(p.done)
}

// stop takes the bar away.
func (p *progress) stop() {
	if p != nil && p.bar != nil {
		p.bar.Clear()
	}
}

// writer counts what is written to w.
func (p *progress) writer(w io.Writer) io.Writer {
	if p == nil {
		return w
	}
	return writerFunc(func(b []byte) (int, error) {
		n, err := w.Write(b)
		p.add(n)
		return n, err
	})
}

// reader counts what is read from r.
func (p *progress) reader(r io.Reader) io.Reader {
	if p == nil {
		return r
	}
	return readerFunc(func(b []byte) (int, error) {
		n, err := r.Read(b)
		p.add(n)
		return n, err
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
