package ssh_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/backend/ssh"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// counter counts round trips after the login.
type counter struct {
	steps []string
	trips int
}

func (c *counter) trace(step string, trips int, _ int64) {
	if step != "connect" {
		c.steps, c.trips = append(c.steps, step), c.trips+trips
	}
}

// openIn opens the world of a server as a further command on the same host would.
func (s *server) openIn(t *testing.T, state string, change map[string]any) (*ssh.World, *counter) {
	t.Helper()
	c := &counter{}
	w, err := open(t, s.row(change), func(r *backend.OpenRequest) { r.StateDir, r.Trace = state, c.trace })
	if err != nil {
		t.Fatalf("open: %v\n%s", err, s.Log)
	}
	return w, c
}

// A cold command takes no more round trips than the contract allows, opening the
// channel included, once the host is remembered (design.md 6).
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	state, dir := t.TempDir(), tempDir(t)
	at := remotefs.AtPath(dir+"/f", "")
	for i := range 300 {
		write(t, dir+"/"+strings.Repeat("n", i%200)+string(rune('a'+i%26)), "")
	}
	put := func(w *ssh.World, text string, intent remotefs.Intent, version string) error {
		_, err := w.Files().WriteText(t.Context(), at, remotefs.WriteRequest{Content: strings.NewReader(text),
			Size: int64(len(text)), Intent: intent, Version: version, Mode: -1})
		return err
	}
	version := ""
	if w, c := s.openIn(t, state, nil); c.trips != 2 || w == nil {
		t.Errorf("asking the host takes %d round trips: %q", c.trips, c.steps)
	}
	for _, step := range []struct {
		name  string
		trips int
		run   func(w *ssh.World) error
	}{
		{"create", 3, func(w *ssh.World) error { return put(w, "one\n", remotefs.IntentCreate, "") }},
		{"read", 2, func(w *ssh.World) error {
			text, err := w.Files().ReadText(t.Context(), at)
			version = text.Version
			return err
		}},
		{"replace", 3, func(w *ssh.World) error { return put(w, "two\n", remotefs.IntentReplace, version) }},
		{"edit", 4, func(w *ssh.World) error {
			_, err := w.Files().EditText(t.Context(), at, remotefs.EditRequest{Edits: []remotefs.Edit{{Old: "two", New: "three"}}})
			return err
		}},
		{"stat", 2, func(w *ssh.World) error { _, _, err := w.Files().Stat(t.Context(), at); return err }},
		{"list", 2, func(w *ssh.World) error {
			_, _, err := w.Files().ListDir(t.Context(), remotefs.AtPath(dir, ""))
			return err
		}},
		{"which", 2, func(w *ssh.World) error {
			_, err := w.Processes().LookPath(t.Context(), "sh", remoteexec.Env{})
			return err
		}},
		{"exec", 2, func(w *ssh.World) error {
			h, err := w.Processes().Spawn(t.Context(), remoteexec.Spec{Argv: []string{"true"}, Cwd: "/", Grace: 60e9,
				Stdout: remoteexec.Output{Mode: remoteexec.OutputCollect, MaxBytes: 1},
				Stderr: remoteexec.Output{Mode: remoteexec.OutputCollect, MaxBytes: 1}})
			if err != nil {
				return err
			}
			_, err = h.Wait(t.Context())
			if left := h.Survivors(); left != nil {
				t.Errorf("left: %v", left)
			}
			return err
		}},
	} {
		w, c := s.openIn(t, state, nil)
		if err := step.run(w); err != nil || c.trips != step.trips {
			t.Errorf("%s: %d round trips, want %d: %q, %v", step.name, c.trips, step.trips, c.steps, err)
		}
		w.Close(context.Background())
	}
}

// What is remembered of a host is proven before anything is done: another home is
// refused, and the next command asks again.
func TestRememberedHomeIsProven(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	state, dir := t.TempDir(), tempDir(t)
	s.openIn(t, state, nil)
	files, _ := filepath.Glob(state + "/ssh/host-*.json")
	if len(files) != 1 {
		t.Fatalf("remembered: %q", files)
	}
	if fi, err := os.Stat(files[0]); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("mode: %v, %v", fi.Mode(), err)
	}
	write(t, files[0], strings.Replace(readFile(t, files[0]), s.Dir, dir, 1))
	w, c := s.openIn(t, state, nil)
	if c.trips != 0 {
		t.Errorf("a remembered host was asked: %q", c.steps)
	}
	for name, err := range map[string]error{
		"write": func() error {
			_, err := w.Files().WriteText(t.Context(), remotefs.AtPath("f", ""), remotefs.WriteRequest{
				Content: strings.NewReader("x"), Size: 1, Mode: -1})
			return err
		}(),
		"read": func() error { _, err := w.Files().ReadText(t.Context(), remotefs.AtPath("f", "")); return err }(),
		"exec": func() error {
			_, _, _, err := run(t, w.Processes(), remoteexec.Spec{Argv: []string{"touch", dir + "/ran"}})
			return err
		}(),
	} {
		if !fault.Is(err, fault.BackendConflict) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("something was done: %v", left)
	}
	w, c = s.openIn(t, state, nil)
	if home, _ := w.Cwd(t.Context()); home != s.Dir || c.trips != 2 {
		t.Errorf("home %q after %q", home, c.steps)
	}
	os.Chmod(files[0], 0o644)
	if _, c := s.openIn(t, state, nil); c.trips != 2 {
		t.Error("a file that others can read is trusted")
	}
}

// Whoever outlives a program is named without a request, and ended with the
// connection.
func TestLeftBehind(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	w := s.mustOpen(t, nil)
	dir := tempDir(t)
	for name, stdin := range map[string]remoteexec.StdinMode{"without input": remoteexec.StdinIgnore, "with input": remoteexec.StdinData} {
		h, err := w.Processes().Spawn(t.Context(), remoteexec.Spec{
			Argv: []string{"sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $! >" + dir + "/pid"}, Cwd: "/", Grace: 60e9, Stdin: stdin,
			Stdout: remoteexec.Output{Mode: remoteexec.OutputCollect, MaxBytes: 1}, Stderr: remoteexec.Output{Mode: remoteexec.OutputCollect, MaxBytes: 100}})
		if err != nil {
			t.Fatal(err)
		}
		if report, err := h.Wait(t.Context()); err != nil || report.Incomplete || report.Stderr.Bytes != 0 {
			t.Errorf("%s: %+v, %v", name, report, err)
		}
		pid := strings.TrimSpace(readFile(t, dir+"/pid"))
		if left := h.Survivors(); len(left) != 1 {
			t.Errorf("%s: left %v, want %s", name, left, pid)
		}
		w.Cut()
		awaitGone(t, pid)
		w = s.mustOpen(t, nil)
	}
}
