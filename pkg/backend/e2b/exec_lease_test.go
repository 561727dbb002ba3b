package e2b_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/afield-dev/afield/pkg/backend/e2b"
	"github.com/afield-dev/afield/pkg/backend/e2b/e2btest"
	"github.com/afield-dev/afield/pkg/remoteexec"
)

// leased starts a program that runs until it is told to end.
func leased(t *testing.T, w *e2b.World, lease time.Duration, script string) remoteexec.Handle {
	t.Helper()
	out := remoteexec.Output{Mode: remoteexec.OutputCollect, MaxBytes: 1000}
	h, err := w.Processes().Spawn(t.Context(), remoteexec.Spec{
		Argv: []string{"/bin/sh", "-c", script}, Cwd: "/", Stdout: out, Stderr: out, Grace: 100 * time.Millisecond, Lease: lease,
		Env: remoteexec.Env{Set: map[string]string{"LEASED": "yes"}}, Stdin: remoteexec.StdinPipe,
	})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited a minute for %s", what)
		}
	}
}

// A program whose owner has gone dies when its lease is over, with all that it
// started, also what ignores TERM (design.md 4.7).
func TestLeaseRunsOut(t *testing.T) {
	t.Parallel()
	s := newService(t, e2btest.Options{})
	b := s.Start(time.Hour)
	w, _ := s.inSandbox(t, b)
	h := leased(t, w, 500*time.Millisecond, `trap '' TERM; sleep 600 & echo "$LEASED"; wait; sleep 600`)
	<-h.Started()
	// From here on nothing of ours arrives any more.
	s.Rule(&e2btest.Rule{Method: "POST /files", Cut: -1})
	r, err := h.Wait(t.Context())
	if err != nil || r.Outcome.Signal != "SIGKILL" {
		t.Errorf("%+v %v", r.Outcome, err)
	}
	if text, _ := h.Collected(remoteexec.Stdout).ReadText(0); text.Text != "yes\n" {
		t.Errorf("output %q", text.Text)
	}
	eventually(t, "the end of all processes, the guard's too", func() bool { return len(b.Processes()) == 0 })
}

// While we are there the lease goes on; at the end its guard goes and nothing
// is left behind. The start is still one request.
func TestLeaseIsRenewed(t *testing.T) {
	t.Parallel()
	s := newService(t, e2btest.Options{})
	b := s.Start(time.Hour)
	w, _ := s.inSandbox(t, b)
	h := leased(t, w, 6*time.Second, "read -r line; exit 3")
	<-h.Started()
	beats := func() (n int) {
		for _, e := range s.Log() {
			if e.Method == "POST /files" && strings.Contains(e.Path, "/.afield/run/") {
				n++
			}
		}
		return n
	}
	starts := 0
	for _, e := range s.Log() {
		if e.Method == "Start" && strings.Contains(string(e.Body), "setsid") && strings.Contains(string(e.Body), "read -r line") {
			starts++
		}
	}
	if starts != 1 {
		t.Errorf("%d requests to start", starts)
	}
	eventually(t, "two renewals", func() bool { return beats() >= 1+2 }) // and the file with the environment
	h.Stdin().Close()
	if r, err := h.Wait(t.Context()); err != nil || r.Outcome != (remoteexec.Outcome{ExitCode: 3}) {
		t.Errorf("%+v %v", r.Outcome, err)
	}
	if gone, err := h.WaitForExit(context.Background()); !gone || err != nil {
		t.Errorf("%v %v", gone, err)
	}
	eventually(t, "the end of the guard", func() bool { return len(b.Processes()) == 0 })
	left, err := filepath.Glob(filepath.Join(b.Home, ".afield", "run", "*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}
