package exectest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
)

// terminalCases are section N.
func terminalCases() []Case {
	cases := []Case{
		{ID: "C224", Name: "the first program sees the requested size", Run: func(w *World) {
			spec := w.Terminal("stty", "size")
			spec.Rows, spec.Cols = 37, 113
			s := w.Open(spec)
			s.AwaitEnd()
			w.Equal("size", s.Shown(), "37 113\r\n")
			s.Exit("0")
		}},
		{ID: "C225", Name: "all three descriptors are the terminal", Run: func(w *World) {
			s := w.Open(w.Terminal("/bin/sh", "-c", "tty; test -t 0 -a -t 1 -a -t 2; echo is:$?"))
			s.AwaitEnd()
			w.Equal("a device", strings.Contains(s.Shown(), "/dev/pts/"), true)
			w.Equal("all three", strings.Contains(s.Shown(), "is:0"), true)
		}},
		{ID: "C226", Name: "sizes outside 1 to 65535 are refused", Run: func(w *World) {
			for _, size := range [][2]int{{0, 80}, {24, 0}, {-1, 80}, {24, -1}, {65536, 80}, {24, 65536}} {
				spec := w.Terminal("true")
				spec.Rows, spec.Cols = size[0], size[1]
				_, err := w.Runtime.OpenTerminal(w.Context(), spec)
				w.Equal(fmt.Sprint(size), fault.CodeOf(err), fault.ExecInvalidSpec)
			}
		}},
		{ID: "C227", Name: "a shell runs what is typed", Run: func(w *World) {
			s := w.Shell()
			s.Type("echo A\"\"B\r")
			s.Await("AB")
			s.End()
		}},
		{ID: "C228", Name: "a character in two parts is one for a carrying reader", Run: func(w *World) {
			s := w.Open(w.Terminal("/bin/sh", "-c", `printf '\342\202'; sleep 0.3; printf '\254\n'`))
			s.AwaitEnd()
			w.Equal("output", s.Shown(), "€\r\n")
		}},
		{ID: "C229", Name: "an unfinished character at the end is shown", Run: func(w *World) {
			s := w.Open(w.Terminal("/bin/sh", "-c", `printf 'A\342\202'`))
			s.AwaitEnd()
			w.Equal("output", s.Shown(), "A\uFFFD")
		}},
		{ID: "C230", Name: "text of any script passes both ways", Run: func(w *World) {
			s := w.Open(w.Terminal("/bin/sh", "-c", "read -r x; echo \"got $x\""))
			s.Type("你好\r")
			s.Await("got 你好")
			s.AwaitEnd()
		}},
		{ID: "C231", Name: "a resize reaches the program", Run: func(w *World) {
			s := w.Open(w.Terminal("/bin/sh", "-c", `trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.05; done`))
			s.Await("ready")
			w.Equal("resize", s.Resize(w.Context(), 50, 132), nil)
			s.Await("50 132")
			s.AwaitEnd()
		}},
		{ID: "C232", Name: "a resize after the exit, or to nothing, is refused", Run: func(w *World) {
			s := w.Open(w.Terminal("true"))
			w.Equal("to nothing", fault.CodeOf(s.Resize(w.Context(), 0, 0)), fault.ExecInvalidSpec)
			s.Exit("0")
			w.Equal("after the exit", fault.CodeOf(s.Resize(w.Context(), 50, 132)), fault.ExecSessionExited)
			s.AwaitEnd()
		}},
		{ID: "C233", Name: "an interrupt goes to the program in front and the shell lives", Run: interruptChild},
		{ID: "C234", Name: "a whole pipeline is interrupted", Run: func(w *World) {
			s := w.Shell()
			s.Type(`sh -c 'echo o""ne >&2; exec sleep 60' | sh -c 'echo t""wo >&2; exec sleep 61'` + "\r")
			s.Await("one")
			s.Await("two")
			group := s.ChildInFront()
			got, err := s.Signal(w.Context(), "SIGINT")
			w.Equal("signal", fmt.Sprint(got, err), fmt.Sprint(group, " <nil>"))
			s.ShellInFront()
			s.Type("jobs; echo ST\"\"ILL\r")
			s.Await("STILL")
			w.Equal("jobs left", strings.Contains(s.Shown(), "Running"), false)
			s.End()
		}},
		{ID: "C235", Name: "a stopped program gives the terminal back", Run: func(w *World) {
			s := w.Shell()
			s.Child("sleep 60")
			_, err := s.Signal(w.Context(), "SIGTSTP")
			w.Equal("signal", err, nil)
			s.ShellInFront()
			s.Type("jobs; echo do\"\"ne\r")
			s.Await("done")
			w.Equal("one stopped job", strings.Contains(s.Shown(), "Stopped"), true)
			s.End()
		}},
		{ID: "C236", Name: "KILL is for the program in front, never for the shell", Run: func(w *World) {
			s := w.Shell()
			s.ShellInFront()
			_, err := s.Signal(w.Context(), "SIGKILL")
			w.Equal("at the shell", fault.CodeOf(err), fault.ExecNoForeground)
			group := s.Child("sleep 60")
			_, err = s.Signal(w.Context(), "SIGKILL")
			w.Equal("at the child", err, nil)
			w.Gone(group)
			s.ShellInFront()
			s.End()
		}},
		{ID: "C237", Name: "other signals are refused", Run: func(w *World) {
			s := w.Shell()
			for _, name := range []string{"SIGUSR1", "KILL; id", "", "INT", "sigint"} {
				_, err := s.Signal(w.Context(), name)
				w.Equal(name, fault.CodeOf(err), fault.ExecInvalidSpec)
			}
			s.End()
		}},
		{ID: "C239", Name: "after the exit nothing is in front", Run: func(w *World) {
			s := w.Open(w.Terminal("true"))
			s.Exit("0")
			fg, err := s.Foreground(w.Context())
			w.Equal("inspect", fmt.Sprint(fg, err), "<nil> <nil>")
			_, err = s.Signal(w.Context(), "SIGINT")
			w.Equal("signal", fault.CodeOf(err), fault.ExecNoForeground)
			_, err = s.Write([]byte("x"))
			w.Equal("write", fault.CodeOf(err), fault.ExecSessionExited)
			s.AwaitEnd()
		}},
		{ID: "C242", Name: "waiting for input is proven for readers and for nobody else", Excuse: needsInputWait, Run: inputWaits},
		{ID: "C243", Name: "a shell at its prompt waits for input", Excuse: needsInputWait, Run: func(w *World) {
			s := w.Shell()
			s.WaitsForInput()
			s.End()
		}},
		{ID: "C246", Name: "a signal is a signal and no typed character", Run: func(w *World) {
			s := w.Open(w.Terminal("/bin/sh", "-c", `stty -isig -echo; trap 'echo sig"nal"led; exit 0' INT; echo re"ad"y; while :; do sleep 0.05; done`))
			s.Await("ready")
			_, err := s.Signal(w.Context(), "SIGINT")
			w.Equal("signal", err, nil)
			s.Await("signalled")
			s.AwaitEnd()
			w.Equal("no ^C", strings.Contains(s.Shown(), "^C"), false)
		}},
		{ID: "C247", Name: "a job that ignores TERM goes with the terminal", Run: func(w *World) {
			s := w.Shell()
			s.Type(`sh -c 'trap "" TERM; echo jo""b; sleep 60' &` + "\r")
			s.Await("job")
			s.End()
		}},
		{ID: "C248", Name: "a disowned job goes with the terminal", Run: func(w *World) {
			s := w.Shell()
			s.Type(`sleep 60 & disown; echo pid:$!:; exit` + "\r")
			s.Exit("0")
			job := between(s.Shown(), "pid:", ":")
			s.End()
			w.Equal("the job lives", w.Alive(job), false)
		}},
		{ID: "C249", Name: "a job with its own session does not hold the end", Run: func(w *World) {
			s := w.Shell()
			// In an interactive shell setsid forks, so the job names itself.
			s.Type(`setsid sh -c 'echo pid:$$:; exec sleep 60' & sleep 0.2` + "\r")
			s.Await(":\r\n")
			job := between(s.Shown(), "\npid:", ":")
			s.End()
			w.Kill(job)
		}},
		{ID: "C250", Name: "concurrent ends share one run", Run: func(w *World) {
			s := w.Shell()
			var wg sync.WaitGroup
			for range 5 {
				wg.Go(s.End)
			}
			wg.Wait()
			s.AwaitEnd()
		}},
		{ID: "C253", Name: "a late reader gets everything", Run: func(w *World) {
			t := w.OpenUnread(w.Terminal("/bin/sh", "-c", "seq 1 20000; exit 3"))
			select {
			case <-t.Done():
			case <-time.After(time.Second):
			}
			all, err := io.ReadAll(t)
			w.Equal("end", err, nil)
			w.Equal("last line", strings.HasSuffix(string(all), "\r\n20000\r\n"), true)
			outcome, err := t.Wait(w.Context())
			w.Ends(Result{Report: remoteexec.Report{Outcome: outcome}, Err: err}, "3")
			w.Equal("terminate", t.Terminate(w.Context()), nil)
		}},
		{ID: "C254", Name: "a job that keeps the terminal does not hold the output", Run: func(w *World) {
			s := w.Open(w.Terminal("/bin/sh", "-c", "trap '' HUP; sleep 60 & exit 5"))
			s.Exit("5")
			s.AwaitEnd()
		}},
		{ID: "C255", Name: "the end of the terminal is a plain end", Run: func(w *World) {
			s := w.Open(w.Terminal("echo", "last"))
			s.AwaitEnd()
			w.Equal("output", s.Shown(), "last\r\n")
			_, err := s.Read(make([]byte, 1))
			w.Equal("once more", err, io.EOF)
			s.Exit("0")
		}},
		{ID: "C257", Name: "a cancellation is for the allocation only", Run: cancelTerminal},
		{ID: "C265", Name: "an idle interactive shell can be ended", Run: func(w *World) {
			s := w.Shell()
			s.End()
			s.AwaitEnd()
		}},
		{ID: "C266", Name: "bytes arrive as they are written", Run: func(w *World) {
			s := w.Open(w.Terminal("/bin/sh", "-c", `stty raw -echo; echo re"ad"y; head -c 3 | od -An -c; echo do"n"e`))
			s.Await("ready")
			s.Type("ab\n")
			s.Await("done")
			w.Equal("three bytes", strings.Contains(s.Shown(), `a   b  \n`), true)
			s.AwaitEnd()
		}},
		{ID: "C267", Name: "the environment follows the same rules", Run: func(w *World) {
			spec := w.Terminal("/bin/sh", "-c", `printf '<%s>' "$DSH_SESSION_ID" "${E-gone}" "${LANG-gone}" "$V"`)
			spec.Env.Set["DSH_SESSION_ID"], spec.Env.Set["E"], spec.Env.Set["V"] = "s", "", "你好 $(x)"
			spec.Env.Remove = []string{"LANG"}
			s := w.Open(spec)
			s.AwaitEnd()
			w.Equal("output", s.Shown(), "<s><><gone><你好 $(x)>")
		}},
		{ID: "C268", Name: "the exit code of the top-level program is the terminal's", Run: func(w *World) {
			s := w.Shell()
			s.Type("exit 7\r")
			s.Exit("7")
			s.AwaitEnd()
		}},
	}
	for i := range cases {
		cases[i].Excuse = needsTerminals(cases[i].Excuse)
	}
	return cases
}

