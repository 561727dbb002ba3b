package remoteexec

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
)

// pending is a start whose answer the test gives later; it ignores ctx, as a
// request in flight does.
type pending struct{ answer chan answered }

type answered struct {
	proc Proc
	err  error
}

func newPending() pending { return pending{make(chan answered, 1)} }

func (p pending) start(context.Context, StartSpec) (Proc, error) {
	a := <-p.answer
	return a.proc, a.err
}

// C199, C100: the handle exists before the session; a write waits for it and is
// delivered once.
func TestWriteWaitsForTheSession(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d, p := remote(), newPending()
		d.start = p.start
		rt := New(d, Options{})
		spec := request()
		spec.Stdin = StdinPipe
		h := spawned(t, rt, spec)
		equal(t, "pid before the start", h.PID(), 0)
		wrote := make(chan error, 1)
		go func() {
			_, err := h.Stdin().Write([]byte("early"))
			wrote <- err
		}()
		synctest.Wait()
		equal(t, "acknowledged before the session", len(wrote), 0)
		proc := newProc(&d.journal)
		p.answer <- answered{proc: proc}
		equal(t, "write", <-wrote, nil)
		<-h.Started()
		equal(t, "pid", h.PID(), 4711)
		equal(t, "delivered once", proc.in.text(), "early")
		proc.exit(Outcome{})
		_, err := settled(t, h)
		equal(t, "outcome", err, nil)
		shut(t, rt)
	})
}

// C101, C200: a refused handshake fails the pending write, the pending close and
// the handle with the same error, and the handle is quiescent.
func TestRefusedStartFailsWhatWaits(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d, p := remote(), newPending()
		d.start = p.start
		rt := New(d, Options{})
		spec := request()
		spec.Stdin, spec.Stdout = StdinPipe, Output{Mode: OutputPipe}
		h := spawned(t, rt, spec)
		wrote, read := make(chan error, 2), make(chan error, 1)
		go func() {
			_, err := h.Stdin().Write([]byte("x"))
			wrote <- err
			wrote <- h.Stdin().Close()
		}()
		go func() {
			_, err := h.Pipe(Stdout).Read(make([]byte, 1))
			read <- err
		}()
		synctest.Wait()
		refused := fault.New(fault.BackendUnreachable, "spawn", "", "refused")
		p.answer <- answered{err: refused}
		report, err := settled(t, h)
		equal(t, "started", report.Started, false)
		for _, got := range []error{err, <-wrote, <-wrote, <-read} {
			equal(t, "failure", got, error(refused))
		}
		gone, err := h.WaitForExit(context.Background())
		equal(t, "gone", gone, true)
		equal(t, "error", err, nil)
		h.Terminate()
		shut(t, rt)
		equal(t, "journal", d.all(), "start prog")
	})
}

// C102, C315, C203: shutdown abandons a stalled handshake at once; a session
// that opens later is terminated, closed and its end observed.
func TestShutdownAbandonsAStalledStart(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d, p := remote(), newPending()
		d.start = p.start
		rt := New(d, Options{})
		spec := request()
		spec.Stdin = StdinPipe
		h := spawned(t, rt, spec)
		wrote := make(chan error, 1)
		go func() {
			_, err := h.Stdin().Write([]byte("x"))
			wrote <- err
		}()
		begin := time.Now()
		shut(t, rt)
		code(t, "pending write", <-wrote, fault.ExecDisposing)
		_, err := settled(t, h)
		code(t, "handle", err, fault.ExecDisposing)
		equal(t, "time on the fake clock", time.Since(begin), 0)
		late := newProc(&d.journal).endsOn("SIGTERM")
		p.answer <- answered{proc: late}
		synctest.Wait()
		equal(t, "journal", d.count("SIGTERM"), 1)
		equal(t, "released", d.count("release"), 1)
		equal(t, "no input", d.count("stdin 1"), 0)
	})
}

