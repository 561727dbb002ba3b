package keeper

import (
	"context"
	"io"
	"os"
	"sync"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
)

// held is a terminal or a job. Methods may run at the same time.
type held struct {
	book  *book
	id    string
	name  string
	kind  Kind
	argv  []string
	began time.Time
	lease *lease

	public bool // under the book's lock: its program runs, and callers may know

	out [3]*remoteexec.Collected // by stream; a terminal has the first only
	job remoteexec.Handle        // of a job
	rec *recording               // of a terminal, or nil

	writing  sync.Mutex // one write at a time
	released sync.Once

	mu       sync.Mutex
	term     remoteexec.Terminal // of a terminal
	shell    *shellState         // of a persistent shell
	screen   *screen             // once somebody has asked for it
	rows     int
	cols     int
	attached bool // somebody is attached with input
	stopping bool
	outcome  remoteexec.Outcome // valid after over, with err
	err      error
	over     chan struct{} // closed when the program has ended
}

// ended reports whether the program has ended.
func (h *held) ended() bool {
	select {
	case <-h.over:
		return true
	default:
		return false
	}
}

// finish notes how the program ended. It stays to be asked about for a while.
func (h *held) finish(o remoteexec.Outcome, err error) {
	h.mu.Lock()
	h.outcome, h.err = o, err
	h.mu.Unlock()
	close(h.over)
	if h.rec != nil {
		h.rec.close()
	}
	if err != nil {
		h.book.k.pool.failed(err)
	}
	time.AfterFunc(endedTime, func() { h.book.remove(h) })
}

// info says what is known.
func (h *held) info() Info {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := Info{
		ID: h.id, PID: h.pid(), Kind: h.kind, Backend: h.book.k.Setup.Provider, StartedAt: h.began, Argv: h.argv,
		State: "running", Offset: h.out[remoteexec.Stdout].Total(),
	}
	if h.name != "" {
		i.Name = &h.name
	}
	switch {
	case !h.ended() && h.stopping:
		i.State = "stopping"
	case !h.ended():
	case h.err != nil:
		problem := h.err.Error()
		i.State, i.Problem = "failed", &problem
	default:
		i.ExitFacts = exitFacts(h.outcome)
		if i.State = "completed"; h.stopping || h.outcome.Signal != "" {
			i.State = "killed"
		}
	}
	return i
}

// pid is that of the top-level program; h.mu is held.
func (h *held) pid() int {
	if h.job != nil {
		return h.job.PID()
	}
	return h.term.PID()
}

// terminal gives the terminal, or the error of a job.
func (h *held) terminal() (remoteexec.Terminal, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.term == nil {
		return nil, fault.New(fault.ExecInvalidSpec, "terminal", h.id, "%s is a job and has no terminal", h.id)
	}
	return h.term, nil
}

// stream gives an output. A terminal has one.
func (h *held) stream(port int) (*remoteexec.Collected, error) {
	if port == 0 {
		port = int(remoteexec.Stdout)
	}
	if port < 0 || port >= len(h.out) || h.out[port] == nil {
		return nil, fault.New(fault.ExecInvalidSpec, "read", h.id, "%s has no output stream %d", h.id, port)
	}
	return h.out[port], nil
}

// write gives bytes to the program's input and, with eof, ends it.
func (h *held) write(p []byte, eof bool) (int, error) {
	h.writing.Lock()
	defer h.writing.Unlock()
	if h.ended() {
		return 0, fault.New(fault.ExecSessionExited, "write", h.id, "the program of %s has ended", h.id)
	}
	var w io.Writer
	if h.job != nil {
		w = h.job.Stdin()
	} else {
		w, _ = h.terminal()
	}
	n, err := 0, error(nil)
	if len(p) > 0 {
		n, err = w.Write(p)
	}
	if err == nil && eof {
		if h.job == nil {
			return n, fault.New(fault.ExecInvalidSpec, "write", h.id, "the input of a terminal has no end").WithHint("write the character that the program takes for it, such as ^D")
		}
		err = h.job.Stdin().Close()
	}
	return n, err
}

// stop begins the end of a job; true for the first time (SH-11).
func (h *held) stop() bool {
	h.mu.Lock()
	first := !h.stopping && !h.ended()
	h.stopping = true
	h.mu.Unlock()
	h.job.Terminate()
	return first
}

// terminate ends the program and all that belongs to it, and waits for that.
func (h *held) terminate(ctx context.Context) error {
	h.mu.Lock()
	job, t := h.job, h.term
	h.stopping = h.stopping || job == nil
	h.mu.Unlock()
	switch {
	case job != nil:
		h.stop()
		_, err := job.WaitForExit(ctx)
		return err
	case t != nil:
		return t.Terminate(ctx)
	}
	return nil
}

// release frees what a forgotten one has.
func (h *held) release() {
	h.released.Do(func() {
		for _, c := range h.out {
			if c == nil {
				continue
			}
			if chunk, err := c.ReadFrom(c.Total()); err == nil && chunk.SpillPath != "" {
				os.Remove(chunk.SpillPath)
			}
		}
		if h.rec != nil {
			h.rec.close()
		}
		if h.lease != nil {
			h.lease.drop()
		}
	})
}
