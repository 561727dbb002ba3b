package exectest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
)

// requestCases are section A.
func requestCases() []Case {
	return []Case{
		{ID: "C1", Name: "an empty argument vector is refused", Run: func(w *World) {
			w.Refused(w.Spec(), fault.ExecInvalidSpec)
		}},
		{ID: "C2", Name: "an empty program name is refused", Run: func(w *World) {
			w.Refused(w.Spec(""), fault.ExecInvalidSpec)
		}},
		{ID: "C3", Name: "a NUL byte in an argument is refused", Run: func(w *World) {
			w.Refused(w.Spec("/bin/echo", "a\x00b"), fault.ExecInvalidSpec)
		}},
		{ID: "C4", Name: "grace is a whole number of milliseconds within the timer bound", Run: graceBounds},
		{ID: "C5", Name: "a request that is already cancelled starts nothing and keeps the reason", Run: func(w *World) {
			reason := errors.New("too late")
			ctx, cancel := context.WithCancelCause(w.Context())
			cancel(reason)
			_, err := w.Runtime.Spawn(ctx, w.Spec("touch", "marker"))
			w.Cause(err, reason)
			w.Absent(w.Dir + "/marker")
		}},
		{ID: "C6", Name: "an empty or relative working directory is refused", Run: func(w *World) {
			for _, cwd := range []string{"", "sub/dir", "/a\x00b"} {
				spec := w.Spec("true")
				spec.Cwd = cwd
				w.Refused(spec, fault.ExecInvalidSpec)
			}
		}},
		{ID: "C7", Name: "caps below one byte are refused", Run: func(w *World) {
			for _, out := range []remoteexec.Output{collect(0), collect(-1), spill(10, -1)} {
				spec := w.Spec("true")
				spec.Stdout = out
				w.Refused(spec, fault.ExecInvalidSpec)
				spec.Stdout, spec.Stderr = collect(10), out
				w.Refused(spec, fault.ExecInvalidSpec)
			}
		}},
		{ID: "C8", Name: "a handle has exactly the streams of its modes", Run: streamsOfModes},
		{ID: "C9", Name: "stdout can be passed on while stderr is collected", Run: func(w *World) {
			inherits(w, remoteexec.Stdout)
		}},
		{ID: "C10", Name: "stderr can be passed on while stdout is collected", Run: func(w *World) {
			inherits(w, remoteexec.Stderr)
		}},
		{ID: "C11", Name: "batch input exposes no writable stdin", Run: func(w *World) {
			spec := w.Spec("cat")
			spec.Stdin, spec.StdinData = remoteexec.StdinData, []byte("x")
			h := w.Start(spec)
			w.Equal("stdin", h.Stdin() == nil, true)
			w.Equal("out", w.Settle(h).Out, "x")
		}},
		{ID: "C12", Name: "nothing starts after shutdown began", Run: func(w *World) {
			if err := w.Runtime.Shutdown(w.Context()); err != nil {
				w.Errorf("shutdown: %v", err)
			}
			w.Refused(w.Spec("true"), fault.ExecDisposing)
			_, err := w.Runtime.OpenTerminal(w.Context(), w.Terminal("true"))
			w.Equal("terminal", fault.CodeOf(err), fault.ExecDisposing)
		}},
		{ID: "C13", Name: "parallel programs get their own text", Run: parallelPrograms},
		{ID: "C14", Name: "later changes of the request do not reach the program", Run: func(w *World) {
			spec := w.Spec("/bin/sh", "-c", `echo "$1 $V"`, "sh", "first")
			spec.Env.Set["V"] = "one"
			h := w.Start(spec)
			spec.Argv[4] = "second"
			spec.Env.Set["V"] = "two"
			w.Equal("out", w.Settle(h).Out, "first one\n")
		}},
	}
}

// Terminal is a request for a terminal.
func (w *World) Terminal(argv ...string) remoteexec.TerminalSpec {
	return remoteexec.TerminalSpec{
		Argv: argv, Cwd: w.Dir, Env: remoteexec.Env{Set: map[string]string{marker: w.nonce}},
		Rows: 40, Cols: 160, Grace: 200 * time.Millisecond,
	}
}

func graceBounds(w *World) {
	for _, grace := range []time.Duration{0, -1, time.Microsecond, -time.Millisecond, remoteexec.MaxDelay + time.Millisecond} {
		spec := w.Spec("true")
		spec.Grace = grace
		w.Refused(spec, fault.ExecInvalidSpec)
		term := w.Terminal("true")
		term.Grace = grace
		_, err := w.Runtime.OpenTerminal(w.Context(), term)
		w.Equal(fmt.Sprintf("terminal with grace %v", grace), fault.CodeOf(err), fault.ExecInvalidSpec)
	}
	spec := w.Sh("exit 0")
	spec.Grace = remoteexec.MaxDelay
	w.Ends(w.Run(spec), "0")
}

func streamsOfModes(w *World) {
	spec := w.Spec("cat")
	spec.Stdin = remoteexec.StdinPipe
	spec.Stdout = remoteexec.Output{Mode: remoteexec.OutputPipe}
	spec.Stderr = collect(1000)
	h := w.Start(spec)
	w.Equal("no raw stderr", h.Pipe(remoteexec.Stderr) == nil, true)
	w.Equal("no stdout reader", h.Collected(remoteexec.Stdout) == nil, true)
	w.Equal("a stderr reader", h.Collected(remoteexec.Stderr) != nil, true)
	if _, err := io.WriteString(h.Stdin(), "through the pipe\n"); err != nil {
		w.Errorf("write: %v", err)
	}
	h.Stdin().Close()
	got, err := io.ReadAll(h.Pipe(remoteexec.Stdout))
	w.Equal("read", err, nil)
	h.Pipe(remoteexec.Stdout).Close()
	w.Equal("stdout", string(got), "through the pipe\n")
	w.Ends(w.Settle(h), "0")
}

// inherits passes one stream on: to a descriptor of ours, and to a writer that
// is none.
func inherits(w *World, s remoteexec.Stream) {
	w.Helper()
	script := "echo to-parent; echo other >&2"
	if s == remoteexec.Stderr {
		script = "echo to-parent >&2; echo other"
	}
	r, f, err := os.Pipe()
	if err != nil {
		w.Fatalf("pipe: %v", err)
	}
	defer r.Close()
	var text strings.Builder
	for _, to := range []io.Writer{f, &text} {
		spec := w.Sh(script)
		out := remoteexec.Output{Mode: remoteexec.OutputInherit, To: to}
		if s == remoteexec.Stdout {
			spec.Stdout = out
		} else {
			spec.Stderr = out
		}
		h := w.Start(spec)
		w.Equal("no reader", h.Collected(s) == nil, true)
		got := w.Settle(h)
		w.Ends(got, "0")
		w.Equal("the other stream", got.Out+got.Log, "other\n")
	}
	f.Close()
	passed, _ := io.ReadAll(r)
	w.Equal("our descriptor", string(passed), "to-parent\n")
	w.Equal("our writer", text.String(), "to-parent\n")
}

func parallelPrograms(w *World) {
	const n = 100
	var handles [n]remoteexec.Handle
	for i := range handles {
		spec := w.Sh("echo $N")
		spec.Env.Set["N"] = fmt.Sprint(i)
		handles[i] = w.Start(spec)
	}
	for i, h := range handles {
		r := w.Settle(h)
		w.Ends(r, "0")
		w.Equal("out", r.Out, fmt.Sprintln(i))
	}
}
