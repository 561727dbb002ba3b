package exectest

import (
	"github.com/afield-dev/afield/pkg/remoteexec"
)

// shutdownCases are the part of section Q that needs no second program.
func shutdownCases() []Case {
	return []Case{
		{ID: "C309", Name: "shutdown stops what runs and waits", Run: func(w *World) {
			h := w.Start(w.Spec("sleep", "60"))
			<-h.Started()
			w.shutdown()
			w.settled(h)
			w.Ends(w.Settle(h), "TERM")
		}},
		{ID: "C310", Name: "shutdown kills what ignores TERM and waits", Run: func(w *World) {
			h := w.Start(w.Sh(stubborn))
			w.Await(h, remoteexec.Stdout, "ready")
			w.shutdown()
			w.settled(h)
			w.Ends(w.Settle(h), "KILL")
			w.Equal("survivors", len(h.Survivors()), 0)
		}},
		{ID: "C311", Name: "shutdown ends a helper whose root has settled", Run: func(w *World) {
			h := w.Start(w.Sh("sleep 60 >/dev/null 2>&1 & echo $!"))
			helper := w.Number(h, 0)
			w.Ends(w.Settle(h), "0")
			w.shutdown()
			w.Equal("the helper lives", w.Alive(helper), false)
		}},
		{ID: "C314", Name: "a failed start does not disturb shutdown", Run: func(w *World) {
			w.Settle(w.Start(w.Spec(w.Dir + "/missing")))
			w.shutdown()
			w.shutdown()
		}},
	}
}

func (w *World) shutdown() {
	w.Helper()
	if err := w.Runtime.Shutdown(w.Context()); err != nil {
		w.Errorf("shutdown: %v", err)
	}
}

// settled says that a handle needs no more waiting.
func (w *World) settled(h remoteexec.Handle) {
	w.Helper()
	select {
	case <-h.Done():
	default:
		w.Errorf("shutdown returned before the program had settled")
	}
}
