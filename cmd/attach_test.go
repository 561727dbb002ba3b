package cmd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A held terminal is attached to from a real one: full-screen programs draw
// there, sizes follow, the detach key leaves them running, and the program's
// status comes at its end.
func TestTermAttach(t *testing.T) {
	for _, tool := range []string{"tmux", "vim.tiny", "less", "top"} {
		needTool(t, tool)
	}
	t.Parallel()
	h := newKept(t, t.TempDir())
	h.setProfile("version: 1\nbackend: local\n")
	var long strings.Builder
	for i := range 200 {
		fmt.Fprintf(&long, "line %d.\n", i)
	}
	if err := os.WriteFile(filepath.Join(h.dir, "long.txt"), []byte(long.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	x := newTmux(t, h.dir)
	for _, e := range h.env {
		x.line("export '" + e + "'")
	}
	x.line("clear")
	shows := func(id, text string) {
		t.Helper()
		awaitThat(t, id+" shows "+text, func() bool { return strings.Contains(h.want(0, "term", "screen", id), text) })
	}

	h.want(0, "term", "open", "--", "vim.tiny", "-u", "NONE", "-N", "made.txt")
	x.line("afield term attach pty-1; echo status=$?")
	x.await("~")
	x.run("send-keys", "i")
	x.run("send-keys", "-l", "typed by hand")
	x.run("send-keys", "Escape")
	shows("pty-1", "typed by hand")
	x.run("resize-window", "-x", "70", "-y", "18")
	awaitThat(t, "the size follows", func() bool {
		return strings.Contains(h.want(0, "term", "screen", "--json", "pty-1"), `"rows":18,"cols":70,`)
	})
	x.run("send-keys", "-l", ":set lines?")
	x.run("send-keys", "Enter")
	shows("pty-1", "lines=18")
	_, errs, status := h.run("term", "attach", "--read-only", "pty-1")
	if status != exitFailed || !strings.Contains(errs, "needs a terminal") {
		t.Errorf("status %d: %s", status, errs)
	}
	x.run("send-keys", `C-\`)
	x.await("status=0")

	x.line("clear; afield term attach pty-1; echo status=$?")
	x.await("typed by hand")
	x.run("send-keys", "-l", ":wq")
	x.run("send-keys", "Enter")
	x.await("status=0")
	if b, err := os.ReadFile(h.dir + "/made.txt"); err != nil || string(b) != "typed by hand\n" {
		t.Errorf("made.txt holds %q: %v", b, err)
	}

	h.want(0, "term", "open", "--rows", "20", "--cols", "60", "--", "less", "long.txt")
	shows("pty-2", "line 7.")
	h.want(0, "term", "write", "pty-2", "G")
	shows("pty-2", "line 199.")
	h.want(0, "term", "resize", "pty-2", "--rows", "8", "--cols", "40")
	h.want(0, "term", "write", "pty-2", "g")
	shows("pty-2", "line 0.")
	h.want(0, "term", "write", "pty-2", "q")

	h.want(0, "term", "open", "--rows", "20", "--cols", "80", "--", "top", "-d", "0.5")
	shows("pty-3", "Tasks:")
	h.want(0, "term", "resize", "pty-3", "--rows", "12", "--cols", "100")
	x.line("clear; afield term attach pty-3; echo status=$?")
	x.await("Tasks:")
	x.run("send-keys", "q")
	x.await("status=0")
}
