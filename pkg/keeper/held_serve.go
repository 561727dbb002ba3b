package keeper

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/provider"
	"github.com/afield-dev/afield/pkg/remoteexec"
)

func decode(x *provider.Stream, v any) error {
	if err := json.Unmarshal(x.Params, v); err != nil {
		return fault.Wrap(err, fault.BackendProtocol, x.Method, "", "malformed parameters of %s: %s", x.Method, err)
	}
	return nil
}

// about serves a method about one held program.
func (s *session) about(f func(x *provider.Stream, h *held, p heldParams) (any, error)) func(*provider.Stream) {
	return func(x *provider.Stream) {
		var p heldParams
		err := decode(x, &p)
		var h *held
		if err == nil {
			h, err = s.k.book.find(p.ID)
		}
		var result any
		if err == nil {
			result, err = f(x, h, p)
		}
		if err != nil {
			x.Fail(err)
			return
		}
		x.Finish(result)
	}
}

func heldRead(x *provider.Stream, h *held, p heldParams) (any, error) {
	c, err := h.stream(p.Port)
	if err != nil {
		return nil, err
	}
	h.await(x.Context(), c, p.From, millis(p.WaitMs))
	ended := c.Sealed() // before the look: what it says then is the last
	chunk, err := c.ReadFrom(p.From)
	if err != nil {
		return nil, err
	}
	chunk = whole(chunk, p.From)
	r := ReadResult{From: p.From, NextOffset: chunk.NextOffset, Lossy: chunk.Lossy}
	if over := int64(len(chunk.Bytes)) - p.Max; p.Max > 0 && over > 0 {
		chunk.Bytes = chunk.Bytes[:p.Max]
		r.NextOffset -= over
		ended = false
	}
	r.From = r.NextOffset - int64(len(chunk.Bytes))
	r.Ended, r.Info = ended, h.info()
	w := x.Writer(provider.PortFirst)
	if _, err := w.Write(chunk.Bytes); err != nil {
		return nil, err
	}
	return r, w.Close()
}

// whole fills in what memory does not hold any more from the file that has the
// whole stream.
func whole(c remoteexec.Chunk, from int64) remoteexec.Chunk {
	if !c.Lossy || c.SpillPath == "" {
		return c
	}
	f, err := os.Open(c.SpillPath)
	if err != nil {
		return c
	}
	defer f.Close()
	first := c.NextOffset - int64(len(c.Bytes))
	b := make([]byte, min(first-from, maxFilled))
	if _, err := f.ReadAt(b, from); err != nil {
		return c
	}
	if int64(len(b)) < first-from {
		return remoteexec.Chunk{Bytes: b, NextOffset: from + int64(len(b)), SpillPath: c.SpillPath}
	}
	return remoteexec.Chunk{Bytes: append(b, c.Bytes...), NextOffset: c.NextOffset, SpillPath: c.SpillPath}
}

// maxFilled bounds what one read takes from a file, in bytes.
const maxFilled = 1 << 20

