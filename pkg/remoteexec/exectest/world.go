package exectest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
)

// marker is the variable by which the suite finds what a case left behind.
const marker = "EXECTEST_CASE"

// watchdog bounds whatever a case waits for; nothing is measured by it.
const watchdog = 60 * time.Second

// World is a Runtime with what the cases do to it.
type World struct {
	T
	Runtime remoteexec.Runtime
	Facts   remoteexec.Facts
	// Dir is the working directory of the case, in the world, empty at first.
	Dir string

	inspector remoteexec.Runtime
	nonce     string
	escapes   bool // the case leaves something behind on purpose and ends it
}

func newWorld(t T, rt remoteexec.Runtime, dir string, inspector remoteexec.Runtime) *World {
	return &World{T: t, Runtime: rt, Facts: rt.Facts(), Dir: dir, inspector: inspector, nonce: "case-" + rand.Text()}
}

// finish shuts the Runtime down and looks for processes of the case.
func (w *World) finish() {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	if err := w.Runtime.Shutdown(ctx); err != nil {
		w.Errorf("shutdown: %v", err)
	}
	for {
		left := w.leftovers()
		if left == "" {
			return
		}
		if ctx.Err() != nil {
			w.Errorf("the case left processes behind: %s", left)
			return
		}
	}
}

// leftovers lists the live processes of the world that carry the marker.
func (w *World) leftovers() string {
	script := `for p in $(grep -als "^` + marker + `=$1$" /proc/[0-9]*/environ); do p=${p#/proc/}; p=${p%/environ}
read -r line < "/proc/$p/stat" && case ${line##*) } in [ZXx]*) ;; *) echo "$p";; esac; done 2>/dev/null; exit 0`
	script = strings.ReplaceAll(script, "^"+marker+"=$1$", marker+"=$1")
	r := w.on(w.inspector, remoteexec.Spec{
		Argv: []string{"/bin/sh", "-c", script, "sh", w.nonce}, Cwd: "/",
		Stdout: collect(64000), Stderr: collect(64000), Grace: time.Second,
	})
	return strings.TrimSpace(r.Out)
}

// collect is the mode of most cases.
func collect(max int64) remoteexec.Output {
	return remoteexec.Output{Mode: remoteexec.OutputCollect, MaxBytes: max}
}

// spill collects with a spill file.
func spill(max, file int64) remoteexec.Output {
	return remoteexec.Output{Mode: remoteexec.OutputCollect, MaxBytes: max, SpillMax: file}
}

// Spec is a request with the conventions of the specification's section 21.
func (w *World) Spec(argv ...string) remoteexec.Spec {
	return remoteexec.Spec{
		Argv: argv, Cwd: w.Dir, Env: remoteexec.Env{Set: map[string]string{marker: w.nonce}},
		Stdout: collect(64000), Stderr: collect(64000), Grace: 200 * time.Millisecond,
	}
}

// Sh is a request for a script.
func (w *World) Sh(script string, args ...string) remoteexec.Spec {
	return w.Spec(append([]string{"/bin/sh", "-c", script, "sh"}, args...)...)
}

// Result is what a settled program left.
type Result struct {
	remoteexec.Report
	Err      error
	Out, Log string // the texts of stdout and stderr
}

// Start starts a program.
func (w *World) Start(spec remoteexec.Spec) remoteexec.Handle {
	w.Helper()
	return w.StartCtx(w.Context(), spec)
}

// StartCtx starts a program with a cancellation.
func (w *World) StartCtx(ctx context.Context, spec remoteexec.Spec) remoteexec.Handle {
	w.Helper()
	h, err := w.Runtime.Spawn(ctx, spec)
	if err != nil {
		w.Fatalf("spawn %q: %v", spec.Argv, err)
	}
	return h
}

