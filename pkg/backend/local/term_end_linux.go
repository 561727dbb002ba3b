package local

import (
	"cmp"
	"context"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// killProof is how long at least killed processes are looked at before they
// count as survivors.
const killProof = time.Second

// Terminate implements remoteexec.TerminalProc in the order of TT-23: what runs
// below the shell, the shell, and what came up meanwhile.
func (t *term) Terminate(ctx context.Context, grace time.Duration) ([]int, error) {
	t.endBelow(ctx, grace)
	t.endShell(ctx, grace)
	t.endBelow(ctx, grace)
	if left := t.tree.members(); len(left) > 0 {
		return pids(left), nil
	}
	<-t.exit.seen
	t.exit.close()
	t.tree.release()
	return nil, nil
}

// endBelow ends every member but the shell: TERM, grace, KILL, proof.
func (t *term) endBelow(ctx context.Context, grace time.Duration) {
	below := t.below(t.tree.hunt(map[ident]bool{}))
	for _, who := range below {
		pidfdSignal(who, unix.SIGTERM)
	}
	if len(below) == 0 || t.until(ctx, grace, t.quietBelow) {
		return
	}
	known := map[ident]bool{}
	for range huntRounds {
		fresh := t.below(t.tree.hunt(known))
		if len(fresh) == 0 {
			break
		}
		for _, who := range fresh {
			pidfdSignal(who, unix.SIGKILL)
		}
	}
	t.until(ctx, max(grace, killProof), t.quietBelow)
}

// below leaves the shell out and puts children first: the younger a process the
// deeper it sits.
func (t *term) below(all []ident) []ident {
	all = slices.DeleteFunc(all, func(who ident) bool { return who == t.tree.root })
	slices.SortFunc(all, func(a, b ident) int {
		return cmp.Or(cmp.Compare(b.start, a.start), cmp.Compare(b.pid, a.pid))
	})
	return all
}

func (t *term) quietBelow() bool {
	return !slices.ContainsFunc(t.tree.members(), func(s stat) bool { return s.ident() != t.tree.root })
}

// endShell ends the top-level program. An interactive shell ignores TERM, so it
// hears HUP as well (TT-25).
func (t *term) endShell(ctx context.Context, grace time.Duration) {
	for _, step := range []struct {
		signals  []unix.Signal
		patience time.Duration
	}{
		{[]unix.Signal{unix.SIGTERM, unix.SIGHUP}, grace},
		{[]unix.Signal{unix.SIGKILL}, max(grace, killProof)},
	} {
		if t.shellEnded() {
			return
		}
		for _, sig := range step.signals {
			pidfdSignal(t.tree.root, sig)
		}
		t.until(ctx, step.patience, t.shellEnded)
	}
}

func (t *term) shellEnded() bool {
	s, ok := statOf(t.tree.root.pid)
	return !ok || s.ident() != t.tree.root || !s.live()
}

// until looks again and again whether something holds.
func (t *term) until(ctx context.Context, patience time.Duration, holds func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(pollLocal)
	defer tick.Stop()
	for {
		if holds() {
			return true
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return holds()
		}
	}
}
