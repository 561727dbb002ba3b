package remoteexec

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
)

// started gives a handle whose program runs in a scripted world.
func started(t *testing.T, d *scripted, proc Proc) (Runtime, Handle) {
	t.Helper()
	d.start = gives(proc)
	rt := New(d, Options{})
	h := spawned(t, rt, request())
	<-h.Started()
	synctest.Wait()
	return rt, h
}

// C177: once the tree is known gone nothing is signalled or probed.
func TestGoneTreeIsLeftAlone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := remote()
		proc := newProc(&d.journal)
		rt, h := started(t, d, proc)
		proc.exit(Outcome{})
		settled(t, h)
		h.WaitForExit(context.Background())
		before := d.all()
		for range 5 {
			h.Terminate()
			h.WaitForExit(context.Background())
			h.Survivors()
		}
		rt.HardStop()
		shut(t, rt)
		equal(t, "journal", d.all(), before)
	})
}

// C178: a group that vanished after TERM is not killed, whoever has its id now.
func TestVanishedGroupIsNotKilled(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := remote()
		proc := newProc(&d.journal).endsOn("SIGTERM")
		rt, h := started(t, d, proc)
		h.Terminate()
		settled(t, h)
		h.WaitForExit(context.Background())
		proc.leaves([]int{4711}, nil) // somebody else
		time.Sleep(time.Minute)
		shut(t, rt)
		equal(t, "kills", d.count("SIGKILL"), 0)
	})
}

// C172, C173: TERM, one grace, KILL; asking again changes nothing.
func TestLadderOnTheClock(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := remote()
		proc := newProc(&d.journal).endsOn("SIGKILL")
		rt, h := started(t, d, proc)
		begin := time.Now()
		h.Terminate()
		time.Sleep(150 * time.Millisecond)
		h.Terminate()
		report, _ := settled(t, h)
		equal(t, "outcome", report.Outcome, Outcome{Signal: "SIGKILL"})
		equal(t, "killed after", time.Since(begin), 200*time.Millisecond)
		equal(t, "terms", d.count("SIGTERM"), 1)
		shut(t, rt)
	})
}

// C192, TE-12: TERM that cannot be delivered leads to KILL; if that fails too the
// wait fails, and after a repair a second terminate succeeds.
func TestFailedDeliveryIsNoProof(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := remote()
		proc := newProc(&d.journal)
		proc.onSignal = func(string) error { return errScripted }
		rt, h := started(t, d, proc)
		h.Terminate()
		time.Sleep(time.Minute)
		equal(t, "both were tried", d.count("SIGTERM")+d.count("SIGKILL"), 2)
		proc.exitHolding(Outcome{ExitCode: 1})
		proc.outW.Close()
		proc.logW.Close()
		gone, err := h.WaitForExit(context.Background())
		equal(t, "gone", gone, false)
		code(t, "wait", err, fault.ExecCleanupFailed)
		proc.onSignal = func(string) error { proc.leaves(nil, nil); return nil }
		h.Terminate()
		gone, err = h.WaitForExit(context.Background())
		equal(t, "gone after the repair", gone, true)
		equal(t, "error", err, nil)
		shut(t, rt)
	})
}

// C193: a kill that says yes proves nothing while the group lives.
func TestSurvivorsAreNamed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := remote()
		proc := newProc(&d.journal)
		rt, h := started(t, d, proc)
		proc.leaves([]int{4712, 4713}, nil)
		proc.outW.Close()
		proc.logW.Close()
		proc.exitHolding(Outcome{})
		settled(t, h)
		h.Terminate()
		_, err := h.WaitForExit(context.Background())
		code(t, "wait", err, fault.ExecCleanupFailed)
		equal(t, "named", strings.Contains(err.Error(), "[4712 4713]"), true)
		equal(t, "survivors", len(h.Survivors()), 2)
		code(t, "shutdown", rt.Shutdown(context.Background()), fault.ExecCleanupFailed)
		proc.leaves(nil, nil)
		shut(t, rt)
	})
}