// C103: what a producer may write before the handshake is nothing.
func TestNothingIsParkedBeforeTheSession(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d, p := remote(), newPending()
		d.start = p.start
		rt := New(d, Options{})
		spec := request()
		spec.Stdin = StdinPipe
		h := spawned(t, rt, spec)
		taken := make(chan int64, 1)
		go func() {
			n, _ := io.Copy(h.Stdin(), io.LimitReader(zeros{}, 1<<30))
			taken <- n
		}()
		synctest.Wait()
		equal(t, "still waiting", len(taken), 0)
		shut(t, rt)
		equal(t, "acknowledged", <-taken, 0)
		p.answer <- answered{err: errScripted}
	})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// C104, C105, C205, RS-1: a stop that was asked for during the handshake is the
// first thing sent, and no input ever is.
func TestStopBeforeTheSessionGoesFirst(t *testing.T) {
	for _, mode := range []StdinMode{StdinData, StdinPipe} {
		inBubble(t, func(t *testing.T) {
			d, p := remote(), newPending()
			d.start = p.start
			rt := New(d, Options{})
			spec := request()
			spec.Stdin, spec.StdinData = mode, []byte("never")
			h := spawned(t, rt, spec)
			if mode == StdinPipe {
				go h.Stdin().Write([]byte("queued"))
			}
			synctest.Wait()
			h.Terminate()
			p.answer <- answered{proc: newProc(&d.journal).endsOn("SIGTERM")}
			report, err := settled(t, h)
			equal(t, "outcome", report.Outcome, Outcome{Signal: "SIGTERM"})
			equal(t, "error", err, nil)
			shut(t, rt)
			equal(t, "first", d.at(1), "SIGTERM")
			equal(t, "input frames", d.count("stdin 5")+d.count("stdin 6"), 0)
		})
	}
}

// C106: a write after terminate is acknowledged and dropped.
func TestWriteAfterTerminateIsDropped(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := remote()
		proc := newProc(&d.journal)
		d.start = gives(proc)
		rt := New(d, Options{})
		spec := request()
		spec.Stdin = StdinPipe
		h := spawned(t, rt, spec)
		<-h.Started()
		h.Terminate()
		n, err := h.Stdin().Write([]byte("dropped"))
		equal(t, "bytes", n, 7)
		equal(t, "error", err, nil)
		equal(t, "delivered", proc.in.text(), "")
		proc.exit(Outcome{ExitCode: 1})
		settled(t, h)
		_, err = h.Stdin().Write([]byte("x"))
		code(t, "write after the exit", err, fault.ExecSessionExited)
		shut(t, rt)
	})
}

// C107: a transport that fails inside a write or a close ends that operation.
func TestFailingInputEndsTheOperation(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := remote()
		proc := newProc(&d.journal)
		broken := fault.New(fault.ExecTransportLost, "write", "", "broken")
		proc.in.err = broken
		d.start = gives(proc)
		rt := New(d, Options{})
		spec := request()
		spec.Stdin = StdinPipe
		h := spawned(t, rt, spec)
		_, err := h.Stdin().Write([]byte("x"))
		equal(t, "write", err, error(broken))
		equal(t, "close", h.Stdin().Close(), error(broken))
		proc.exit(Outcome{})
		settled(t, h)
		shut(t, rt)
	})
}

// C99: the world has its own copy of what was acknowledged.
func TestInputIsTakenBeforeItIsAcknowledged(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := remote()
		proc := newProc(&d.journal)
		d.start = gives(proc)
		rt := New(d, Options{})
		spec := request()
		spec.Stdin, spec.StdinData = StdinPipe, nil
		h := spawned(t, rt, spec)
		buf := []byte("first")
		h.Stdin().Write(buf)
		copy(buf, "other")
		equal(t, "delivered", proc.in.text(), "first")
		proc.exit(Outcome{})
		settled(t, h)
		batch := request()
		data := []byte("batch")
		second, p := newProc(&d.journal), newPending()
		d.start = p.start
		batch.Stdin, batch.StdinData = StdinData, data
		h = spawned(t, rt, batch)
		copy(data, "xxxxx")
		p.answer <- answered{proc: second}
		<-h.Started()
		synctest.Wait()
		equal(t, "batch", second.in.text(), "batch")
		second.exit(Outcome{})
		settled(t, h)
		shut(t, rt)
	})
}

