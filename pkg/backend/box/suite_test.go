package box

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/afield-dev/afield/pkg/backend/box/boxtest"
	"github.com/afield-dev/afield/pkg/backend/box/wire"
	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/remoteexec/exectest"
	"github.com/afield-dev/afield/pkg/remotefs"
	"github.com/afield-dev/afield/pkg/remotefs/fstest"
	"github.com/afield-dev/afield/pkg/script"
)

// The numbered cases of the process contract hold on the stand-in.
func TestProcessContract(t *testing.T) {
	t.Parallel()
	s := newServer(t, boxtest.Options{})
	id := newBox(t, s)
	exectest.Run(t, exectest.Backend{Open: func(r exectest.T) (remoteexec.Runtime, string) {
		dir := defaultCwd + "/case-" + token(6)
		w, err := Open(r.Context(), request(r.(testing.TB), s, map[string]any{"sandbox": id, "cwd": dir}))
		if err != nil {
			r.Fatalf("%v", err)
		}
		r.Cleanup(func() { _ = w.Close(context.Background()) })
		makeDir(r.(testing.TB), w, dir)
		return w.Processes(), dir
	}})
}

// newBox makes a box that lasts as long as the server.
func newBox(t testing.TB, s *boxtest.Server) string {
	t.Helper()
	w := open(t, s, map[string]any{"create": true})
	id, err := w.link.id(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// makeDir makes a directory in the world.
func makeDir(t testing.TB, w *World, dir string) {
	t.Helper()
	id, err := w.link.id(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	res, err := w.link.client.Exec(t.Context(), id, []string{"mkdir", dir}, "/")
	if err != nil || res.ExitCode != 0 {
		t.Fatalf("make %s: %v %v", dir, res, err)
	}
}

// inCore reports whether a case is about what the contract's core does by itself
// once content has been read (URLs, the arithmetic of edits, fence, window,
// policy). A box takes tens of processes for each of them and adds nothing, so
// they are run on one only when AFIELD_TEST_FULL is set.
func inCore(c fstest.Case) bool {
	n := c.Num
	return os.Getenv("AFIELD_TEST_FULL") == "" &&
		(35 <= n && n <= 47 || 191 <= n && n <= 211 || n >= 240)
}

// The numbered cases of the file contract hold on the stand-in.
func TestFileContract(t *testing.T) {
	t.Parallel()
	fstest.Run(t, fileBackend(t, newServer(t, boxtest.Options{})))
}

func fileBackend(t *testing.T, s *boxtest.Server) fstest.Backend {
	w := open(t, s, map[string]any{"create": true})
	dir := defaultCwd + "/suite"
	makeDir(t, w, dir)
	driver := &files{w.link}
	state := t.TempDir()
	another := func() (remotefs.FS, error) {
		return remotefs.New(driver, remotefs.Options{Locks: remotefs.NewLocks(state, "suite")}), nil
	}
	first, err := another()
	if err != nil {
		t.Fatal(err)
	}
	return fstest.Backend{Facts: driver.Facts(), Files: first, Another: another, Driver: driver, Dir: dir, StateDir: state, Rounds: 1,
		World: newBoxWorld(s.Boxes()[0].Home),
		Only:  func(c fstest.Case) bool { return c.Num != 239 && !inCore(c) }}
}

// decode lets any bytes be arguments: a frame carries text only.
const decode = `i=$#; while [ $i -gt 0 ]; do w=$1; shift; case $w in =*) v=${w#=};; ` +
	`*) v=$(printf "%b." "${w#%}"); v=${v%.};; esac; set -- "$@" "$v"; i=$((i-1)); done; exec "$@"`

// runInBox runs a program in a session, without the contract's help.
func runInBox(w *World, id string, stdin []byte, argv []string) ([]byte, error) {
	words := []string{"sh", "-c", decode, "sh"}
	for _, a := range argv {
		words = append(words, script.Word(a))
	}
	s, err := w.link.client.Open(context.Background(), id, wire.Start{Argv: words, Cwd: "/"})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	go func() {
		_, _ = s.Write(stdin)
		_ = s.CloseStdin()
	}()
	var out, complaint bytes.Buffer
	code, err := s.Serve(func(stream wire.Stream, p []byte) {
		if stream == wire.Stdout {
			out.Write(p)
		} else {
			complaint.Write(p)
		}
	})
	if err == nil && code != 0 {
		err = fmt.Errorf("status %d: %s", code, complaint.String())
	}
	return out.Bytes(), err
}
