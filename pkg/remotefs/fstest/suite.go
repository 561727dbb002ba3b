// Package fstest is the suite of the file contract: numbered cases that every
// backend, every client of a protocol and every wrapper passes. Run hands them
// to the testing package; Check runs them in a program.
//
// A case leans on no other case. It is left out only for a typed fact about the
// backend, and then says so. The numbers are those of the contract's published
// specification.
package fstest

import (
	"context"
	"fmt"
	"time"

	"github.com/afield-dev/afield/pkg/remotefs"
)

// Backend is what the suite needs to know of a backend.
type Backend struct {
	// Facts are those of the driver.
	Facts remotefs.Facts
	// Files are the files under test.
	Files remotefs.FS
	// Another opens the same world once more, as another process of this host
	// would: with locks of its own over the same state directory. Nil leaves out
	// the cases of many processes.
	Another func() (remotefs.FS, error)
	// Driver is the driver behind Files; nil where it cannot be reached. Cases
	// that act between two steps put their own FS over it.
	Driver remotefs.Driver
	// World makes what a case finds, without the contract's help.
	World World
	// Dir is an empty directory of the world for the suite, absolute and
	// physical. The suite makes what it needs below it and removes that.
	Dir string
	// StateDir is a directory of this host for ledgers.
	StateDir string
	// Root: the user of the file service is not bound by permission bits.
	Root bool
	// Rounds is how often a race is run; 0 = 20.
	Rounds int
	// Only chooses cases; nil = all.
	Only func(Case) bool
}

// TB is the part of *testing.T that cases use.
type TB interface {
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}

// runner is *testing.T, without making every program that can run the suite
// carry the testing package.
type runner[T TB] interface {
	TB
	Run(name string, f func(T)) bool
}

// Case is one row of the specification, or what is closely related of several.
type Case struct {
	Num  int
	Name string // a sentence
	On   Group
	Need Need
	run  func(e *env)
}

// Group says which backends a case is for.
type Group int

// The groups: every backend, those whose dangling links have an identity of
// their own (L), and those that follow them (R).
const (
	All Group = iota
	L
	R
)

// Need says what a case cannot do without.
type Need int

// What a case may need; they can be added.
const (
	// Unprivileged: permission bits bind the user of the file service.
	Unprivileged Need = 1 << iota
	// Mounts: the World is a Mounter.
	Mounts
	// Steps: the driver can be reached, to act between two steps.
	Steps
	// Processes: the world can be opened a second time.
	Processes
	// Exact: the version shows each change, also one of the same size within the
	// same second.
	Exact
)

// Cases gives all cases in the order of their numbers.
func Cases() []Case {
	var all []Case
	for _, part := range [][]Case{
		identityCases(), urlCases(), statCases(), listCases(), readCases(), bytesCases(), writeCases(),
		raceCases(), editCases(), concurrencyCases(), fenceCases(), windowCases(), policyCases(),
	} {
		all = append(all, part...)
	}
	return all
}

// NotApplicable gives why a case is left out for a backend, "" = it is not.
func (b Backend) NotApplicable(c Case) string {
	switch {
	case b.Only != nil && !b.Only(c):
		return "it was not asked for"
	case c.On == L && b.Facts.FollowsDangling:
		return "dangling links have the identity of what they name"
	case c.On == R && !b.Facts.FollowsDangling:
		return "dangling links have an identity of their own"
	case c.Need&Unprivileged != 0 && (b.Root || b.Facts.IgnoresModes):
		return "permission bits do not bind the user of the file service"
	case c.Need&Exact != 0 && b.Facts.WeakVersions:
		return "a change of the same size within a second does not show in the version"
	case c.Need&Steps != 0 && b.Driver == nil:
		return "the driver cannot be reached"
	case c.Need&Processes != 0 && b.Another == nil:
		return "the world is opened once"
	}
	if _, able := b.World.(Mounter); c.Need&Mounts != 0 && !able {
		return "nothing can be mounted"
	}
	return ""
}

// Run runs the suite as sub-tests of t, which is a *testing.T.
func Run[T runner[T]](t T, b Backend) {
	for _, c := range Cases() {
		if b.NotApplicable(c) == "" {
			t.Run(fmt.Sprintf("%03d %s", c.Num, c.Name), func(t T) { run(t, b, c) })
		}
	}
}

// Result is what Check says of a case. Outcome is "passed", "failed" or
// "not-applicable"; Reason says why it is not the first.
type Result struct {
	Case     Case
	Outcome  string
	Reason   string
	Duration time.Duration
}

// Check runs the suite without the testing package and reports each case. It
// ends early when ctx ends, with its cause.
func Check(ctx context.Context, b Backend, report func(Result)) error {
	for _, c := range Cases() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		res := Result{Case: c, Outcome: "not-applicable", Reason: b.NotApplicable(c)}
		if res.Reason == "" {
			res = attempt(b, c)
		}
		report(res)
	}
	return nil
}

// attempt runs one case in a goroutine of its own, which a fatal failure ends.
func attempt(b Backend, c Case) Result {
	p, start := &protocol{}, time.Now()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if r := recover(); r != nil && p.failed == "" {
				p.failed = fmt.Sprintf("what came back made the case break: %v", r)
			}
		}()
		run(p, b, c)
	}()
	<-done
	res := Result{Case: c, Outcome: "passed", Duration: time.Since(start)}
	switch {
	case p.failed != "":
		res.Outcome, res.Reason = "failed", p.failed
	case p.skipped != "":
		res.Outcome, res.Reason = "not-applicable", p.skipped
	}
	return res
}