// await waits until a stream has bytes at an offset, has ended, or the time is
// over.
func (h *held) await(ctx context.Context, c *remoteexec.Collected, from int64, patience time.Duration) {
	if patience <= 0 {
		return
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		changed := c.Changed()
		if c.Total() > from || c.Sealed() {
			return
		}
		select {
		case <-changed:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

func millis(ms int64) time.Duration {
	return time.Duration(min(ms, remoteexec.MaxDelay.Milliseconds())) * time.Millisecond
}

// maxWrite bounds one write, in bytes.
const maxWrite = 16 << 20

func heldWrite(x *provider.Stream, h *held, p heldParams) (any, error) {
	b, err := io.ReadAll(io.LimitReader(x.Reader(provider.PortInput), maxWrite+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxWrite {
		return nil, fault.New(fault.ExecInvalidSpec, "write", h.id, "one write is at most %d bytes", maxWrite)
	}
	n, err := h.write(b, p.EOF)
	return map[string]int{"bytes": n}, err
}

// heldAttach sends output as it comes, from an offset on, until the program has
// ended or the caller leaves. A caller that reads slowly loses the oldest bytes
// and holds up nobody.
func heldAttach(x *provider.Stream, h *held, p heldParams) (any, error) {
	c, err := h.stream(p.Port)
	if err != nil {
		return nil, err
	}
	if p.Input {
		if err := h.join(); err != nil {
			return nil, err
		}
		defer h.part()
		go io.Copy(heldInput{h}, x.Reader(provider.PortInput))
	}
	if p.From < 0 {
		p.From = max(0, c.Total()+p.From)
	}
	w := x.Writer(provider.PortFirst)
	for {
		changed, sealed := c.Changed(), c.Sealed()
		chunk, err := c.ReadFrom(p.From)
		if err != nil {
			return nil, err
		}
		if chunk.Lossy {
			x.Emit("lossy", map[string]any{"from": p.From, "next": chunk.NextOffset - int64(len(chunk.Bytes))})
		}
		if len(chunk.Bytes) > 0 {
			if _, err := w.Write(chunk.Bytes); err != nil {
				return h.info(), nil
			}
			p.From = chunk.NextOffset
			continue
		}
		if sealed {
			<-h.over
			return h.info(), w.Close()
		}
		select {
		case <-changed:
		case <-x.Context().Done():
			return h.info(), nil
		}
	}
}

// heldInput is the input of a held program as a writer.
type heldInput struct{ h *held }

func (w heldInput) Write(p []byte) (int, error) { return w.h.write(p, false) }

// join takes the one place of those who attach with input.
func (h *held) join() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.attached {
		return fault.New(fault.ExecSendActive, "attach", h.id, "somebody is attached to %s with input", h.id).WithHint("attach with --read-only")
	}
	h.attached = true
	return nil
}

func (h *held) part() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.attached = false
}

func heldWait(x *provider.Stream, h *held, p heldParams) (any, error) {
	ctx := x.Context()
	if p.WaitMs > 0 {
		bound, cancel := context.WithTimeout(ctx, millis(p.WaitMs))
		defer cancel()
		ctx = bound
	}
	select {
	case <-h.over:
	case <-ctx.Done():
	}
	return h.info(), nil
}

func heldDrop(_ *provider.Stream, h *held, _ heldParams) (any, error) {
	if !h.ended() {
		return nil, fault.New(fault.ExecSendActive, "drop", h.id, "%s is running", h.id).WithHint("stop it first")
	}
	h.book.remove(h)
	return struct{}{}, nil
}

// heldStop ends a job and what it left, and leaves it in the book.
func heldStop(x *provider.Stream, h *held, _ heldParams) (any, error) {
	if h.job == nil {
		return nil, fault.New(fault.ExecInvalidSpec, "stop", h.id, "%s is a terminal", h.id).WithHint("afield term close %s", h.id)
	}
	first := h.stop()
	if _, err := h.job.WaitForExit(x.Context()); err != nil {
		return nil, err
	}
	return stopResult{first}, nil
}

// heldClose ends a terminal and forgets it.
func heldClose(x *provider.Stream, h *held, _ heldParams) (any, error) {
	if _, err := h.terminal(); err != nil {
		return nil, err
	}
	if err := h.terminate(x.Context()); err != nil {
		return nil, err
	}
	<-h.over
	h.book.remove(h)
	return struct{}{}, nil
}

func heldResize(x *provider.Stream, h *held, p heldParams) (any, error) {
	t, err := h.terminal()
	if err == nil {
		err = t.Resize(x.Context(), p.Rows, p.Cols)
	}
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rows, h.cols = p.Rows, p.Cols
	if h.screen != nil {
		h.screen.resize(p.Rows, p.Cols)
	}
	if h.rec != nil {
		h.rec.resize(p.Rows, p.Cols)
	}
	return struct{}{}, nil
}

func heldInspect(x *provider.Stream, h *held, _ heldParams) (any, error) {
	t, err := h.terminal()
	if err != nil {
		return nil, err
	}
	f, err := t.Foreground(x.Context())
	if f == nil {
		return nil, err
	}
	return groupResult{f.ProcessGroupID, f.InputWaiting}, err
}

func heldSignal(x *provider.Stream, h *held, p heldParams) (any, error) {
	if h.job != nil {
		return h.signalJob(x.Context(), p.Signal)
	}
	t, err := h.terminal()
	if err != nil {
		return nil, err
	}
	group, err := t.Signal(x.Context(), p.Signal)
	return groupResult{ProcessGroupID: group}, err
}