// needsTerminals excuses worlds without terminals, and those that next excuses.
func needsTerminals(next func(remoteexec.Facts) string) func(remoteexec.Facts) string {
	return func(f remoteexec.Facts) string {
		switch {
		case !f.Terminals:
			return "this world has no terminals"
		case next != nil:
			return next(f)
		}
		return ""
	}
}

// needsInputWait excuses worlds where the evidence cannot be read.
func needsInputWait(f remoteexec.Facts) string {
	if !f.InputWait {
		return "this world cannot prove that a program waits for input"
	}
	return ""
}

// between gives the number between two marks.
func between(text, before, after string) int {
	_, text, _ = strings.Cut(text, before)
	var n int
	for text != "" {
		word, rest, _ := strings.Cut(text, after)
		if _, err := fmt.Sscan(word, &n); err == nil {
			return n
		}
		_, text, _ = strings.Cut(rest, before)
	}
	return 0
}

func interruptChild(w *World) {
	s := w.Shell()
	group := s.Child("sleep 60")
	got, err := s.Signal(w.Context(), "SIGINT")
	w.Equal("signal", fmt.Sprint(got, err), fmt.Sprint(group, " <nil>"))
	s.ShellInFront()
	s.Type("echo ST\"\"ILL\r")
	s.Await("STILL")
	s.End()
}