// C194: a world that is gone proves quiescence.
func TestGoneWorldIsQuiescent(t *testing.T) {
	gone := fault.New(fault.BackendWorldGone, "signal", "", "the sandbox does not exist")
	for _, during := range []string{"probe", "signal"} {
		inBubble(t, func(t *testing.T) {
			d := remote()
			proc := newProc(&d.journal)
			rt, h := started(t, d, proc)
			if during == "probe" {
				proc.leaves(nil, gone)
			} else {
				proc.onSignal = func(string) error { return gone }
			}
			proc.outW.Close()
			proc.logW.Close()
			if during == "probe" {
				proc.exitHolding(Outcome{})
			}
			h.Terminate()
			synctest.Wait()
			if during == "signal" {
				proc.exitHolding(Outcome{})
			}
			ok, err := h.WaitForExit(context.Background())
			equal(t, "gone", ok, true)
			equal(t, "error", err, nil)
			shut(t, rt)
		})
	}
}

// C183: an expired bound asks nothing of the world.
func TestExpiredBoundSendsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := remote()
		proc := newProc(&d.journal)
		rt, h := started(t, d, proc)
		expired, cancel := context.WithCancel(t.Context())
		cancel()
		before := d.all()
		gone, err := h.WaitForExit(expired)
		equal(t, "gone", gone, false)
		equal(t, "error", err, nil)
		equal(t, "journal", d.all(), before)
		proc.exit(Outcome{})
		settled(t, h)
		h.WaitForExit(context.Background())
		gone, _ = h.WaitForExit(expired)
		equal(t, "gone tree, expired bound", gone, true)
		shut(t, rt)
	})
}

// C187: a bound that ends while the wait begins ends the wait.
func TestBoundEndsDuringTheProbe(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := remote()
		proc := newProc(&d.journal)
		rt, h := started(t, d, proc)
		proc.outW.Close()
		proc.logW.Close()
		proc.exitHolding(Outcome{})
		settled(t, h)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		gone, err := h.WaitForExit(ctx)
		equal(t, "gone", gone, false)
		equal(t, "error", err, nil)
		proc.leaves(nil, nil)
		shut(t, rt)
	})
}

// C186: many waits and many finished handles leave nothing on a cancellation
// that they share.
func TestSharedCancellationRetainsNothing(t *testing.T) {
	d := remote()
	rt := New(d, Options{})
	shared, cancel := context.WithCancel(t.Context())
	defer cancel()
	ctx := &counted{Context: shared}
	assertNoGoroutines(t, func() {
		for range 2000 {
			proc := newProc(&d.journal)
			d.start = gives(proc)
			h, err := rt.Spawn(ctx, request())
			if err != nil {
				t.Fatal(err)
			}
			<-h.Started()
			bound, end := context.WithTimeout(ctx, time.Microsecond)
			h.WaitForExit(bound)
			end()
			proc.exit(Outcome{})
			<-h.Done()
			if gone, err := h.WaitForExit(ctx); !gone || err != nil {
				t.Fatal(gone, err)
			}
		}
	})
	shut(t, rt)
	equal(t, "owned", len(rt.(*processes).ownedNow()), 0)
}

// assertNoGoroutines says that what f started has ended soon after it.
func assertNoGoroutines(t *testing.T, f func()) {
	t.Helper()
	before := runtime.NumGoroutine()
	f()
	deadline := time.Now().Add(30 * time.Second)
	for runtime.NumGoroutine() > before && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines are left, %d before", n, before)
	}
}

// counted is a context of a type of its own, so that a listener on it is a
// goroutine that the test can count.
type counted struct{ context.Context }

// worldly is a program whose world runs the ladder and the wait itself.
type worldly struct {
	*fakeProc
	survivors []int
	err       error
}

func (w *worldly) Terminate(_ context.Context, grace time.Duration) ([]int, error) {
	w.j.add("terminate %v", grace)
	if w.err == nil && len(w.survivors) == 0 {
		w.exit(Outcome{ExitCode: 143})
	}
	return w.survivors, w.err
}

func (w *worldly) WaitQuiescent(ctx context.Context) error {
	w.j.add("wait")
	<-w.ended
	return nil
}

