package e2b_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/afield-dev/afield/pkg/backend/e2b/e2btest"
	"github.com/afield-dev/afield/pkg/backend/e2b/wire"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// client gives a wire client of a sandbox, past all of our rules.
func (s *service) client(b *e2btest.Sandbox) *wire.Client {
	h := http.Header{}
	h.Set(wire.HeaderSandboxID, b.ID)
	h.Set(wire.HeaderSandboxPort, "49983")
	h.Set(wire.HeaderAccessToken, b.Token)
	return &wire.Client{HTTP: http.DefaultClient, Base: s.SandboxURL(), Header: h}
}

// run runs a program in a world and gives its outcome and output.
func run(t *testing.T, rt remoteexec.Runtime, dir string, argv ...string) (remoteexec.Report, string, error) {
	t.Helper()
	out := remoteexec.Output{Mode: remoteexec.OutputCollect, MaxBytes: 1 << 20}
	h, err := rt.Spawn(t.Context(), remoteexec.Spec{Argv: argv, Cwd: dir, Stdout: out, Stderr: out, Grace: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := h.Wait(ctx)
	c, readErr := h.Collected(remoteexec.Stdout).ReadFrom(0)
	if readErr != nil {
		t.Fatal(readErr)
	}
	return r, string(c.Bytes), err
}

// Quirk 1: a keepalive interval below 1 would kill the daemon; it is never sent.
func TestQuirkKeepaliveInterval(t *testing.T) {
	s := newService(t, e2btest.Options{})
	b := s.Start(time.Hour)
	c := s.client(b)
	for _, n := range []int{0, -1} {
		if _, err := c.Open(t.Context(), wire.MethodStart, wire.StartRequest{}, n); err == nil {
			t.Errorf("an interval of %d was sent", n)
		}
	}
	if err := c.Health(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(s.Requests()) != 1 {
		t.Errorf("requests %v", s.Requests())
	}
}

// Quirks 2, 3 and 4: a program leads a session and group of its own, its id is
// the group's, and it is ended as a whole under a shell that is dash.
func TestQuirkGroups(t *testing.T) {
	s := newService(t, e2btest.Options{})
	w, dir := s.inSandbox(t, s.Start(time.Hour))
	h, err := w.Processes().Spawn(t.Context(), remoteexec.Spec{
		Argv: []string{"/bin/sh", "-c", `sleep 600 & sleep 600 & echo up; wait`}, Cwd: dir, Grace: time.Second,
		Stdout: remoteexec.Output{Mode: remoteexec.OutputPipe}, Stderr: remoteexec.Output{Mode: remoteexec.OutputCollect, MaxBytes: 100},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Pipe(remoteexec.Stdout).Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	pgid, err := syscall.Getpgid(h.PID())
	if err != nil || pgid != h.PID() {
		t.Errorf("group %d of process %d, %v", pgid, h.PID(), err)
	}
	if own, _ := syscall.Getpgid(0); pgid == own {
		t.Fatal("the program shares the daemon's group")
	}
	if n := len(h.Survivors()); n != 3 {
		t.Errorf("%d members, not 3", n)
	}
	h.Terminate()
	if gone, err := h.WaitForExit(t.Context()); !gone || err != nil {
		t.Errorf("gone %v, %v", gone, err)
	}
	if r, err := h.Wait(t.Context()); err != nil || r.Outcome.Signal != "SIGTERM" {
		t.Errorf("%+v %v", r.Outcome, err)
	}
}

// Quirk 5: the report waits for every holder of the output; the outcome does
// not (OC-11), and its facts are exact: a code and a signal stay apart (C169).
func TestQuirkReportWaitsForHolders(t *testing.T) {
	s := newService(t, e2btest.Options{})
	w, dir := s.inSandbox(t, s.Start(time.Hour))
	for script, want := range map[string]remoteexec.Outcome{
		"sleep 600 & exit 143":      {ExitCode: 143},
		"sleep 600 & kill -TERM $$": {Signal: "SIGTERM"},
	} {
		t.Run(want.Signal, func(t *testing.T) {
			r, _, err := run(t, w.Processes(), dir, "/bin/sh", "-c", script)
			if err != nil || r.Outcome != want || !r.Incomplete {
				t.Errorf("%+v %v", r, err)
			}
		})
	}
}

// Quirk 6: a missing program is an exit of 127, and a start failure only when a
// look proves it missing (RS-12).
func TestQuirkMissingProgram(t *testing.T) {
	s := newService(t, e2btest.Options{})
	w, dir := s.inSandbox(t, s.Start(time.Hour))
	if _, _, err := run(t, w.Processes(), dir, "no-such-program"); !fault.Is(err, fault.ExecProgramNotFound) {
		t.Errorf("missing: %v", err)
	}
	if _, _, err := run(t, w.Processes(), dir, dir); !fault.Is(err, fault.ExecProgramNotExecutable) {
		t.Errorf("a directory: %v", err)
	}
	for _, code := range []string{"126", "127"} {
		r, _, err := run(t, w.Processes(), dir, "/bin/sh", "-c", "exit "+code)
		if err != nil || r.Outcome.ExitCode < 126 {
			t.Errorf("by choice: %+v %v", r, err)
		}
	}
}

// Quirk 7: a program outlives its connection; the client ends it then and
// reports a lost connection, never an exit (C209).
func TestQuirkLostConnection(t *testing.T) {
	s := newService(t, e2btest.Options{})
	b := s.Start(time.Hour)
	w, dir := s.inSandbox(t, b)
	if _, _, err := run(t, w.Processes(), dir, "true"); err != nil {
		t.Fatal(err)
	}
	s.Rule(&e2btest.Rule{Method: "Start", Body: "cut-me", Times: 1, Cut: 60})
	_, _, err := run(t, w.Processes(), dir, "/bin/sh", "-c", "echo a long line that passes the limit of the cut; sleep 600", "cut-me")
	if !fault.Is(err, fault.ExecTransportLost) {
		t.Errorf("error %v", err)
	}
	if left := b.Processes(); len(left) != 0 {
		t.Errorf("processes %v are left", left)
	}
}

// Quirk 9: processes are never selected by tag.
func TestQuirkTags(t *testing.T) {
	s := newService(t, e2btest.Options{})
	w, dir := s.inSandbox(t, s.Start(time.Hour))
	if _, out, err := run(t, w.Processes(), dir, "echo", "x"); err != nil || out != "x\n" {
		t.Fatal(out, err)
	}
	for _, e := range s.Log() {
		if e.Method != "Start" && strings.Contains(string(e.Body), `"tag"`) {
			t.Errorf("%s selects by tag: %s", e.Method, e.Body)
		}
	}
}

// Quirk 10: input begins with the message that names the process, else the
// connection is cut without an answer.
func TestQuirkInputOrder(t *testing.T) {
	s := newService(t, e2btest.Options{})
	b := s.Start(time.Hour)
	err := s.client(b).Send(t.Context(), wire.MethodStreamInput, func(send func(any) error) error {
		return send(wire.StreamInputRequest{Data: &wire.InputData{Input: wire.ProcessInput{Stdin: []byte("x")}}})
	})
	if err == nil || wire.StatusOf(err) != 0 {
		t.Errorf("error %v", err)
	}
	if err := s.client(b).Health(t.Context()); err != nil {
		t.Errorf("the daemon is gone: %v", err)
	}
}

// Quirks 11 and 12: content never goes onto the target itself; a replaced file
// has a new inode, and a reader that holds the old one sees it whole.
func TestQuirkUploadsTruncate(t *testing.T) {
	s := newService(t, e2btest.Options{})
	w, dir := s.inSandbox(t, s.Start(time.Hour))
	p := filepath.Join(dir, "f")
	if err := os.WriteFile(p, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	held, err := os.Open(p)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	req := remotefs.WriteRequest{Content: strings.NewReader("new"), Size: 3, Mode: -1}
	if _, err := w.Files().WriteText(t.Context(), remotefs.AtPath("f", ""), req); err != nil {
		t.Fatal(err)
	}
	if text, _ := io.ReadAll(held); string(text) != "old" {
		t.Errorf("the open file holds %q", text)
	}
	for _, e := range s.Log() {
		if e.Method == "POST /files" && e.Path == p {
			t.Error("content was uploaded onto the target")
		}
	}
}

// Quirk 13: no request asks for compression by itself; only files without a
// size are read compressed.
func TestQuirkCompression(t *testing.T) {
	s := newService(t, e2btest.Options{})
	w, dir := s.inSandbox(t, s.Start(time.Hour))
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte(strings.Repeat("text ", 1000)), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Files().ReadText(t.Context(), remotefs.AtPath("f", "")); err != nil {
		t.Fatal(err)
	}
	if text, err := w.Files().ReadText(t.Context(), remotefs.AtPath("/proc/self/status", "")); err != nil || text.Bytes == 0 {
		t.Errorf("a file without a size: %d bytes, %v", text.Bytes, err)
	}
	for _, e := range s.Log() {
		want := "identity"
		if strings.HasPrefix(e.Path, "/proc/") {
			want = "gzip"
		}
		if got := e.Header.Get("Accept-Encoding"); e.Method == "GET /files" && got != want {
			t.Errorf("%s asks for %q", e.Path, got)
		} else if e.Method != "GET /files" && got != "" && got != "identity" {
			t.Errorf("%s asks for %q", e.Method, got)
		}
	}
}

// Quirk 14: a FIFO is refused by its type; it is never opened.
func TestQuirkFIFO(t *testing.T) {
	s := newService(t, e2btest.Options{})
	w, dir := s.inSandbox(t, s.Start(time.Hour))
	if err := syscall.Mkfifo(filepath.Join(dir, "p"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Files().ReadText(t.Context(), remotefs.AtPath("p", "")); !fault.Is(err, fault.FSNotRegularFile) {
		t.Errorf("error %v", err)
	}
	for _, m := range s.Requests() {
		if m == "GET /files" {
			t.Error("it was opened")
		}
	}
}

// Quirk 17: one name that is not UTF-8 fails the server's listing; ours has
// all names (S-6, S-7).
func TestQuirkOddNames(t *testing.T) {
	s := newService(t, e2btest.Options{})
	w, dir := s.inSandbox(t, s.Start(time.Hour))
	for _, name := range []string{"a", "b\xff", "c"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("a", filepath.Join(dir, "l")); err != nil {
		t.Fatal(err)
	}
	_, entries, err := w.Files().ListDir(t.Context(), remotefs.AtPath(".", ""))
	if err != nil || len(entries) != 4 {
		t.Fatalf("%+v %v", entries, err)
	}
	for i, want := range []struct {
		raw  string
		kind remotefs.Type
		size int64
	}{{"", "file", 1}, {"b\xff", "other", -1}, {"", "file", 1}, {"", "file", 1}} {
		if e := entries[i]; string(e.RawName) != want.raw || e.Type != want.kind || e.Size != want.size {
			t.Errorf("entry %d: %+v", i, e)
		}
	}
}

// Quirk 18: every path that is sent is absolute and clean.
func TestQuirkPaths(t *testing.T) {
	s := newService(t, e2btest.Options{})
	w, dir := s.inSandbox(t, s.Start(time.Hour))
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Files().ReadText(t.Context(), remotefs.AtPath("sub/..//./f", "x/..")); err != nil {
		t.Fatal(err)
	}
	for _, e := range s.Log() {
		if e.Path != "" && filepath.Clean(e.Path) != e.Path || strings.Contains(string(e.Body), "..") {
			t.Errorf("%s %q %s", e.Method, e.Path, e.Body)
		}
	}
}

// Quirk 19: moving replaces without asking, so a guarded create never moves.
func TestQuirkMoveReplaces(t *testing.T) {
	s := newService(t, e2btest.Options{})
	w, _ := s.inSandbox(t, s.Start(time.Hour))
	req := remotefs.WriteRequest{Content: strings.NewReader("x"), Size: 1, Mode: -1, Intent: remotefs.IntentCreate}
	if _, err := w.Files().WriteText(t.Context(), remotefs.AtPath("f", ""), req); err != nil {
		t.Fatal(err)
	}
	for _, m := range s.Requests() {
		if m == "Move" {
			t.Error("a guarded create was moved into place")
		}
	}
}

// Quirk 22: what the platform logs holds no environment value, no input and no
// content (C84), and the private file of the environment is gone once it was
// read (C85).
func TestQuirkWhatIsLogged(t *testing.T) {
	const secret = "5ecret-Value"
	s := newService(t, e2btest.Options{})
	b := s.Start(time.Hour)
	w, dir := s.inSandbox(t, b)
	out := remoteexec.Output{Mode: remoteexec.OutputCollect, MaxBytes: 1000}
	h, err := w.Processes().Spawn(t.Context(), remoteexec.Spec{
		Argv: []string{"/bin/sh", "-c", `cat; printf %s "$S"`}, Cwd: dir, Grace: time.Second, Stdout: out, Stderr: out,
		Env: remoteexec.Env{Set: map[string]string{"S": secret}}, Stdin: remoteexec.StdinData, StdinData: []byte(secret),
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c, _ := h.Collected(remoteexec.Stdout).ReadFrom(0); string(c.Bytes) != secret+secret {
		t.Errorf("output %q", c.Bytes)
	}
	req := remotefs.WriteRequest{Content: strings.NewReader(secret), Size: int64(len(secret)), Mode: -1}
	if _, err := w.Files().WriteText(t.Context(), remotefs.AtPath("f", ""), req); err != nil {
		t.Fatal(err)
	}
	for _, e := range s.Log() {
		if strings.Contains(string(e.Body), secret) || strings.Contains(string(e.Body), testKey) {
			t.Errorf("%s shows it: %s", e.Method, e.Body)
		}
	}
	left, err := filepath.Glob(filepath.Join(b.Home, ".afield", "*", "*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// Quirk 23: programs start without a login shell, so no profile runs (C87).
func TestQuirkLoginProfiles(t *testing.T) {
	s := newService(t, e2btest.Options{})
	b := s.Start(time.Hour)
	w, dir := s.inSandbox(t, b)
	for _, name := range []string{".profile", ".bash_profile", ".bashrc"} {
		if err := os.WriteFile(filepath.Join(b.Home, name), []byte("echo NOISE; export LEAK=1\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, out, err := run(t, w.Processes(), dir, "/bin/sh", "-c", `echo "[${LEAK-none}]"`); err != nil || out != "[none]\n" {
		t.Errorf("%q %v", out, err)
	}
}

// Case C74: the sandbox's own variables that look like credentials are kept
// from programs; an explicit one stands.
func TestCredentialsOfTheSandbox(t *testing.T) {
	s := newService(t, e2btest.Options{Platform: map[string]string{"NPM_TOKEN": "1", "DSH_STALE": "1", "dsh_x": "1", "KEEP": "yes"}})
	w, dir := s.inSandbox(t, s.Start(time.Hour))
	_, out, err := run(t, w.Processes(), dir, "/bin/sh", "-c", `echo "$KEEP"; env | grep -E '^(NPM_TOKEN|DSH_STALE|dsh_x)='; exit 0`)
	if err != nil || out != "yes\n" {
		t.Errorf("%q %v", out, err)
	}
}
