package exectest

import (
	"fmt"

	"github.com/afield-dev/afield/pkg/remoteexec"
)

// exitCases are section I.
func exitCases() []Case {
	return []Case{
		{ID: "C149", Name: "a code is a code", Run: func(w *World) { w.exits(0, 1, 42, 255) }},
		{ID: "C150", Name: "a death by signal is reported as the world can", Run: func(w *World) {
			w.Ends(w.Run(w.Sh("kill -TERM $$")), "TERM")
		}},
		{ID: "C151", Name: "a code of 128 and more is no signal", Run: func(w *World) { w.exits(129, 130, 137, 143) }},
		{ID: "C152", Name: "a program that exits 143 when asked has exited", Run: func(w *World) { w.onTerm("143") }},
		{ID: "C153", Name: "a program that exits 0 when asked has exited", Run: func(w *World) { w.onTerm("0") }},
		{ID: "C154", Name: "a crash is reported by its signal", Excuse: needsSignals, Run: func(w *World) {
			w.Ends(w.Run(w.Sh("ulimit -c 0; kill -SEGV $$")), "SEGV")
		}},
		{ID: "C155", Name: "a signal without a name has a number", Excuse: localOnly, Run: func(w *World) {
			w.Ends(w.Run(w.Sh("kill -34 $$")), "34")
		}},
		{ID: "C161", Name: "127 is a code like any other", Run: func(w *World) {
			r := w.Run(w.Sh("echo nope >&2; exit 127"))
			w.Ends(r, "127")
			w.Equal("stderr", r.Log, "nope\n")
		}},
	}
}

func (w *World) exits(codes ...int) {
	w.Helper()
	for _, code := range codes {
		w.Ends(w.Run(w.Sh(fmt.Sprintf("exit %d", code))), fmt.Sprint(code))
	}
}

// onTerm stops a program that handles TERM by an exit of its own.
func (w *World) onTerm(code string) {
	w.Helper()
	h := w.Start(w.Sh("trap 'exit " + code + "' TERM; echo r; while :; do sleep 0.1; done"))
	w.Await(h, remoteexec.Stdout, "r")
	h.Terminate()
	w.Ends(w.Settle(h), code)
	w.Quiescent(h)
}
