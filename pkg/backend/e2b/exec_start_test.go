package e2b_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/afield-dev/afield/pkg/backend/e2b"
	"github.com/afield-dev/afield/pkg/backend/e2b/e2btest"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
)

// marked is in the command line of programs that rules are about.
const marked = "exec-start-test"

// spawnMarked starts a script with piped input.
func spawnMarked(t *testing.T, w *e2b.World, change func(*remoteexec.Spec), script string) remoteexec.Handle {
	t.Helper()
	out := remoteexec.Output{Mode: remoteexec.OutputCollect, MaxBytes: 1 << 16}
	spec := remoteexec.Spec{
		Argv: []string{"/bin/sh", "-c", script, marked}, Cwd: "/", Stdin: remoteexec.StdinPipe,
		Stdout: out, Stderr: out, Grace: 100 * time.Millisecond,
	}
	if change != nil {
		change(&spec)
	}
	h, err := w.Processes().Spawn(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// within fails the test if f takes a minute.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatalf("%s hangs", what)
	}
}

// prepared gives a world in a sandbox whose private folder is there, so that
// what follows is the start alone.
func prepared(t *testing.T) (*service, *e2btest.Sandbox, *e2b.World) {
	t.Helper()
	s := newService(t, e2btest.Options{})
	b := s.Start(time.Hour)
	w, dir := s.inSandbox(t, b)
	if _, _, err := run(t, w.Processes(), dir, "true"); err != nil {
		t.Fatal(err)
	}
	s.ResetLog()
	return s, b, w
}

// C100: a write before the handshake is unacknowledged until it completes, and
// is delivered once.
func TestInputWaitsForTheStart(t *testing.T) {
	t.Parallel()
	s, _, w := prepared(t)
	hold := s.Rule(&e2btest.Rule{Method: "Start", Body: marked, Times: 1, Hold: make(chan struct{})})
	h := spawnMarked(t, w, nil, "cat")
	wrote := make(chan error, 1)
	go func() {
		_, err := h.Stdin().Write([]byte("once\n"))
		wrote <- err
	}()
	eventually(t, "the held start", func() bool { return hold.Used() == 1 })
	select {
	case err := <-wrote:
		t.Fatalf("acknowledged before the handshake: %v", err)
	default:
	}
	s.ReleaseAll()
	within(t, "the write", func() {
		if err := <-wrote; err != nil {
			t.Error(err)
		}
		h.Stdin().Close()
	})
	if r, err := h.Wait(t.Context()); err != nil || r.Outcome != (remoteexec.Outcome{}) {
		t.Errorf("%+v %v", r.Outcome, err)
	}
	if text, _ := h.Collected(remoteexec.Stdout).ReadText(0); text.Text != "once\n" {
		t.Errorf("output %q", text.Text)
	}
}

// C101: a refused handshake fails the pending write, the pending close and the
// wait with the same error. C102: so does a shutdown while it is stalled, at
// once.
func TestPendingInputFailsWithTheStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rule *e2btest.Rule
		code fault.Code
	}{
		"refused": {&e2btest.Rule{Status: 401, Text: `{"code":"unauthenticated","message":"no"}`}, fault.BackendAuthFailed},
		"stalled": {&e2btest.Rule{}, fault.ExecDisposing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _, w := prepared(t)
			c.rule.Method, c.rule.Body, c.rule.Hold = "Start", marked, make(chan struct{})
			s.Rule(c.rule)
			h := spawnMarked(t, w, nil, "cat")
			eventually(t, "the held start", func() bool { return c.rule.Used() == 1 })
			var errs []error
			within(t, "the pending input", func() {
				pending := make(chan error, 2)
				go func() { _, err := h.Stdin().Write([]byte("x")); pending <- err }()
				go func() { pending <- h.Stdin().Close() }()
				if c.rule.Status != 0 {
					s.ReleaseAll()
				} else if err := w.Processes().Shutdown(context.Background()); err != nil {
					t.Error(err)
				}
				errs = append(errs, <-pending, <-pending)
				_, err := h.Wait(context.Background())
				errs = append(errs, err)
			})
			for i, err := range errs {
				if !fault.Is(err, c.code) {
					t.Errorf("%d: %v, want %s", i, err, c.code)
				}
			}
		})
	}
}