// C206, RS-2: a cancellation before the start request was sent.
func TestCancelBeforeTheStartRequest(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := remote()
		d.start = func(ctx context.Context, _ StartSpec) (Proc, error) {
			<-ctx.Done()
			return nil, fault.Aborted(ctx, fault.ExecCancelled, "spawn", "")
		}
		rt := New(d, Options{})
		reason := errors.New("changed my mind")
		ctx, cancel := context.WithCancelCause(t.Context())
		h, err := rt.Spawn(ctx, request())
		equal(t, "spawn", err, nil)
		synctest.Wait()
		cancel(reason)
		_, err = settled(t, h)
		code(t, "handle", err, fault.ExecCancelled)
		equal(t, "carries the reason", errors.Is(err, reason), true)
		shut(t, rt)
	})
}

// C204: abandoning a handle that has a session does nothing.
func TestAbandonAfterTheSession(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := remote()
		proc := newProc(&d.journal)
		d.start = gives(proc)
		rt := New(d, Options{})
		h := spawned(t, rt, request())
		<-h.Started()
		equal(t, "abandoned", h.(*handle).abandon(errScripted), false)
		proc.exit(Outcome{ExitCode: 5})
		report, err := settled(t, h)
		equal(t, "error", err, nil)
		equal(t, "code", report.Outcome.ExitCode, 5)
		shut(t, rt)
	})
}

// C195, C202: a process id that cannot be used fails the start, and nothing is
// ever signalled.
func TestUnusableProcessID(t *testing.T) {
	for _, pid := range []int{1, 0, -5} {
		inBubble(t, func(t *testing.T) {
			d := remote()
			proc := newProc(&d.journal)
			proc.pid = pid
			d.start = gives(proc)
			rt := New(d, Options{})
			h := spawned(t, rt, request())
			_, err := settled(t, h)
			code(t, "handle", err, fault.ExecTransportCorrupt)
			h.Terminate()
			shut(t, rt)
			equal(t, "signals", d.count("SIG"), 0)
		})
	}
}

// C211: the program may have ended when its start is confirmed.
func TestExitDuringTheHandshake(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d, p := remote(), newPending()
		d.start = p.start
		rt := New(d, Options{})
		spec := request()
		spec.Stdin, spec.StdinData = StdinData, []byte("x")
		h := spawned(t, rt, spec)
		proc := newProc(&d.journal)
		proc.exit(Outcome{ExitCode: 9})
		p.answer <- answered{proc: proc}
		report, err := settled(t, h)
		equal(t, "error", err, nil)
		equal(t, "code", report.Outcome.ExitCode, 9)
		shut(t, rt)
	})
}

// C83: names that a service reserves are refused by name, or dropped and listed.
func TestReservedNames(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := remote()
		d.facts.ReservedEnv = []string{"PATH", "HOME"}
		var sent StartSpec
		proc := newProc(&d.journal)
		d.start = func(_ context.Context, spec StartSpec) (Proc, error) {
			sent = spec
			return proc, nil
		}
		rt := New(d, Options{})
		spec := request()
		spec.Env = Env{Set: map[string]string{"PATH": "/x", "A": "1"}, Remove: []string{"HOME"}}
		_, err := rt.Spawn(t.Context(), spec)
		code(t, "refused", err, fault.BackendUnsupported)
		equal(t, "named", bytes.Contains([]byte(err.Error()), []byte("PATH, HOME")), true)
		spec.AllowEnvDrop = true
		h := spawned(t, rt, spec)
		proc.exit(Outcome{})
		report, _ := settled(t, h)
		equal(t, "dropped", len(report.EnvDropped), 2)
		equal(t, "sent", len(sent.Set)+len(sent.Remove), 1)
		shut(t, rt)
	})
}
