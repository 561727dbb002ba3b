package remoteexec

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
)

// minProof is how long at least a killed tree is looked at before it counts as
// surviving: a shorter grace says how patient TERM is, not how fast a machine
// buries its dead.
const minProof = time.Second

// tree is the process tree of one started program: whether it lives, and the
// ladder that ends it (remoteexec.md 10).
type tree struct {
	proc   Proc
	grace  time.Duration
	poll   time.Duration
	exited <-chan struct{} // the root's end is known
	onGone func()

	// use is held for reading by every call to proc and for writing while it is
	// released, so that nothing is signalled or probed after that (TE-4).
	use  sync.RWMutex
	gone bool

	mu      sync.Mutex
	running chan struct{} // closed at the end of the ladder that runs or ran last
	failure error         // of that ladder
}

// isGone says that absence has been observed.
func (t *tree) isGone() bool {
	t.use.RLock()
	defer t.use.RUnlock()
	return t.gone
}

// bury records absence for good. What is held is released once the root's end
// has been seen too: that may still be under way.
func (t *tree) bury() {
	t.use.Lock()
	first := !t.gone
	t.gone = true
	t.use.Unlock()
	if !first {
		return
	}
	t.onGone()
	if t.rootEnded() {
		t.proc.Release()
		return
	}
	go func() {
		<-t.exited
		t.proc.Release()
	}()
}

// probe looks at the tree: gone, or its live members.
func (t *tree) probe(ctx context.Context) (gone bool, members []int, err error) {
	members, err = t.members(ctx)
	if fault.Is(err, fault.BackendWorldGone) || err == nil && len(members) == 0 {
		t.bury()
		return true, nil, nil
	}
	return false, members, err
}

func (t *tree) members(ctx context.Context) ([]int, error) {
	t.use.RLock()
	defer t.use.RUnlock()
	if t.gone {
		return nil, nil
	}
	return t.proc.Members(ctx)
}

// signal delivers to the live tree.
func (t *tree) signal(ctx context.Context, name string) error {
	t.use.RLock()
	defer t.use.RUnlock()
	if t.gone {
		return nil
	}
	return t.proc.Signal(ctx, name)
}

// terminate begins the ladder, unless one runs, one has succeeded, or the tree
// is gone; a failed one is tried again (TE-3, TE-4, TE-12). It gives the channel
// that is closed at its end.
func (t *tree) terminate() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running != nil && (!isClosed(t.running) || t.failure == nil) {
		return t.running
	}
	end := make(chan struct{})
	t.running = end
	if t.isGone() {
		close(end)
		return end
	}
	t.failure = nil
	go func() {
		err := t.ladder()
		t.mu.Lock()
		t.failure = err
		t.mu.Unlock()
		close(end)
	}()
	return end
}

// verdict gives the ladder's channel, or nil if none was begun, and the failure
// of one that has ended.
func (t *tree) verdict() (<-chan struct{}, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running == nil {
		return nil, nil
	}
	return t.running, t.failure
}

// ladder is TERM, grace, KILL, proof.
func (t *tree) ladder() error {
	ctx := context.Background()
	if own, ok := t.proc.(Terminator); ok {
		return t.worldsLadder(ctx, own)
	}
	if t.rootEnded() {
		if gone, _, _ := t.probe(ctx); gone {
			return nil
		}
	}
	if gone, err := t.tier(ctx, "SIGTERM", t.grace); gone || fault.Is(err, fault.ExecTransportLost) {
		return t.unproven(nil, err)
	}
	gone, err := t.tier(ctx, "SIGKILL", max(t.grace, minProof))
	if gone {
		return nil
	}
	members, probeErr := t.members(ctx)
	if err == nil {
		err = probeErr
	}
	return t.unproven(members, err)
}

// worldsLadder lets the world do it.
func (t *tree) worldsLadder(ctx context.Context, own Terminator) error {
	survivors, err := own.Terminate(ctx, t.grace)
	if fault.Is(err, fault.BackendWorldGone) || err == nil && len(survivors) == 0 {
		t.bury()
		return nil
	}
	return t.unproven(survivors, err)
}