// WaitsForInput waits for the proof.
func (s *Screen) WaitsForInput() {
	s.w.Helper()
	s.w.Eventually("a proven wait for input", func() bool {
		fg, err := s.Foreground(s.w.Context())
		return err == nil && fg != nil && fg.InputWaiting
	})
}

// neverWaits looks often at a program that does not wait for input.
func (s *Screen) neverWaits() {
	s.w.Helper()
	for range 20 {
		fg, err := s.Foreground(s.w.Context())
		if err != nil || fg != nil && fg.InputWaiting {
			s.w.Errorf("a wait for input is claimed: %+v, %v", fg, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func inputWaits(w *World) {
	for _, reader := range [][]string{{"cat"}, {"/bin/sh", "-c", "read -r x"}} {
		s := w.Open(w.Terminal(reader...))
		s.WaitsForInput()
		s.End()
	}
	s := w.Open(w.Terminal("sleep", "60"))
	s.InFront("sleep", func(int) bool { return true })
	s.neverWaits()
	s.End()
	unread := &Screen{Terminal: w.OpenUnread(w.Terminal("yes")), w: w}
	unread.InFront("yes", func(int) bool { return true })
	unread.neverWaits()
	unread.End()
}

func cancelTerminal(w *World) {
	reason := errors.New("never mind")
	ctx, cancel := context.WithCancelCause(w.Context())
	t, err := w.Runtime.OpenTerminal(ctx, w.Terminal("cat"))
	if err != nil {
		w.Fatalf("terminal: %v", err)
	}
	cancel(reason)
	if _, err := t.Write([]byte("echoed\r")); err != nil {
		w.Errorf("write after the cancellation: %v", err)
	}
	buf := make([]byte, 100)
	n, err := t.Read(buf)
	w.Equal("read", fmt.Sprint(n > 0, err), "true <nil>")
	w.Equal("terminate", t.Terminate(w.Context()), nil)
	_, err = w.Runtime.OpenTerminal(ctx, w.Terminal("touch", "marker"))
	w.Cause(err, reason)
	w.Absent(w.Dir + "/marker")
}
