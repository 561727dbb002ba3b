package exectest

import (
	"context"
	"io"
	"strings"
	"sync"

	"github.com/afield-dev/afield/pkg/remoteexec"
)

// Screen is a terminal whose output is read all the time.
type Screen struct {
	remoteexec.Terminal
	w *World

	mu   sync.Mutex
	text strings.Builder
	end  chan struct{}
	err  error // why the output ended; valid after end
}

// Open opens a terminal and reads it.
func (w *World) Open(spec remoteexec.TerminalSpec) *Screen {
	w.Helper()
	s := &Screen{Terminal: w.OpenUnread(spec), w: w, end: make(chan struct{})}
	go s.read()
	w.Cleanup(func() { <-s.end })
	return s
}

// OpenUnread opens a terminal that nobody reads.
func (w *World) OpenUnread(spec remoteexec.TerminalSpec) remoteexec.Terminal {
	w.Helper()
	t, err := w.Runtime.OpenTerminal(w.Context(), spec)
	if err != nil {
		w.Fatalf("terminal %q: %v", spec.Argv, err)
	}
	return t
}

func (s *Screen) read() {
	defer close(s.end)
	var d remoteexec.Decoder
	buf := make([]byte, 4096)
	for {
		n, err := s.Terminal.Read(buf)
		text := d.Decode(buf[:n], err != nil)
		s.mu.Lock()
		s.text.WriteString(text)
		s.mu.Unlock()
		if err != nil {
			s.err = err
			return
		}
	}
}

// Shown is the output so far.
func (s *Screen) Shown() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// Type writes to the terminal.
func (s *Screen) Type(text string) {
	s.w.Helper()
	if _, err := s.Write([]byte(text)); err != nil {
		s.w.Fatalf("write %q: %v", text, err)
	}
}

// Await waits for a text in the output.
func (s *Screen) Await(text string) {
	s.w.Helper()
	s.w.Eventually("the terminal to show "+brief(text), func() bool { return strings.Contains(s.Shown(), text) })
}

// AwaitEnd waits for the end of the output, which is plain.
func (s *Screen) AwaitEnd() {
	s.w.Helper()
	s.w.Eventually("the end of the output", func() bool {
		select {
		case <-s.end:
			return true
		default:
			return false
		}
	})
	s.w.Equal("end of the output", s.err, io.EOF)
}

// Exit waits for the end of the top-level program and says how it must have
// ended.
func (s *Screen) Exit(want string) {
	s.w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	outcome, err := s.Wait(ctx)
	s.w.Ends(Result{Report: remoteexec.Report{Outcome: outcome}, Err: err}, want)
}

// InFront waits until the foreground group fits.
func (s *Screen) InFront(what string, fits func(group int) bool) int {
	s.w.Helper()
	group := 0
	s.w.Eventually(what+" in front", func() bool {
		fg, err := s.Foreground(s.w.Context())
		if err != nil {
			s.w.Fatalf("inspect: %v", err)
		}
		if fg == nil {
			return false
		}
		group = fg.ProcessGroupID
		return fits(group)
	})
	return group
}

// ChildInFront waits until a program other than the shell is in front (T-2).
func (s *Screen) ChildInFront() int {
	s.w.Helper()
	return s.InFront("a child", func(group int) bool { return group != s.PID() })
}

// Child runs a program in front of a shell and waits until it is there. A signal
// that comes before the shell's child has become the program may be lost.
func (s *Screen) Child(program string) int {
	s.w.Helper()
	s.Type(`sh -c 'echo u""p >&2; exec ` + program + `'` + "\r")
	s.Await("up")
	return s.ChildInFront()
}

// ShellInFront waits until the shell is in front again.
func (s *Screen) ShellInFront() {
	s.w.Helper()
	s.InFront("the shell", func(group int) bool { return group == s.PID() })
}

// End terminates the terminal.
func (s *Screen) End() {
	s.w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	if err := s.Terminate(ctx); err != nil {
		s.w.Errorf("terminate: %v", err)
	}
}

// Shell opens a shell with a plain prompt, and waits for it.
func (w *World) Shell() *Screen {
	w.Helper()
	spec := w.Terminal("/bin/bash", "--noprofile", "--norc", "-i")
	spec.Env.Set["PS1"], spec.Env.Set["TERM"] = "ready> ", "dumb"
	s := w.Open(spec)
	s.Await("ready> ")
	return s
}
