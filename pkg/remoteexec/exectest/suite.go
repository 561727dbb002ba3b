// Package exectest is the suite of numbered cases of the process contract
// (remoteexec.md 21). Every backend, the protocol's client and every wrapper of
// a Runtime pass it; a backend is excused from a case only by one of its Facts.
//
// The suite works through the Runtime alone: what it must prepare or look at in
// the world it does by running small programs there, so a backend's test is one
// call of Run with a function that opens a Runtime.
package exectest

import (
	"context"
	"slices"

	"github.com/afield-dev/afield/pkg/remoteexec"
)

// T is what a case needs of its runner; *testing.T is one.
type T interface {
	Helper()
	Name() string
	Context() context.Context
	Cleanup(func())
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}

// Runner is a T that runs parts of itself; *testing.T is one.
type Runner[R any] interface {
	T
	Run(name string, f func(R)) bool
	Parallel()
}

// Backend is what the suite needs of the backend under test.
type Backend struct {
	// Open gives a Runtime of the world and an empty directory there that the
	// case may fill, which is also the base of lookups (LK-7). The suite ends the
	// Runtime; whoever opened it removes the directory.
	Open func(t T) (rt remoteexec.Runtime, dir string)
	// Serial keeps cases from running beside each other.
	Serial bool
}

// Case is one numbered case.
type Case struct {
	// ID is the number, as "C15".
	ID string
	// Name is a sentence about what must hold.
	Name string
	// Excuse gives the fact that excuses a backend, or "".
	Excuse func(f remoteexec.Facts) string
	// Alone: the case looks at our own memory, so nothing may run beside it.
	Alone bool
	// Run does the case; it leans on no other case.
	Run func(w *World)
}

// Cases gives the cases that run on a real backend, in the order of the
// specification.
func Cases() []Case {
	var all []Case
	for _, part := range [][]Case{
		requestCases(), programCases(), lookupCases(), cwdCases(), envCases(), stdinCases(), outputCases(),
		spillCases(), exitCases(), drainCases(), terminateCases(), terminalCases(), shellCases(), shutdownCases(),
	} {
		all = append(all, part...)
	}
	return all
}

// Run runs every case as a part of t.
func Run[R Runner[R]](t R, b Backend) {
	inspector, _ := b.Open(t)
	t.Cleanup(func() { inspector.Shutdown(context.Background()) })
	for _, c := range Cases() {
		t.Run(c.ID+" "+c.Name, func(t R) {
			if !b.Serial && !c.Alone {
				t.Parallel()
			}
			RunCase(t, b, c, inspector)
		})
	}
}

// RunCase runs one case on a Runtime of its own. inspector is another Runtime of
// the same world, which looks for what the case left behind (T-4).
func RunCase(t T, b Backend, c Case, inspector remoteexec.Runtime) {
	if c.Excuse != nil {
		if why := c.Excuse(inspector.Facts()); why != "" {
			t.Skipf("%s is excused: %s", c.ID, why)
		}
	}
	rt, dir := b.Open(t)
	w := newWorld(t, rt, dir, inspector)
	defer w.finish()
	c.Run(w)
}

// remoteOnly excuses a world that is this machine.
func remoteOnly(f remoteexec.Facts) string {
	if !f.Remote {
		return "the world is this machine"
	}
	return ""
}

// localOnly excuses worlds elsewhere.
func localOnly(f remoteexec.Facts) string {
	if f.Remote {
		return "the case is about this machine"
	}
	return ""
}

// needsSignals excuses worlds that report no signals.
func needsSignals(f remoteexec.Facts) string {
	if !f.Signals {
		return "this world reports no signals"
	}
	return ""
}

// needsPath excuses worlds whose service reserves PATH (EN-11).
func needsPath(f remoteexec.Facts) string {
	if slices.Contains(f.ReservedEnv, "PATH") {
		return "PATH cannot be set for a program of this world"
	}
	return ""
}

// needsPauses excuses worlds that cannot be paused.
func needsPauses(f remoteexec.Facts) string {
	if !f.Pauses {
		return "this world cannot be paused"
	}
	return ""
}
