package local

import (
	"context"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// roots are the started programs of this process whose ids are still held. The
// kernel knows only one parent, so there is one table in a process.
var roots struct {
	mu       sync.Mutex
	reaper   bool
	starting int
	pids     map[int]bool
}

// beginStart announces a root before it exists, and makes this process the
// parent of what its descendants leave behind, so that double forks stay
// visible.
func beginStart() {
	roots.mu.Lock()
	defer roots.mu.Unlock()
	roots.starting++
	if !roots.reaper {
		roots.reaper = true
		roots.pids = map[int]bool{}
		unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	}
}

// endStart enters the root; 0 if none came to be.
func endStart(pid int) {
	roots.mu.Lock()
	defer roots.mu.Unlock()
	roots.starting--
	if pid > 0 {
		roots.pids[pid] = true
	}
}

func dropRoot(pid int) {
	roots.mu.Lock()
	defer roots.mu.Unlock()
	delete(roots.pids, pid)
}

// onlyRoot says that pid is the only program we hold or start, so that an orphan
// in a session of its own that was seen before can come from nowhere else.
func onlyRoot(pid int) bool {
	roots.mu.Lock()
	defer roots.mu.Unlock()
	return roots.starting == 0 && len(roots.pids) == 1 && roots.pids[pid]
}

// tree is a program with all that comes of it. The root leads its own session
// and stays unreaped, so that its id names this tree and nothing else (TE-7).
type tree struct {
	root ident
	mu   sync.Mutex
	// hunted are descendants outside the session that a stop has met: they are
	// members from then on.
	hunted   map[ident]bool
	released bool
}

func newTree(pid int) *tree {
	s, _ := statOf(pid)
	return &tree{root: ident{pid, s.start}, hunted: map[ident]bool{}}
}

// belongs says that a process is a member: of the root's session or group, or
// hunted.
func (t *tree) belongs(s stat) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.released {
		return false
	}
	if s.session == t.root.pid || s.pgrp == t.root.pid {
		return true
	}
	return t.hunted[s.ident()]
}

// members lists the live members; an empty list is exact.
func (t *tree) members() []stat {
	first, known := descendants(os.Getpid())
	if live := t.living(first); len(live) > 0 {
		return live
	}
	if second, _ := descendants(os.Getpid()); known && sameProcesses(first, second) {
		return nil
	}
	return t.living(everyone())
}

// living picks the live members and reaps the dead ones that we adopted.
func (t *tree) living(all []stat) []stat {
	var live []stat
	for _, s := range all {
		switch {
		case !t.belongs(s):
		case s.live():
			live = append(live, s)
		case s.pid != t.root.pid && s.ppid == os.Getpid():
			unix.Wait4(s.pid, nil, unix.WNOHANG, nil)
		}
	}
	return live
}

// hunt finds the live members and everything below them, and adds what has left
// the session to the hunted. It reports what is new since the last call with
// the same set.
func (t *tree) hunt(known map[ident]bool) (fresh []ident) {
	all, ok := descendants(os.Getpid())
	if !ok {
		all = everyone()
	}
	alone := onlyRoot(t.root.pid)
	ours := map[int]bool{t.root.pid: true}
	for grown := true; grown; {
		grown = false
		for _, s := range all {
			if !s.live() || ours[s.pid] || !(t.belongs(s) || ours[s.ppid] || alone && t.isOrphan(s)) {
				continue
			}
			ours[s.pid], grown = true, true
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.released {
		return nil
	}
	for _, s := range all {
		if !s.live() || !ours[s.pid] || known[s.ident()] {
			continue
		}
		known[s.ident()] = true
		fresh = append(fresh, s.ident())
		if s.session != t.root.pid && s.pgrp != t.root.pid {
			t.hunted[s.ident()] = true
		}
	}
	return fresh
}

// isOrphan says that we adopted the process: it is our child, but leads or
// joined a session that is not ours, and is younger than the root.
func (t *tree) isOrphan(s stat) bool {
	own, _ := unix.Getsid(0)
	return s.ppid == os.Getpid() && s.session != own && s.start >= t.root.start
}

// signal sends a signal to the group at once and to each member outside it.
func (t *tree) signal(sig unix.Signal) error {
	err := t.killGroup(sig)
	for _, who := range t.hunt(map[ident]bool{}) {
		if s, ok := statOf(who.pid); ok && s.start == who.start && s.pgrp != t.root.pid {
			if outside := pidfdSignal(who, sig); err == nil && outside != unix.ESRCH {
				err = outside
			}
		}
	}
	return err
}

// huntRounds bounds the scans for one freeze; a storm of forking processes is
// still after two.
const huntRounds = 50

// kill freezes the tree until a scan finds nothing new, kills it, and looks
// again until nothing lives or ctx ends.
func (t *tree) kill(ctx context.Context) error {
	for {
		err := t.freezeAndKill()
		if len(t.members()) == 0 || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(2 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

func (t *tree) freezeAndKill() error {
	known := map[ident]bool{}
	t.killGroup(unix.SIGSTOP)
	for range huntRounds {
		fresh := t.hunt(known)
		if len(fresh) == 0 {
			break
		}
		for _, who := range fresh {
			pidfdSignal(who, unix.SIGSTOP)
		}
	}
	err := t.killGroup(unix.SIGKILL)
	for who := range known {
		if each := pidfdSignal(who, unix.SIGKILL); err == nil && each != unix.ESRCH {
			err = each
		}
	}
	return err
}

// release gives the root's id back, once its end has been seen. The tree names
// nothing afterwards.
func (t *tree) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.released {
		return
	}
	t.released = true
	unix.Wait4(t.root.pid, nil, unix.WNOHANG, nil)
	dropRoot(t.root.pid)
}

// killGroup signals the root's group, while its id is ours.
func (t *tree) killGroup(sig unix.Signal) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.released {
		return unix.ESRCH
	}
	return unix.Kill(-t.root.pid, sig)
}

// pids gives the ids of processes in order.
func pids(all []stat) []int {
	out := make([]int, 0, len(all))
	for _, s := range all {
		out = append(out, s.pid)
	}
	slices.Sort(out)
	return out
}
