package remoteexec

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
)

// C162, C170, OC-7, OC-10: the drain begins with the root's end and lasts one
// grace.
func TestDrainOnTheClock(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := remote()
		proc := newProc(&d.journal)
		rt, h := started(t, d, proc)
		time.Sleep(time.Hour) // quiet, but running
		equal(t, "settled while it runs", isClosed(h.Done()), false)
		proc.outW.Write([]byte("now\n"))
		begin := time.Now()
		proc.exitHolding(Outcome{})
		report, err := settled(t, h)
		equal(t, "error", err, nil)
		equal(t, "drained", time.Since(begin), 200*time.Millisecond)
		equal(t, "incomplete", report.Incomplete, true)
		equal(t, "bytes", report.Stdout.Bytes, 4)
		_, err = proc.outW.Write([]byte("late\n"))
		equal(t, "a late writer", err, io.ErrClosedPipe)
		proc.leaves(nil, nil)
		shut(t, rt)
	})
}

// C170: end-of-file at the very moment the drain ends settles once.
func TestDrainAndEndTogether(t *testing.T) {
	for range 50 {
		inBubble(t, func(t *testing.T) {
			d := remote()
			proc := newProc(&d.journal)
			rt, h := started(t, d, proc)
			time.AfterFunc(200*time.Millisecond, func() { proc.outW.Close(); proc.logW.Close() })
			proc.leaves(nil, nil)
			proc.exitHolding(Outcome{ExitCode: 3})
			report, err := settled(t, h)
			equal(t, "error", err, nil)
			equal(t, "code", report.Outcome.ExitCode, 3)
			shut(t, rt)
		})
	}
}

// C158: a connection that ends without an exit report is no exit. What was
// received stays, and raw streams end with the error.
func TestLostConnection(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := remote()
		proc := newProc(&d.journal)
		d.start = gives(proc)
		rt := New(d, Options{})
		spec := request()
		spec.Stderr = Output{Mode: OutputPipe}
		h := spawned(t, rt, spec)
		proc.outW.Write([]byte("so far"))
		proc.leaves(nil, nil)
		proc.lose()
		_, err := io.ReadAll(h.Pipe(Stderr))
		code(t, "raw stream", err, fault.ExecTransportLost)
		_, err = settled(t, h)
		code(t, "handle", err, fault.ExecTransportLost)
		chunk, _ := h.Collected(Stdout).ReadText(0)
		equal(t, "kept", chunk.Text, "so far")
		shut(t, rt)
	})
}

// C159: an exit report that came before the connection dropped stands.
func TestExitBeforeTheLoss(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := remote()
		proc := newProc(&d.journal)
		rt, h := started(t, d, proc)
		proc.leaves(nil, nil)
		proc.exitHolding(Outcome{ExitCode: 7})
		lost := fault.New(fault.ExecTransportLost, "read", "", "lost")
		proc.outW.CloseWithError(lost)
		proc.logW.Close()
		report, err := settled(t, h)
		equal(t, "error", err, nil)
		equal(t, "code", report.Outcome.ExitCode, 7)
		equal(t, "incomplete", report.Stdout.Incomplete, true)
		equal(t, "why", report.Stdout.Err, error(lost))
		shut(t, rt)
	})
}

// C157, OC-5: a code that cannot be one is a corrupt transport, and the tree is
// stopped.
func TestImpossibleCode(t *testing.T) {
	for _, impossible := range []int{-1, 256, 999} {
		inBubble(t, func(t *testing.T) {
			d := remote()
			proc := newProc(&d.journal)
			rt, h := started(t, d, proc)
			proc.onSignal = func(string) error { proc.leaves(nil, nil); return nil }
			proc.outW.Close()
			proc.logW.Close()
			proc.exitHolding(Outcome{ExitCode: impossible})
			_, err := settled(t, h)
			code(t, "handle", err, fault.ExecTransportCorrupt)
			equal(t, "stopped", d.count("SIGTERM"), 1)
			shut(t, rt)
		})
	}
}