// C205, C312: a world with a ladder of its own gets one request with the grace.
func TestWorldsOwnLadder(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := remote()
		proc := &worldly{fakeProc: newProc(&d.journal)}
		rt, h := started(t, d, proc)
		h.Terminate()
		h.Terminate()
		report, err := settled(t, h)
		equal(t, "outcome", report.Outcome, Outcome{ExitCode: 143})
		equal(t, "error", err, nil)
		gone, _ := h.WaitForExit(context.Background())
		equal(t, "gone", gone, true)
		shut(t, rt)
		synctest.Wait()
		equal(t, "journal", d.all(), "start prog, terminate 200ms, release")
	})
}

// TE-8 with a world that waits by itself: one request, no polling.
func TestWorldsOwnWait(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := remote()
		proc := &worldly{fakeProc: newProc(&d.journal)}
		rt, h := started(t, d, proc)
		proc.exit(Outcome{})
		settled(t, h)
		gone, err := h.WaitForExit(context.Background())
		equal(t, "gone", gone, true)
		equal(t, "error", err, nil)
		shut(t, rt)
		equal(t, "waits", d.count("wait"), 1)
		equal(t, "probes", d.count("probe"), 0)
	})
}

// C208: when nothing can be known of a program any more its tree is ended first;
// if that fails as well both are reported, and a retry works.
func TestLostMonitoringRollsBack(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := remote()
		proc := newProc(&d.journal)
		failing := true
		proc.onSignal = func(string) error {
			if failing {
				return errScripted
			}
			proc.leaves(nil, nil)
			return nil
		}
		rt, h := started(t, d, proc)
		proc.lose()
		_, err := settled(t, h)
		code(t, "handle", err, fault.ExecTransportLost)
		equal(t, "both", errors.Is(err, errScripted), true)
		failing = false
		h.Terminate()
		gone, err := h.WaitForExit(context.Background())
		equal(t, "gone", gone, true)
		equal(t, "error", err, nil)
		shut(t, rt)
	})
}

// C312, C313: every clean-up ends before anything is reported; one failure is
// reported as it is, two as one.
func TestShutdownWaitsForAllAndReports(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := remote()
		rt := New(d, Options{})
		failing := func() *worldly {
			proc := &worldly{fakeProc: newProc(&d.journal), err: errScripted}
			proc.exit(Outcome{})
			return proc
		}
		d.start = gives(failing())
		settled(t, spawned(t, rt, request()))
		slow := newProc(&d.journal)
		slow.onSignal = func(string) error {
			time.AfterFunc(25*time.Millisecond, func() { slow.exit(Outcome{}) })
			return nil
		}
		d.start = gives(slow)
		h := spawned(t, rt, request())
		<-h.Started()
		err := rt.Shutdown(context.Background())
		equal(t, "the sibling settled", isClosed(h.Done()), true)
		code(t, "one failure", err, fault.ExecCleanupFailed)
		equal(t, "as it is", errors.Is(err, errScripted), true)
	})
	inBubble(t, func(t *testing.T) {
		first, second := errors.New("first"), errors.New("second")
		err := aggregate([]error{nil, first, second})
		equal(t, "has the first", errors.Is(err, first), true)
		equal(t, "has the second", errors.Is(err, second), true)
		equal(t, "one", aggregate([]error{nil, first}), first)
		equal(t, "none", aggregate([]error{nil, nil}), nil)
	})
}

// mortal is a program that HardStop reaches.
type mortal struct {
	*fakeProc
	panics bool
}

func (m *mortal) HardKill() {
	m.j.add("hard")
	if m.panics {
		panic("scripted")
	}
}

// C319: one failing target does not save the others from the last pass.
func TestHardStopContainsFailures(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := remote()
		rt := New(d, Options{})
		var all []*mortal
		for i := range 3 {
			proc := &mortal{fakeProc: newProc(&d.journal), panics: i == 1}
			all = append(all, proc)
			d.start = gives(proc)
			<-spawned(t, rt, request()).Started()
		}
		rt.HardStop()
		equal(t, "hard kills", d.count("hard"), 3)
		for _, proc := range all {
			proc.exit(Outcome{})
		}
		shut(t, rt)
	})
}
