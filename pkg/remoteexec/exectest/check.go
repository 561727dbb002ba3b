package exectest

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"
)

// Verdict is what Check says of a case. Outcome is "passed", "failed" or
// "not-applicable"; Reason says why it is not the first.
type Verdict struct {
	Case     Case
	Outcome  string
	Reason   string
	Duration time.Duration
}

// Check runs the suite without the testing package, one case after the other,
// and reports each. It ends early when ctx ends, with its cause.
func Check(ctx context.Context, b Backend, report func(Verdict)) error {
	var broken error
	outer := &check{ctx: ctx, name: "suite"}
	outer.run(func() {
		inspector, _ := b.Open(outer)
		for _, c := range Cases() {
			if ctx.Err() != nil {
				broken = context.Cause(ctx)
				return
			}
			t, start := &check{ctx: ctx, name: c.ID}, time.Now()
			t.run(func() { RunCase(t, b, c, inspector) })
			res := t.result(c)
			res.Duration = time.Since(start)
			report(res)
		}
	})
	if broken == nil && outer.failed != "" {
		broken = fmt.Errorf("the suite cannot begin: %s", outer.failed)
	}
	return broken
}

// check is a T outside of the testing package. It remembers the first failure.
type check struct {
	ctx     context.Context
	name    string
	mu      sync.Mutex
	failed  string
	skipped string
	cleanup []func()
}

// run calls f in a goroutine of its own, which a fatal failure ends, and then
// cleans up, what was registered last first.
func (c *check) run(f func()) {
	for _, step := range []func(){f, c.clean} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			step()
		}()
		<-done
	}
}

func (c *check) clean() {
	for _, f := range slices.Backward(c.cleanup) {
		f()
	}
}

func (c *check) result(of Case) Verdict {
	res := Verdict{Case: of, Outcome: "passed"}
	switch {
	case c.failed != "":
		res.Outcome, res.Reason = "failed", c.failed
	case c.skipped != "":
		res.Outcome, res.Reason = "not-applicable", c.skipped
	}
	return res
}

func (c *check) Helper()                  {}
func (c *check) Name() string             { return c.name }
func (c *check) Context() context.Context { return c.ctx }
func (c *check) Logf(string, ...any)      {}

func (c *check) Cleanup(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cleanup = append(c.cleanup, f)
}

func (c *check) Errorf(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed == "" {
		c.failed = fmt.Sprintf(format, args...)
	}
}

func (c *check) Fatalf(format string, args ...any) {
	c.Errorf(format, args...)
	runtime.Goexit()
}

func (c *check) Skipf(format string, args ...any) {
	c.skipped = fmt.Sprintf(format, args...)
	runtime.Goexit()
}