// C104, C105, C106: once termination was asked for, the stop is the first thing
// that is sent and no input follows, be it batch data, queued, or written later.
func TestStopComesFirst(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"data", "queued", "later"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s, b, w := prepared(t)
			hold := &e2btest.Rule{Method: "Start", Body: marked, Times: 1, Hold: make(chan struct{})}
			if mode != "later" {
				s.Rule(hold)
			}
			h := spawnMarked(t, w, func(spec *remoteexec.Spec) {
				if mode == "data" {
					spec.Stdin, spec.StdinData = remoteexec.StdinData, []byte("never")
				}
			}, "echo up; cat >/dev/null; sleep 600")
			wrote := make(chan struct{})
			write := func() { defer close(wrote); h.Stdin().Write([]byte("never")) }
			switch mode {
			case "queued":
				go write()
				fallthrough
			case "data":
				eventually(t, "the held start", func() bool { return hold.Used() == 1 })
				h.Terminate()
			case "later":
				<-h.Started()
				h.Terminate()
				write()
			}
			s.ReleaseAll()
			if _, err := h.Wait(t.Context()); err != nil && !fault.Is(err, fault.ExecCancelled) {
				t.Error(err)
			}
			if mode == "queued" {
				within(t, "the queued write", func() { <-wrote })
			}
			if got := s.Requests(); slices.Contains(got, "StreamInput") || slices.Contains(got, "SendInput") {
				t.Errorf("input was sent: %v", got)
			}
			eventually(t, "the end of the program", func() bool { return len(b.Processes()) == 0 })
		})
	}
}

// C107: a connection that breaks inside a write, or inside the close, ends that
// operation, and nothing hangs.
func TestConnectionBreaksInsideInput(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"StreamInput", "CloseStdin"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			s, b, w := prepared(t)
			s.Rule(&e2btest.Rule{Method: method, Cut: -1})
			h := spawnMarked(t, w, nil, "cat")
			within(t, "the input", func() {
				_, err := h.Stdin().Write([]byte("x"))
				for err == nil && method == "StreamInput" {
					_, err = h.Stdin().Write([]byte("x"))
				}
				if closed := h.Stdin().Close(); err == nil {
					err = closed
				}
				if !fault.Is(err, fault.ExecTransportLost) {
					t.Errorf("error %v", err)
				}
			})
			h.Terminate()
			if _, err := h.Wait(t.Context()); err != nil {
				t.Error(err)
			}
			eventually(t, "the end of the program", func() bool { return len(b.Processes()) == 0 })
		})
	}
}

// C195: an id that cannot be a program's fails the start, and no signal is sent
// to it.
func TestUnusableProcessIDs(t *testing.T) {
	t.Parallel()
	s, _, w := prepared(t)
	for _, pid := range []string{"1", "0", "-5", `"abc"`} {
		s.ResetLog()
		rule := s.Rule(&e2btest.Rule{Method: "Start", Body: marked, Times: 1, Status: 200, Text: e2btest.Frames(`{"event":{"start":{"pid":` + pid + `}}}`)})
		_, err := spawnMarked(t, w, nil, "cat").Wait(t.Context())
		if rule.Used() != 1 || !fault.Is(err, fault.ExecTransportCorrupt) && !fault.Is(err, fault.ExecTransportLost) {
			t.Errorf("%s: %v", pid, err)
		}
		for _, e := range s.Log() {
			if e.Method == "SendSignal" || strings.Contains(string(e.Body), "kill -s") {
				t.Errorf("%s: a signal was sent: %s", pid, e.Body)
			}
		}
	}
}