// Settle waits for the settlement of a program.
func (w *World) Settle(h remoteexec.Handle) Result {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	report, err := h.Wait(ctx)
	if fault.Is(err, fault.ExecCancelled) && ctx.Err() != nil {
		w.Fatalf("the program did not settle within %v", watchdog)
	}
	r := Result{Report: report, Err: err}
	r.Out, r.Log = w.Text(h, remoteexec.Stdout), w.Text(h, remoteexec.Stderr)
	return r
}

// Text is the collected text of a stream from its start.
func (w *World) Text(h remoteexec.Handle, s remoteexec.Stream) string {
	c := h.Collected(s)
	if c == nil {
		return ""
	}
	chunk, err := c.ReadText(0)
	if err != nil {
		w.Fatalf("read: %v", err)
	}
	return chunk.Text
}

// Run starts a program and waits for its settlement.
func (w *World) Run(spec remoteexec.Spec) Result {
	w.Helper()
	return w.Settle(w.Start(spec))
}

// on runs a program on another Runtime.
func (w *World) on(rt remoteexec.Runtime, spec remoteexec.Spec) Result {
	w.Helper()
	h, err := rt.Spawn(context.Background(), spec)
	if err != nil {
		w.Fatalf("spawn %q: %v", spec.Argv, err)
	}
	return w.Settle(h)
}

// Refused says that a request is refused with a code before anything runs.
func (w *World) Refused(spec remoteexec.Spec, code fault.Code) {
	w.Helper()
	h, err := w.Runtime.Spawn(w.Context(), spec)
	if !fault.Is(err, code) {
		w.Errorf("spawn %q: got %v, want %s", spec.Argv, err, code)
	}
	if h != nil {
		w.Errorf("spawn %q: a handle exists", spec.Argv)
	}
}

// FailsToStart says that a start fails with a code, that the handle is quiescent
// and that terminating it is harmless (SP-8). Where the world reports no start
// failures the program may end with status instead.
func (w *World) FailsToStart(spec remoteexec.Spec, code fault.Code, status ...int) Result {
	w.Helper()
	h := w.Start(spec)
	r := w.Settle(h)
	if !w.Facts.StartFaults && r.Err == nil {
		for _, s := range status {
			if r.Outcome == (remoteexec.Outcome{ExitCode: s}) {
				return r
			}
		}
	}
	if !fault.Is(r.Err, code) {
		w.Errorf("start %q: got %v (%+v), want %s", spec.Argv, r.Err, r.Outcome, code)
	}
	if gone, err := h.WaitForExit(w.Context()); !gone || err != nil {
		w.Errorf("a failed start is not quiescent: %v, %v", gone, err)
	}
	h.Terminate()
	return r
}

// Ends says how a program must have ended: "7" for exit code 7, "TERM" for a
// death by SIGTERM. Where the world reports no signals the code 128+n stands for
// it.
func (w *World) Ends(r Result, want string) {
	w.Helper()
	if r.Err != nil {
		w.Errorf("the program failed: %v", r.Err)
		return
	}
	if got := w.outcome(r.Outcome); got != w.expected(want) {
		w.Errorf("the program ended with {%s}, want {%s}; stderr %q", got, w.expected(want), r.Log)
	}
}

func (w *World) outcome(o remoteexec.Outcome) string {
	if o.Signal != "" {
		return strings.TrimPrefix(o.Signal, "SIG")
	}
	return fmt.Sprint(o.ExitCode)
}

// expected translates a signal for a world that reports none.
func (w *World) expected(want string) string {
	if w.Facts.Signals {
		return want
	}
	switch want {
	case "TERM":
		return "143"
	case "KILL":
		return "137"
	}
	return want
}

// Equal compares.
func (w *World) Equal(what string, got, want any) {
	w.Helper()
	if got != want {
		w.Errorf("%s: got %s, want %s", what, brief(got), brief(want))
	}
}

// brief shows a value without flooding the log.
func brief(v any) string {
	s := fmt.Sprintf("%#v", v)
	if len(s) > 600 {
		return s[:300] + " … " + s[len(s)-300:]
	}
	return s
}