// C133, C210, CR-10: invalid framing is a corrupt transport, unless the program
// was being stopped anyway.
func TestCorruptFraming(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		inBubble(t, func(t *testing.T) {
			d := remote()
			proc := newProc(&d.journal)
			rt, h := started(t, d, proc)
			if stopped {
				h.Terminate()
			}
			proc.leaves(nil, nil)
			proc.outW.CloseWithError(fault.New(fault.ExecTransportCorrupt, "read", "", "half a frame"))
			proc.logW.Close()
			proc.exitHolding(Outcome{})
			_, err := settled(t, h)
			if stopped {
				equal(t, "after a stop", err, nil)
			} else {
				code(t, "handle", err, fault.ExecTransportCorrupt)
			}
			shut(t, rt)
		})
	}
}

// C134: a reader that gives up does not touch the exit facts.
func TestReaderGivesUp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := remote()
		proc := newProc(&d.journal)
		d.start = gives(proc)
		rt := New(d, Options{})
		spec := request()
		spec.Stdout = Output{Mode: OutputInherit, To: failing{}}
		h := spawned(t, rt, spec)
		proc.outW.Write([]byte("x"))
		proc.leaves(nil, nil)
		proc.exit(Outcome{ExitCode: 8})
		report, err := settled(t, h)
		equal(t, "error", err, nil)
		equal(t, "code", report.Outcome.ExitCode, 8)
		equal(t, "why", report.Stdout.Err, errScripted)
		shut(t, rt)
	})
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errScripted }

// unpaused is a world whose transport cannot be paused.
func unpaused() *scripted {
	d := remote()
	d.facts.Pauses = false
	return d
}

// frames writes n bytes as a transport does that cannot be paused.
func frames(w io.Writer, n int) {
	for piece := make([]byte, 1<<20); n > 0; n -= len(piece) {
		w.Write(piece[:min(len(piece), n)])
	}
}

// C216, C217: the ceiling trips at one byte more than 32 MiB, stops the program
// once, fails the stream and keeps the real exit.
func TestUnreadPipe(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := unpaused()
		proc := newProc(&d.journal)
		d.start = gives(proc)
		rt := New(d, Options{})
		spec := request()
		spec.Stdout = Output{Mode: OutputPipe}
		h := spawned(t, rt, spec)
		frames(proc.outW, maxBacklog)
		synctest.Wait()
		equal(t, "stopped at the ceiling", d.count("SIGTERM"), 0)
		proc.outW.Write([]byte{1})
		synctest.Wait()
		equal(t, "stopped above it", d.count("SIGTERM"), 1)
		_, err := h.Pipe(Stdout).Read(make([]byte, 1))
		code(t, "stream", err, fault.ExecOutputOverflow)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		gone, _ := h.WaitForExit(ctx)
		equal(t, "gone before the exit", gone, false)
		proc.exit(Outcome{ExitCode: 143})
		report, err := settled(t, h)
		equal(t, "error", err, nil)
		equal(t, "code", report.Outcome.ExitCode, 143)
		shut(t, rt)
	})
}

// C218: copying to a stalled stream of ours stops, and the stream stays open.
func TestUnreadInherit(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := unpaused()
		proc := newProc(&d.journal)
		d.start = gives(proc)
		rt := New(d, Options{})
		stalled := &stalledWriter{release: make(chan struct{})}
		spec := request()
		spec.Stdout = Output{Mode: OutputInherit, To: stalled}
		h := spawned(t, rt, spec)
		frames(proc.outW, maxBacklog+2<<20)
		synctest.Wait()
		equal(t, "stopped", d.count("SIGTERM"), 1)
		proc.exit(Outcome{ExitCode: 143})
		report, err := settled(t, h)
		equal(t, "error", err, nil)
		code(t, "stream", report.Stdout.Err, fault.ExecOutputOverflow)
		equal(t, "closed", stalled.closed, false)
		close(stalled.release)
		shut(t, rt)
	})
}

type stalledWriter struct {
	release chan struct{}
	closed  bool
}

func (s *stalledWriter) Write(p []byte) (int, error) {
	<-s.release
	return len(p), nil
}

func (s *stalledWriter) Close() error {
	s.closed = true
	return nil
}