// tier sends one signal and looks until the tree is gone or patience ends. A
// failed delivery proves nothing (TE-12) and is reported beside.
func (t *tree) tier(ctx context.Context, signal string, patience time.Duration) (gone bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = t.signal(ctx, signal)
	switch {
	case fault.Is(err, fault.BackendWorldGone):
		t.bury()
		return true, nil
	case fault.Is(err, fault.ExecTransportLost):
		return false, err
	}
	return t.watch(ctx), err
}

// watch probes from the root's end on until the tree is gone or ctx ends.
func (t *tree) watch(ctx context.Context) (gone bool) {
	select {
	case <-t.exited:
	case <-ctx.Done():
		return false
	}
	tick := time.NewTicker(t.poll)
	defer tick.Stop()
	for {
		if gone, _, _ := t.probe(ctx); gone {
			return true
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
}

// unproven is the failure of a ladder; nil if the tree is gone after all.
func (t *tree) unproven(survivors []int, err error) error {
	if t.isGone() {
		return nil
	}
	what := "its processes cannot be proven gone"
	if len(survivors) > 0 {
		what = fmt.Sprintf("processes %v survived", survivors)
	}
	return fault.Wrap(err, fault.ExecCleanupFailed, "terminate", "", "terminate process %d: %s", t.proc.PID(), what)
}

func (t *tree) rootEnded() bool { return isClosed(t.exited) }

// wait waits until the tree is quiescent (TE-8).
func (t *tree) wait(ctx context.Context) (bool, error) {
	switch {
	case t.isGone():
		return true, nil
	case ctx.Err() != nil:
		return false, nil
	}
	select {
	case <-t.exited:
	case <-ctx.Done():
		return false, nil
	}
	if q, ok := t.proc.(Quiescer); ok {
		return t.waitInWorld(ctx, q)
	}
	return t.waitPolling(ctx)
}

// waitInWorld asks once, but lets a ladder that runs finish first.
func (t *tree) waitInWorld(ctx context.Context, q Quiescer) (bool, error) {
	if done, err := t.joinLadder(ctx); done || err != nil || ctx.Err() != nil {
		return done, err
	}
	t.use.RLock()
	gone, err := t.gone, error(nil)
	if !gone {
		err = q.WaitQuiescent(ctx)
	}
	t.use.RUnlock()
	switch {
	case err == nil || fault.Is(err, fault.BackendWorldGone):
		t.bury()
		return true, nil
	case ctx.Err() != nil:
		return false, nil
	}
	return false, t.unproven(nil, err)
}

// waitPolling looks again and again. Observation that fails for a whole grace,
// and a ladder that failed, end the wait.
func (t *tree) waitPolling(ctx context.Context) (bool, error) {
	var blind time.Time
	for {
		if done, err := t.joinLadder(ctx); done || ctx.Err() != nil {
			return done, nil
		} else if err != nil {
			if gone, _, _ := t.probe(ctx); gone {
				return true, nil
			}
			return false, err
		}
		gone, _, err := t.probe(ctx)
		switch {
		case gone:
			return true, nil
		case ctx.Err() != nil:
			return false, nil
		case err == nil:
			blind = time.Time{}
		case blind.IsZero():
			blind = time.Now()
		case time.Since(blind) > t.grace || fault.Is(err, fault.ExecTransportLost):
			return false, t.unproven(nil, err)
		}
		select {
		case <-time.After(t.poll):
		case <-ctx.Done():
			return false, nil
		}
	}
}

// joinLadder waits for a ladder that runs: done if it proved the tree gone, or
// its failure.
func (t *tree) joinLadder(ctx context.Context) (done bool, err error) {
	end, _ := t.verdict()
	if end == nil {
		return t.isGone(), nil
	}
	select {
	case <-end:
	case <-ctx.Done():
		return false, nil
	}
	_, err = t.verdict()
	return t.isGone(), err
}

// end implements owned for a tree whose handle has settled (DI-4).
func (t *tree) end(ctx context.Context) error {
	t.terminate()
	gone, err := t.wait(ctx)
	if !gone && err == nil {
		return cancelled(ctx, "shutdown")
	}
	return err
}

// hardKill is the last pass (HX-2). Whoever holds the lock for writing buries
// the tree.
func (t *tree) hardKill() {
	if !t.use.TryRLock() {
		return
	}
	defer t.use.RUnlock()
	if k, ok := t.proc.(HardKiller); ok && !t.gone {
		k.HardKill()
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
