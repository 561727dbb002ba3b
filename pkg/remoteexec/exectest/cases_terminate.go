package exectest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/afield-dev/afield/pkg/remoteexec"
)

// stubborn ignores TERM.
const stubborn = `trap '' TERM; echo ready; while :; do sleep 60 & wait $!; done`

// terminateCases are section K.
func terminateCases() []Case {
	return []Case{
		{ID: "C171", Name: "a program is stopped by TERM", Run: func(w *World) {
			h := w.Start(w.Spec("sleep", "60"))
			<-h.Started()
			h.Terminate()
			w.Ends(w.Settle(h), "TERM")
			w.Quiescent(h)
		}},
		{ID: "C172", Name: "asking twice is asking once", Run: func(w *World) {
			spec := w.Sh(stubborn)
			spec.Grace = 400 * time.Millisecond
			h := w.Start(spec)
			w.Await(h, remoteexec.Stdout, "ready")
			begin := time.Now()
			h.Terminate()
			for range 5 {
				time.Sleep(10 * time.Millisecond)
				h.Terminate()
			}
			w.Ends(w.Settle(h), "KILL")
			w.notBefore(begin, 400*time.Millisecond)
		}},
		{ID: "C173", Name: "a program that ignores TERM is killed after the grace", Run: func(w *World) {
			h := w.Start(w.Sh(stubborn))
			w.Await(h, remoteexec.Stdout, "ready")
			begin := time.Now()
			h.Terminate()
			w.Ends(w.Settle(h), "KILL")
			w.notBefore(begin, 200*time.Millisecond)
			w.Quiescent(h)
		}},
		{ID: "C174", Name: "a grandchild goes too", Run: func(w *World) {
			h := w.Start(w.Sh("sleep 60 & echo $!; wait"))
			grandchild := w.Number(h, 0)
			h.Terminate()
			w.Settle(h)
			w.Quiescent(h)
			w.Equal("the grandchild lives", w.Alive(grandchild), false)
		}},
		{ID: "C175", Name: "a pipeline goes whole", Run: func(w *World) {
			h := w.Start(w.Sh("echo up >&2; sleep 60 | cat | cat"))
			w.Await(h, remoteexec.Stderr, "up")
			h.Terminate()
			w.Settle(h)
			w.Quiescent(h)
		}},
		{ID: "C176", Name: "a stubborn helper that outlives the root is killed", Run: func(w *World) {
			h := w.Start(w.Sh(`(trap '' TERM; exec >/dev/null 2>&1; touch up; while :; do sleep 60; done) & echo $!; while [ ! -e up ]; do sleep 0.01; done`))
			helper := w.Number(h, 0)
			w.Ends(w.Settle(h), "0")
			w.Equal("the helper lives", w.Alive(helper), true)
			h.Terminate()
			w.Quiescent(h)
			w.Equal("the helper lives", w.Alive(helper), false)
		}},
		{ID: "C179", Name: "zombies are not alive", Excuse: localOnly, Run: func(w *World) {
			h := w.Start(w.Sh("sleep 0.01 & exec sleep 0.1"))
			w.Settle(h)
			w.Quiescent(h)
		}},
		{ID: "C180", Name: "a cancellation stops like terminate", Run: func(w *World) {
			ctx, cancel := context.WithCancel(w.Context())
			h := w.StartCtx(ctx, w.Sh("echo ready; exec sleep 60"))
			w.Await(h, remoteexec.Stdout, "ready")
			cancel()
			w.Ends(w.Settle(h), "TERM")
		}},
		{ID: "C181", Name: "a cancellation after the exit does nothing", Run: func(w *World) {
			ctx, cancel := context.WithCancel(w.Context())
			h := w.StartCtx(ctx, w.Sh("exit 6"))
			w.Ends(w.Settle(h), "6")
			cancel()
			w.Ends(w.Settle(h), "6")
		}},
		{ID: "C182", Name: "a cancellation at the moment of the exit gives one of the two", Excuse: localOnly, Run: cancelAtExit},
		{ID: "C183", Name: "an expired bound answers at once", Run: func(w *World) {
			expired, cancel := context.WithCancel(w.Context())
			cancel()
			h := w.Start(w.Spec("sleep", "60"))
			gone, err := h.WaitForExit(expired)
			w.Equal("live tree", fmt.Sprint(gone, err), "false <nil>")
			h.Terminate()
			w.Quiescent(h)
			gone, err = h.WaitForExit(expired)
			w.Equal("gone tree", fmt.Sprint(gone, err), "true <nil>")
		}},
		{ID: "C184", Name: "a bounded wait sees a survivor, and its end", Run: func(w *World) {
			h := w.Start(w.Sh("sleep 60 >/dev/null 2>&1 & exit 0"))
			w.Ends(w.Settle(h), "0")
			ctx, cancel := context.WithTimeout(w.Context(), 100*time.Millisecond)
			defer cancel()
			gone, _ := h.WaitForExit(ctx)
			w.Equal("gone", gone, false)
			w.Equal("survivors", len(h.Survivors()), 1)
			h.Terminate()
			w.Quiescent(h)
			w.Equal("survivors", len(h.Survivors()), 0)
		}},
		{ID: "C185", Name: "a failed start is quiescent", Excuse: localOnly, Run: func(w *World) {
			h := w.Start(w.Spec(w.Dir + "/missing"))
			w.Quiescent(h)
			h.Terminate()
			w.Quiescent(h)
		}},
		{ID: "C188", Name: "a stopped program is killed after the grace", Excuse: localOnly, Run: func(w *World) {
			for _, trap := range []string{"", "trap 'exit 9' TERM; "} {
				h := w.Start(w.Sh(trap + "echo ready; while :; do sleep 0.05; done"))
				w.Await(h, remoteexec.Stdout, "ready")
				w.Do(`kill -STOP "$1"; until read -r line < "/proc/$1/stat" && case ${line##*) } in T*) true;; *) false;; esac; do :; done`, fmt.Sprint(h.PID()))
				h.Terminate()
				w.Ends(w.Settle(h), "KILL")
			}
		}},
		{ID: "C189", Name: "a child started by the TERM handler goes too", Run: func(w *World) {
			h := w.Start(w.Sh(`trap 'sleep 60 & echo $! ; exit 0' TERM; echo 1; while :; do sleep 0.05; done`))
			w.Await(h, remoteexec.Stdout, "1\n")
			h.Terminate()
			late := w.Number(h, 1)
			w.Settle(h)
			w.Quiescent(h)
			w.Equal("the late child lives", w.Alive(late), false)
		}},
		{ID: "C190", Name: "two hundred children go", Run: func(w *World) {
			h := w.Start(w.Sh(`i=0; while [ $i -lt 200 ]; do sleep 60 & i=$((i+1)); done; echo ready; wait`))
			w.Await(h, remoteexec.Stdout, "ready")
			h.Terminate()
			w.Settle(h)
			w.Quiescent(h)
		}},
		{ID: "C191", Name: "a double fork with its own session holds neither stop nor wait", Excuse: localOnly, Run: func(w *World) {
			h := w.Start(w.Sh(`(setsid sh -c 'trap "" TERM; echo $$; exec sleep 60' >pid 2>/dev/null &) ; while [ ! -s pid ]; do sleep 0.01; done; echo ready; sleep 60`))
			w.Await(h, remoteexec.Stdout, "ready")
			h.Terminate()
			w.Settle(h)
			w.Quiescent(h)
			escapee := strings.TrimSpace(w.Do("cat pid"))
			w.Do(`kill -KILL "$1" 2>/dev/null; exit 0`, escapee)
		}},
		{ID: "C196", Name: "the longest grace kills nobody early", Run: func(w *World) {
			spec := w.Sh("trap 'sleep 0.5; exit 0' TERM; echo ready; while :; do sleep 0.05; done")
			spec.Grace = remoteexec.MaxDelay
			h := w.Start(spec)
			w.Await(h, remoteexec.Stdout, "ready")
			h.Terminate()
			w.Ends(w.Settle(h), "0")
		}},
		{ID: "C198", Name: "heavy output does not hold a stop", Run: func(w *World) {
			h := w.Start(w.Spec("yes"))
			w.Await(h, remoteexec.Stdout, "y\n")
			h.Terminate()
			r := w.Settle(h)
			if r.Err != nil || r.Outcome == (remoteexec.Outcome{}) {
				w.Errorf("yes ended with %+v, %v", r.Outcome, r.Err)
			}
		}},
	}
}

// notBefore holds a lower bound, with the specification's slack of 10 ms.
func (w *World) notBefore(begin time.Time, d time.Duration) {
	w.Helper()
	if took := time.Since(begin); took < d-10*time.Millisecond {
		w.Errorf("it took %v, want at least %v", took, d)
	}
}

// cancelAtExit runs many programs that end about when they are cancelled.
func cancelAtExit(w *World) {
	reason := errors.New("cancelled by the test")
	var wg sync.WaitGroup
	slots := make(chan struct{}, 25)
	for range 500 {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			ctx, cancel := context.WithCancelCause(w.Context())
			defer cancel(nil)
			h, err := w.Runtime.Spawn(ctx, w.Spec("sleep", "0.05"))
			if err != nil {
				w.Errorf("spawn: %v", err)
				return
			}
			time.AfterFunc(50*time.Millisecond, func() { cancel(reason) })
			r, err := h.Wait(context.Background())
			ok := r.Outcome == remoteexec.Outcome{} || r.Outcome == remoteexec.Outcome{Signal: "SIGTERM"}
			if err != nil || !ok {
				w.Errorf("ended with %+v, %v", r.Outcome, err)
			}
		})
	}
	wg.Wait()
}
