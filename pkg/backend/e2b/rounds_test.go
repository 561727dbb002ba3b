package e2b_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/afield-dev/afield/pkg/backend/e2b/e2btest"
	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// round is what is sent together.
type round = map[string]int

// Round trips of each primitive, resolving included (e2b.md 14.2, 15.1). The
// stand-in answers a round only when all of it has arrived, so a client that
// waits where it need not is stuck, and one that sends more is seen.
func TestRoundTrips(t *testing.T) {
	s := newService(t, e2btest.Options{})
	b := s.Start(time.Hour)
	w, dir := s.inSandbox(t, b)
	put := func(name, text string) string {
		t.Helper()
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return p
	}
	file := put("f", "one two")
	for i := range 30 {
		put(fmt.Sprintf("e%d", i), "")
		if err := os.Symlink(file, filepath.Join(dir, fmt.Sprintf("l%d", i))); err != nil {
			t.Fatal(err)
		}
	}
	looks := func(p string) int { return strings.Count(p, "/") }
	files := w.Files()
	text := func(s string) remotefs.WriteRequest {
		return remotefs.WriteRequest{Content: strings.NewReader(s), Size: int64(len(s)), Mode: -1}
	}
	// The first use prepares the sandbox.
	if _, err := files.WriteText(t.Context(), remotefs.AtPath("first", ""), text("x")); err != nil {
		t.Fatal(err)
	}
	version := func() string {
		t.Helper()
		_, info, err := files.Stat(t.Context(), remotefs.AtPath("f", ""))
		if err != nil || info == nil {
			t.Fatal(info, err)
		}
		return info.Version
	}
	check := func(name string, call func() error, want ...round) {
		t.Helper()
		s.ExpectRounds(want...)
		watch := time.AfterFunc(30*time.Second, func() { s.EndRounds() })
		err := call()
		if !watch.Stop() {
			t.Fatalf("%s: the requests of a round never came together; so far %v", name, s.Requests())
		}
		missing, extra := s.EndRounds()
		if err != nil || len(missing) > 0 || len(extra) > 0 {
			t.Errorf("%s: %v; missing rounds %v; requests beside %v", name, err, missing, extra)
		}
	}

	check("stat", func() error { version(); return nil }, round{"Stat": looks(file)})
	check("read", func() error { _, err := files.ReadText(t.Context(), remotefs.AtPath("f", "")); return err },
		round{"Stat": looks(file)}, round{"GET /files": 1})
	check("list with links", func() error { _, _, err := files.ListDir(t.Context(), remotefs.AtPath(dir, "")); return err },
		round{"Stat": looks(dir), "ListDir": 1}, round{"Stat": 30})
	check("create if absent", func() error {
		req := text("new")
		req.Intent = remotefs.IntentCreate
		_, err := files.WriteText(t.Context(), remotefs.AtPath("made", ""), req)
		return err
	}, round{"Stat": looks(file), "POST /files": 1}, round{"Start": 1})
	guard := version()
	check("guarded replace", func() error {
		req := text("one two three")
		req.Intent, req.Version = remotefs.IntentReplace, guard
		_, err := files.WriteText(t.Context(), remotefs.AtPath("f", ""), req)
		return err
	}, round{"Stat": looks(file), "POST /files": 1}, round{"Start": 1})
	check("unguarded replace", func() error {
		_, err := files.WriteText(t.Context(), remotefs.AtPath("f", ""), text("one two"))
		return err
	}, round{"Stat": looks(file), "POST /files": 1}, round{"Move": 1})
	check("edit", func() error {
		_, err := files.EditText(t.Context(), remotefs.AtPath("f", ""), remotefs.EditRequest{Edits: []remotefs.Edit{{Old: "two", New: "2"}}})
		return err
	}, round{"Stat": looks(file)}, round{"GET /files": 1}, round{"Stat": 1, "POST /files": 1}, round{"Start": 1})

	spec := remoteexec.Spec{
		Argv: []string{"/bin/true"}, Cwd: dir, Grace: time.Second,
		Stdout: remoteexec.Output{Mode: remoteexec.OutputCollect, MaxBytes: 100},
		Stderr: remoteexec.Output{Mode: remoteexec.OutputCollect, MaxBytes: 100},
	}
	start := func(spec remoteexec.Spec) error {
		h, err := w.Processes().Spawn(t.Context(), spec)
		if err == nil {
			<-h.Started()
		}
		return err
	}
	check("spawn", func() error { return start(spec) }, round{"Start": 1})
	spec.Env.Set = map[string]string{"A": "b"}
	check("spawn with environment", func() error { return start(spec) }, round{"POST /files": 1}, round{"Start": 1})
	check("which", func() error { _, err := w.Processes().LookPath(t.Context(), "sh", remoteexec.Env{}); return err },
		round{"Stat": 6})
	check("terminal", func() error {
		_, err := w.Processes().OpenTerminal(t.Context(), remoteexec.TerminalSpec{
			Argv: []string{"cat"}, Cwd: dir, Rows: 24, Cols: 80, Grace: time.Second})
		return err
	}, round{"Start": 1})
}
