package fstest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// watchdog is how long a case waits for what must come.
const watchdog = time.Minute

// concurrencyCases are table J, but for the cases that a process must be killed
// for.
func concurrencyCases() []Case {
	return []Case{
		{224, "of two guarded writes one succeeds", All, 0, func(e *env) {
			e.file("f", "base")
			v := e.version("f")
			e.oneWins(fault.FSStaleVersion, e.put("f", guarded(want("one"), v)), e.put("f", guarded(want("two"), v)))
		}},
		{225, "of two guarded edits, and of a write and an edit, one succeeds", All, 0, func(e *env) {
			e.file("f", "base")
			v := e.version("f")
			e.oneWins(fault.FSStaleVersion, e.alter("f", "base", "one", v), e.alter("f", "base", "two", v))
			e.file("f", "base")
			v = e.version("f")
			e.oneWins(fault.FSStaleVersion, e.put("f", guarded(want("one"), v)), e.alter("f", "base", "two", v))
		}},
		{226, "of four processes with one guard one succeeds", All, Processes, func(e *env) {
			worlds := e.worlds(4)
			for round := range e.rounds(20) {
				e.file("f", "base")
				v := e.version("f")
				var calls []func() error
				for i, w := range worlds {
					calls = append(calls, func() error {
						_, err := w.EditText(e.ctx, e.at("f"), change("base", fmt.Sprintf("round %d of %d", round, i), v))
						return err
					})
				}
				e.oneWins(fault.FSStaleVersion, calls...)
			}
		}},
		{227, "unguarded edits of two processes are both there", All, Processes, func(e *env) {
			worlds := e.worlds(2)
			for range e.rounds(10) {
				e.file("f", "one two")
				for _, err := range together(
					func() error { _, err := worlds[0].EditText(e.ctx, e.at("f"), change("one", "1", "")); return err },
					func() error { _, err := worlds[1].EditText(e.ctx, e.at("f"), change("two", "2", "")); return err },
				) {
					e.must(err)
				}
				e.holds("f", "1 2")
			}
		}},
		{228, "of two creations by two processes one succeeds", All, Processes, func(e *env) {
			worlds := e.worlds(2)
			for range e.rounds(10) {
				e.must(e.World.Remove(e.path("f")))
				won := e.oneWins(fault.FSNotObserved,
					func() error { _, err := worlds[0].WriteText(e.ctx, e.at("f"), guarded(want("0"), "")); return err },
					func() error { _, err := worlds[1].WriteText(e.ctx, e.at("f"), guarded(want("1"), "")); return err })
				e.holds("f", fmt.Sprint(won))
			}
		}},
		{229, "a link and its file share a lock", All, Processes, func(e *env) {
			worlds := e.worlds(2)
			e.file("real", "base")
			e.link("real", "link")
			v := e.version("real")
			e.oneWins(fault.FSStaleVersion,
				func() error { _, err := worlds[0].EditText(e.ctx, e.at("real"), change("base", "0", v)); return err },
				func() error { _, err := worlds[1].EditText(e.ctx, e.at("link"), change("base", "1", v)); return err })
		}},
		{230, "a write that waits does not hold up another file", All, 0, func(e *env) {
			release, done := e.blocked("a")
			e.must(e.put("b", want("x"))())
			release()
			e.must(<-done)
		}},
		{231, "a failure releases the lock", All, 0, func(e *env) {
			e.file("f", "old")
			e.refused("f", e.put("f", guarded(want("x"), "wrong")), fault.FSStaleVersion)
			e.refused("f", e.alter("f", "none", "x", ""), fault.FSEditNotFound)
			e.refused("f", e.put("f", want(strings.Repeat("a", big)+"\xFF")), fault.FSNotText)
			e.write(e.at("f"), want("new"))
		}},
		{232, "a cancelled write makes nothing", All, 0, func(e *env) {
			for _, name := range []string{"f", "p1/p2/f"} {
				_, err := e.Files.WriteText(e.cancelled(), e.at(name), want("x"))
				e.fails(err, fault.FSAborted)
			}
			e.gone("f", "p1")
			e.clean()
		}},
		{233, "a cancelled edit changes nothing", All, 0, func(e *env) {
			e.file("f", "old")
			_, err := e.Files.EditText(e.cancelled(), e.at("f"), change("old", "new", ""))
			e.fails(err, fault.FSAborted)
			e.holds("f", "old")
		}},
		{234, "cancellation comes before any other answer", All, 0, func(e *env) {
			e.file("f", "old")
			_, err := e.Files.WriteText(e.cancelled(), e.at("f"), guarded(want("x"), ""))
			e.fails(err, fault.FSAborted)
			_, err = e.Files.EditText(e.cancelled(), e.at("none"), change("a", "b", ""))
			e.fails(err, fault.FSAborted)
		}},
		{237, "waiting for the lock is cancelled", All, Processes, func(e *env) {
			other := e.worlds(1)[0]
			release, done := e.blocked("f")
			t := e.resolve("f")
			ctx, cancel := context.WithCancel(e.ctx)
			ended := make(chan error, 1)
			go func() {
				_, err := other.WriteText(ctx, remotefs.AtTarget(t), want("x"))
				ended <- err
			}()
			cancel()
			select {
			case err := <-ended:
				e.fails(err, fault.FSAborted)
			case <-time.After(watchdog):
				e.Errorf("still waiting")
			}
			release()
			e.must(<-done)
			same(e, "size", e.lstat("f").Size, big)
		}},
		{239, "a reader sees one content or the other", All, 0, readers},
	}
}

