package patch

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/backend/local"
	"github.com/afield-dev/afield/pkg/diff"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
	"github.com/afield-dev/afield/pkg/tree"
)

func newWorld(t *testing.T, dir string) World {
	t.Helper()
	w, err := local.Open(backend.OpenRequest{HostDir: dir, NewFileMode: -1, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	tr, err := tree.New(tree.Options{Files: w.Files()})
	if err != nil {
		t.Fatal(err)
	}
	return World{Files: w.Files(), Remove: func(ctx context.Context, p, version string) error {
		_, err := tr.Remove(ctx, p, tree.RemoveOptions{Version: version})
		return err
	}}
}

func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func state(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		c, _ := os.ReadFile(filepath.Join(dir, e.Name()))
		b.WriteString(e.Name() + "=" + string(c) + ";")
	}
	return b.String()
}

const mixed = `diff --git a/a b/a
--- a/a
+++ b/a
@@ -1,2 +1,3 @@
 one
+new
 two
--- /dev/null
+++ b/c
@@ -0,0 +1 @@
+made
\ No newline at end of file
--- a/b
+++ /dev/null
@@ -1 +0,0 @@
-gone
`

func TestUnifiedDiffOverSeveralFiles(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"a": "one\r\ntwo\r\n", "b": "gone\n"})
	changes, err := ParseUnified(mixed, -1)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, dir)
	before := state(t, dir)
	if r, err := Apply(t.Context(), w, changes, true); err != nil || len(r) != 3 || state(t, dir) != before {
		t.Fatalf("dry run: %+v %v %s", r, err, state(t, dir))
	}
	r, err := Apply(t.Context(), w, changes, false)
	if err != nil || r[0].Operation != "update" || r[1].Operation != "create" || r[2].Operation != "remove" {
		t.Fatalf("%+v %v", r, err)
	}
	if got, want := state(t, dir), "a=one\r\nnew\r\ntwo\r\n;c=made;"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Whatever refuses, and at whichever place, nothing is left changed.
func TestAllOrNothing(t *testing.T) {
	for name, bad := range map[string]string{
		"edit":    `{"path":"b","edits":[{"old":"nosuch","new":"x"}]}`,
		"version": `{"path":"b","ifVersion":"1:2","content":"x"}`,
		"absent":  `{"path":"b","ifAbsent":true,"content":"x"}`,
		"missing": `{"path":"nosuch","remove":true}`,
		"twice":   `{"path":"./a","content":"x"}`,
	} {
		dir := t.TempDir()
		put(t, dir, map[string]string{"a": "one\n", "b": "two\n"})
		before := state(t, dir)
		changes, err := ParseJSON([]byte(`[{"path":"a","edits":[{"old":"one","new":"1"}]},{"path":"new","content":"n"},` + bad + `]`))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Apply(t.Context(), newWorld(t, dir), changes, false); err == nil || state(t, dir) != before {
			t.Errorf("%s: %v %s", name, err, state(t, dir))
		}
	}
}

// failing refuses the write of one file after the others were prepared.
type failing struct {
	remotefs.FS
	path string
	act  func()
}

func (f failing) WriteText(ctx context.Context, at remotefs.At, w remotefs.WriteRequest) (remotefs.WriteOutcome, error) {
	if filepath.Base(at.Target.Key) == f.path {
		f.act()
		return remotefs.WriteOutcome{}, fault.New(fault.FSIOError, "write", f.path, "disk full")
	}
	return f.FS.WriteText(ctx, at, w)
}

// A failure in the middle takes back what was done; what somebody else changed
// since stays, and is said.
func TestRollback(t *testing.T) {
	for _, foreign := range []bool{false, true} {
		dir := t.TempDir()
		put(t, dir, map[string]string{"a": "one\n", "b": "two\n", "c": "three\n"})
		before := state(t, dir)
		w := newWorld(t, dir)
		w.Files = failing{w.Files, "c", func() {
			if foreign {
				put(t, dir, map[string]string{"a": "foreign\n"})
			}
		}}
		changes, _ := ParseJSON([]byte(`[{"path":"a","content":"1"},{"path":"b","edits":[{"old":"two","new":"2"}]},
			{"path":"n","content":"n"},{"path":"c","content":"3"}]`))
		_, err := Apply(t.Context(), w, changes, false)
		if !fault.Is(err, fault.FSIOError) {
			t.Fatal(err)
		}
		if foreign {
			before = strings.Replace(before, "a=one", "a=foreign", 1)
			if !strings.Contains(err.Error(), "could not be put back: a") {
				t.Error(err)
			}
		}
		if got := state(t, dir); got != before {
			t.Errorf("%q, want %q", got, before)
		}
	}
}

// A hunk that has moved is found, one that is not there is refused.
func TestHunksMove(t *testing.T) {
	changes, err := ParseUnified("--- x\n+++ x\n@@ -2,2 +2,2 @@\n b\n-c\n+C\n", 0)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := applyHunks("0\n1\n2\na\nb\nc\n", changes[0].Hunks); err != nil || got != "0\n1\n2\na\nb\nC\n" {
		t.Errorf("%q %v", got, err)
	}
	if _, err := applyHunks("a\nb\nx\n", changes[0].Hunks); err == nil {
		t.Error("applied")
	}
}

// What our own diff says, applied, gives the text after; and no input breaks the
// readers.
func FuzzUnified(f *testing.F) {
	f.Add("a\nb\nc\n", "a\nB\nc\nd", mixed)
	f.Add("", "x", "--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y")
	f.Add("x\r\n", "", "@@ -1 @@")
	f.Fuzz(func(t *testing.T, before, after, raw string) {
		if c, err := ParseUnified(raw, -1); err == nil {
			for _, x := range c {
				applyHunks(before, x.Hunks)
			}
		}
		if before == after || !strings.HasSuffix(before, "\n") || !strings.HasSuffix(after, "\n") || strings.ContainsRune(before+after, '\r') {
			return
		}
		var b bytes.Buffer
		if diff.WriteUnified(&b, "f", "f", diff.Hunks(before, after, 3)) != nil || b.Len() == 0 {
			return
		}
		c, err := ParseUnified(b.String(), 0)
		if err != nil || len(c) != 1 {
			t.Fatalf("%v\n%s", err, b.String())
		}
		if got, err := applyHunks(before, c[0].Hunks); err != nil || got != after {
			t.Errorf("%q to %q gave %q %v\n%s", before, after, got, err, b.String())
		}
	})
}

func FuzzJSON(f *testing.F) {
	f.Add([]byte(`[{"path":"a","content":"x"}]`))
	f.Add([]byte(`[{"path":"a","edits":[{"old":"a","new":"b"}]}] []`))
	f.Fuzz(func(t *testing.T, text []byte) {
		changes, err := ParseJSON(text)
		if err != nil {
			return
		}
		for _, c := range changes {
			if c.Path == "" || c.Content == nil && c.Edits == nil && !c.Remove {
				t.Errorf("%q gave %+v", text, c)
			}
		}
	})
}