// C219: a reader that keeps up never meets the ceiling.
func TestReaderKeepsUp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := unpaused()
		proc := newProc(&d.journal)
		d.start = gives(proc)
		rt := New(d, Options{})
		spec := request()
		spec.Stdout = Output{Mode: OutputPipe}
		h := spawned(t, rt, spec)
		go func() {
			for range 8 {
				proc.outW.Write(make([]byte, 8<<20))
			}
			proc.exit(Outcome{})
		}()
		n, err := io.Copy(io.Discard, h.Pipe(Stdout))
		equal(t, "bytes", n, 64<<20)
		equal(t, "error", err, nil)
		_, err = settled(t, h)
		equal(t, "handle", err, nil)
		shut(t, rt)
	})
}

// C220: a collector is bounded by its cap alone.
func TestCollectorHasNoCeiling(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := unpaused()
		proc := newProc(&d.journal)
		d.start = gives(proc)
		rt := New(d, Options{})
		spec := request()
		spec.Stdout.MaxBytes = 1024
		h := spawned(t, rt, spec)
		frame := bytes.Repeat([]byte{'x'}, 33<<20)
		frame[len(frame)-1] = 'z'
		proc.outW.Write(frame)
		proc.exit(Outcome{})
		report, err := settled(t, h)
		equal(t, "error", err, nil)
		chunk, _ := h.Collected(Stdout).ReadText(0)
		equal(t, "tail", chunk.Text, strings.Repeat("x", 1023)+"z")
		equal(t, "total", report.Stdout.Bytes, 33<<20)
		shut(t, rt)
	})
}

// C222: output that came before anybody could read it counts.
func TestOverflowBeforeTheHandle(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d, p := unpaused(), newPending()
		d.start = p.start
		rt := New(d, Options{})
		spec := request()
		spec.Stdout = Output{Mode: OutputPipe}
		h := spawned(t, rt, spec)
		proc := newProc(&d.journal)
		go frames(proc.outW, maxBacklog+1<<20)
		synctest.Wait()
		p.answer <- answered{proc: proc}
		synctest.Wait()
		equal(t, "stopped", d.count("SIGTERM"), 1)
		proc.exit(Outcome{ExitCode: 143})
		settled(t, h)
		shut(t, rt)
	})
}

// C49, C50, C51: a lookup that is cancelled sends nothing, or returns at once
// while the world is silent; the late answer is dropped.
func TestLookupIsRaced(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := remote()
		answer := make(chan string)
		d.look = func(context.Context, string) (string, error) { return <-answer, nil }
		rt := New(d, Options{})
		reason := errors.New("changed my mind")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(50*time.Millisecond, func() { cancel(reason) })
		begin := time.Now()
		_, err := rt.LookPath(ctx, "node", Env{})
		equal(t, "carries the reason", errors.Is(err, reason), true)
		equal(t, "returned after", time.Since(begin), 50*time.Millisecond)
		answer <- "/bin/node"
		_, err = rt.LookPath(ctx, "node", Env{})
		code(t, "already cancelled", err, fault.ExecCancelled)
		equal(t, "requests", d.count("which"), 1)
		shut(t, rt)
	})
}

// C52: an answer that is not one absolute path is a failure.
func TestLookupAnswers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := remote()
		rt := New(d, Options{})
		for _, answer := range []string{"", "node", "./node", "/bin/a\x00/bin/b"} {
			d.look = func(context.Context, string) (string, error) { return answer, nil }
			_, err := rt.LookPath(t.Context(), "node", Env{})
			code(t, answer, err, fault.ExecTransportCorrupt)
		}
		shut(t, rt)
	})
}

// C54: many lookups leave nothing on a cancellation that they share.
func TestLookupsRetainNothing(t *testing.T) {
	d := remote()
	d.look = func(context.Context, string) (string, error) { return "/bin/sh", nil }
	rt := New(d, Options{})
	shared, cancel := context.WithCancel(t.Context())
	defer cancel()
	assertNoGoroutines(t, func() {
		for range 1000 {
			if _, err := rt.LookPath(&counted{Context: shared}, "sh", Env{}); err != nil {
				t.Fatal(err)
			}
		}
	})
	shut(t, rt)
}