// worlds opens the world n times more.
func (e *env) worlds(n int) []remotefs.FS {
	e.Helper()
	all := make([]remotefs.FS, n)
	for i := range all {
		w, err := e.Another()
		e.must(err)
		all[i] = w
	}
	return all
}

// rounds is how often a race is run, n where the backend does not say.
func (e *env) rounds(n int) int {
	if e.Rounds > 0 {
		return min(n, e.Rounds)
	}
	return n
}

// together runs calls at the same time and gives their errors in order.
func together(calls ...func() error) []error {
	errs := make([]error, len(calls))
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	for i, c := range calls {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-start
			errs[i] = c()
		})
	}
	ready.Wait()
	close(start)
	done.Wait()
	return errs
}

// oneWins holds that exactly one call succeeds and all others fail with code. It
// gives the index of the one.
func (e *env) oneWins(code fault.Code, calls ...func() error) int {
	e.Helper()
	won := -1
	for i, err := range together(calls...) {
		switch {
		case err == nil && won >= 0:
			e.Errorf("both %d and %d succeeded", won, i)
		case err == nil:
			won = i
		default:
			e.fails(err, code)
		}
	}
	if won < 0 {
		e.Errorf("none succeeded")
	}
	e.clean()
	return won
}

// blocked begins a write that holds the lock of name and waits for its content
// until release is called.
func (e *env) blocked(name string) (release func(), done chan error) {
	e.Helper()
	t := e.resolve(name)
	r, w := io.Pipe()
	done = make(chan error, 1)
	go func() {
		_, err := e.Files.WriteText(e.ctx, remotefs.AtTarget(t), remotefs.WriteRequest{Content: r, Size: big, Mode: -1})
		r.CloseWithError(errors.Join(err, io.ErrClosedPipe))
		done <- err
	}()
	// A pipe has no room: when the last byte but one is taken, all of the content
	// that is looked at before the lock has been.
	if _, err := w.Write([]byte(strings.Repeat("n", big-1))); err != nil {
		e.Fatalf("the write did not begin: %v", err)
	}
	return func() {
		_, err := w.Write([]byte("n"))
		e.must(errors.Join(err, w.Close()))
	}, done
}

// readers loop while a writer replaces the file.
func readers(e *env) {
	contents := []string{strings.Repeat("a", 20_000), strings.Repeat("b", 10_000)}
	e.file("f", contents[0])
	stop := make(chan struct{})
	var reading sync.WaitGroup
	reading.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			got, err := e.Files.ReadText(e.ctx, e.at("f"))
			if err != nil || got.Text != contents[0] && got.Text != contents[1] {
				e.Errorf("read %s, %v", short(got.Text), err)
				return
			}
		}
	})
	for i := range e.rounds(20) * 50 {
		if _, err := e.Files.WriteText(e.ctx, e.at("f"), want(contents[i%2])); err != nil {
			e.Errorf("write %d: %v", i, err)
			break
		}
	}
	close(stop)
	reading.Wait()
}