// Eventually waits until something holds.
func (w *World) Eventually(what string, holds func() bool) {
	w.Helper()
	end := time.Now().Add(watchdog)
	for !holds() {
		if time.Now().After(end) {
			w.Fatalf("waited %v for %s", watchdog, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// Await waits until a stream holds a text.
func (w *World) Await(h remoteexec.Handle, s remoteexec.Stream, text string) {
	w.Helper()
	w.Eventually(fmt.Sprintf("%q in the output", text), func() bool {
		return strings.Contains(w.Text(h, s), text)
	})
}

// Word waits for the n-th word of the output, as a number.
func (w *World) Number(h remoteexec.Handle, n int) int {
	w.Helper()
	var out int
	w.Eventually("a number in the output", func() bool {
		text := w.Text(h, remoteexec.Stdout)
		words := strings.Fields(text)
		if len(words) <= n || len(words) == n+1 && strings.HasSuffix(text, words[n]) {
			return false
		}
		_, err := fmt.Sscan(words[n], &out)
		return err == nil
	})
	return out
}

// Alive says that a process of the world runs.
func (w *World) Alive(pid int) bool {
	w.Helper()
	r := w.on(w.inspector, remoteexec.Spec{
		Argv: []string{"/bin/sh", "-c", `read -r line < "/proc/$1/stat" || exit 1; case ${line##*) } in [ZXx]*) exit 1;; esac`, "sh", fmt.Sprint(pid)},
		Cwd:  "/", Stdout: collect(1000), Stderr: collect(1000), Grace: time.Second,
	})
	return r.Err == nil && r.Outcome == (remoteexec.Outcome{})
}

// Gone waits until a process of the world runs no more.
func (w *World) Gone(pid int) {
	w.Helper()
	w.Eventually(fmt.Sprintf("the end of process %d", pid), func() bool { return !w.Alive(pid) })
}

// Kill ends a process that a case let escape.
func (w *World) Kill(pid int) {
	w.Helper()
	w.on(w.inspector, remoteexec.Spec{
		Argv: []string{"/bin/kill", "-KILL", fmt.Sprint(pid)}, Cwd: "/",
		Stdout: collect(1000), Stderr: collect(1000), Grace: time.Second,
	})
	w.Gone(pid)
}

// Place makes a file of the world, with its directories.
func (w *World) Place(path, content, mode string) {
	w.Helper()
	spec := w.Sh(`mkdir -p "$(dirname "$1")" && cat > "$1" && chmod "$2" "$1"`, path, mode)
	spec.Stdin, spec.StdinData = remoteexec.StdinData, []byte(content)
	if r := w.Run(spec); r.Err != nil || r.Outcome != (remoteexec.Outcome{}) {
		w.Fatalf("place %s: %+v %v %s", path, r.Outcome, r.Err, r.Log)
	}
}

// Do runs a script that must succeed and gives its output.
func (w *World) Do(script string, args ...string) string {
	w.Helper()
	r := w.Run(w.Sh(script, args...))
	if r.Err != nil || r.Outcome != (remoteexec.Outcome{}) {
		w.Fatalf("%s: %+v %v %s", script, r.Outcome, r.Err, r.Log)
	}
	return r.Out
}

// Absent says that a path of the world does not exist.
func (w *World) Absent(path string) {
	w.Helper()
	if r := w.Run(w.Sh(`test ! -e "$1" && test ! -L "$1"`, path)); r.Outcome != (remoteexec.Outcome{}) {
		w.Errorf("%s exists", path)
	}
}

// Quiescent waits for the end of the tree.
func (w *World) Quiescent(h remoteexec.Handle) {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	if gone, err := h.WaitForExit(ctx); !gone || err != nil {
		w.Errorf("the tree is not gone: %v, %v; survivors %v", gone, err, h.Survivors())
	}
}

// Cause says that an error is a cancellation that carries the caller's reason.
func (w *World) Cause(err, reason error) {
	w.Helper()
	if !fault.Is(err, fault.ExecCancelled) || !errors.Is(err, reason) {
		w.Errorf("got %v, want a cancellation because of %q", err, reason)
	}
}
