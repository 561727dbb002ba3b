package exectest

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/afield-dev/afield/pkg/remoteexec"
)

// drainCases are section J.
func drainCases() []Case {
	return []Case{
		{ID: "C162", Name: "a descendant that holds the output does not hold the outcome", Run: func(w *World) {
			spec := w.Sh("sleep 60 & echo $!; echo shell-done")
			spec.Grace = 100 * time.Millisecond
			h := w.Start(spec)
			r := w.Settle(h)
			w.Ends(r, "0")
			w.Equal("out", strings.HasSuffix(r.Out, "shell-done\n"), true)
			w.Equal("incomplete", r.Incomplete, !w.Facts.EndsOutput)
			sleeper := w.Number(h, 0)
			w.Equal("the sleeper lives", w.Alive(sleeper), true)
			h.Terminate()
			w.Quiescent(h)
			w.Equal("the sleeper lives", w.Alive(sleeper), false)
		}},
		{ID: "C163", Name: "what comes within the grace belongs to the result", Run: func(w *World) {
			spec := w.Sh("(sleep 0.1; echo late) & echo now")
			spec.Grace = 20 * time.Second
			r := w.Run(spec)
			w.Equal("out", r.Out, "now\nlate\n")
			w.Equal("incomplete", r.Incomplete, false)
		}},
		{ID: "C164", Name: "what comes later is not added", Run: func(w *World) {
			w.Do("mkfifo go done")
			spec := w.Sh("(trap '' PIPE; read -r x < go; echo late; echo > done) & echo now")
			spec.Grace = 100 * time.Millisecond
			h := w.Start(spec)
			w.Equal("out", w.Settle(h).Out, "now\n")
			w.Do("echo > go; read -r x < done")
			w.Equal("out later", w.Text(h, remoteexec.Stdout), "now\n")
			w.Equal("total", h.Collected(remoteexec.Stdout).Total(), int64(4))
			w.Quiescent(h)
		}},
		{ID: "C165", Name: "a descendant without our streams holds nothing", Run: func(w *World) {
			spec := w.Sh("sleep 60 >/dev/null 2>&1 & exit 0")
			spec.Grace = remoteexec.MaxDelay
			h := w.Start(spec)
			r := w.Settle(h)
			w.Ends(r, "0")
			w.Equal("incomplete", r.Incomplete, false)
			ctx, cancel := context.WithTimeout(w.Context(), 100*time.Millisecond)
			defer cancel()
			gone, err := h.WaitForExit(ctx)
			w.Equal("gone", gone, false)
			w.Equal("error", err, nil)
			h.Terminate()
			w.Quiescent(h)
		}},
		{ID: "C166", Name: "an escapee that holds the output does not hold the outcome", Run: func(w *World) {
			spec := w.Sh(`setsid sh -c 'echo $$; exec sleep 60' & while [ ! -e up ]; do [ -e up ] || sleep 0.05; done; exit 0`)
			h := w.Start(spec)
			escapee := w.Number(h, 0)
			w.Do("touch up")
			w.Ends(w.Settle(h), "0")
			w.Quiescent(h)
			w.Kill(escapee)
		}},
		{ID: "C167", Name: "a quiet program is not cut", Run: func(w *World) {
			spec := w.Sh("sleep 0.5; echo late")
			spec.Grace = 100 * time.Millisecond
			r := w.Run(spec)
			w.Equal("out", r.Out, "late\n")
			w.Equal("incomplete", r.Incomplete, false)
		}},
		{ID: "C168", Name: "a raw stream keeps its bytes for a late reader", Run: func(w *World) {
			spec := w.Sh(`head -c 30720 /dev/zero`)
			spec.Stdout, spec.Grace = remoteexec.Output{Mode: remoteexec.OutputPipe}, 50*time.Millisecond
			h := w.Start(spec)
			select {
			case <-h.Done():
			case <-time.After(time.Second):
			}
			got, err := io.ReadAll(h.Pipe(remoteexec.Stdout))
			h.Pipe(remoteexec.Stdout).Close()
			w.Equal("bytes", len(got), 30720)
			w.Equal("error", err, nil)
			w.Ends(w.Settle(h), "0")
		}},
	}
}
