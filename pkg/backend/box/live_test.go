package box

import (
	"context"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/backend/box/wire"
	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/remoteexec/exectest"
	"github.com/afield-dev/afield/pkg/remotefs"
	"github.com/afield-dev/afield/pkg/remotefs/fstest"
)

// The suites and the open questions on a real box of ten minutes, which is
// deleted at the end whatever happens (T-1; findings 9, 26).
func TestLive(t *testing.T) {
	key := os.Getenv("UPSTASH_BOX_API_KEY")
	if os.Getenv("AFIELD_TEST_LIVE") == "" || key == "" {
		t.Skip("SKIPPED: `make test-live` runs this with UPSTASH_BOX_API_KEY set")
	}
	req := backend.OpenRequest{Config: map[string]any{"ephemeral": true, "ttl": int64(600), "runtime": "node", "size": "small"},
		Secret:  func(context.Context, string) (string, error) { return key, nil },
		Environ: os.Environ(), HostDir: t.TempDir(), StateDir: t.TempDir(), NewFileMode: -1, Log: slog.New(slog.DiscardHandler)}
	boxes, err := openSandboxes(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	one, err := boxes.Create(t.Context(), backend.SandboxSpec{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if ok, err := boxes.Kill(ctx, one.ID); !ok || err != nil {
			t.Errorf("the box %s was not deleted: %v %v", one.ID, ok, err)
		}
		list, err := boxes.List(ctx, backend.SandboxFilter{})
		for _, b := range list {
			if b.ID == one.ID {
				t.Errorf("the box %s is still listed: %v", one.ID, err)
			}
		}
	})
	req.Config = map[string]any{"sandbox": one.ID}
	t.Run("probes", func(t *testing.T) { probe(t, liveWorld(t, req), one.ID) })
	t.Run("processes", func(t *testing.T) {
		exectest.Run(t, exectest.Backend{Serial: true, Open: func(r exectest.T) (remoteexec.Runtime, string) {
			mine := req
			dir := defaultCwd + "/case-" + token(6)
			mine.Cwd = dir
			w := liveWorld(r.(testing.TB), mine)
			makeDir(r.(testing.TB), w, dir)
			return w.Processes(), dir
		}})
	})
	t.Run("files", func(t *testing.T) {
		w := liveWorld(t, req)
		dir := defaultCwd + "/suite"
		makeDir(t, w, dir)
		driver := &files{w.link}
		fstest.Run(t, fstest.Backend{Facts: driver.Facts(), Files: remotefs.New(driver, remotefs.Options{}), Driver: driver,
			Dir: dir, StateDir: t.TempDir(), Rounds: 1,
			World: fstest.Shell{Exec: func(stdin []byte, argv ...string) ([]byte, error) { return runInBox(w, one.ID, stdin, argv) }}})
	})
}

func liveWorld(t testing.TB, req backend.OpenRequest) *World {
	t.Helper()
	w, err := Open(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close(context.Background()) })
	return w
}

// probe answers the open questions of upstash-box.md 15 and writes the answers
// down. None of our guarantees is built on one of them, so none fails the test.
func probe(t *testing.T, w *World, id string) {
	c := w.link.client
	sh := func(line string) string {
		res, err := c.Exec(t.Context(), id, []string{"sh", "-c", line}, "")
		if err != nil {
			return err.Error()
		}
		return strings.TrimSpace(res.Stdout + " " + res.Stderr)
	}
	say := func(what string, answer any) { t.Logf("probe: %s: %v", what, answer) }
	say("architecture", sh("uname -m"))
	say("tools", sh("for t in flock realpath nice env base64 stat find cksum sha256sum dd; do command -v $t; done"))
	say("multi-line script", sh("printf one\nprintf two"))
	_, err := c.ReadRange(t.Context(), id, "/workspace/home/none", 0, 1)
	say("status of a missing path in read", wire.StatusOf(err))
	_, err = c.Stat(t.Context(), id, "/workspace/home/none", false)
	say("status of a missing path in stat", wire.StatusOf(err))
	err = c.Remove(t.Context(), id, "/workspace/home/none", false)
	say("status of a missing path in remove", wire.StatusOf(err))
	sh("echo x > f; ln -s f l; chmod 755 f")
	list, err := c.ListFiles(t.Context(), id, "/workspace/home/f")
	say("list of a file", []any{list, err})
	err = c.Write(t.Context(), id, "/workspace/home/f", []byte("y"))
	say("mode and owner of a file that write replaced", []any{sh("stat -c '%a %U' f"), err})
	before, _ := c.Stat(t.Context(), id, "/workspace/home/f", false)
	sh("printf z > f")
	after, _ := c.Stat(t.Context(), id, "/workspace/home/f", false)
	say("version after a rewrite of the same size", before.Version != after.Version)
	say("output of 8 MiB", len(sh("head -c 8388608 /dev/zero | tr '\\0' x")))
	for _, script := range []string{"exec /no/such/program", "exec /etc/passwd", "(sleep 2; echo late) & exit 0"} {
		s, err := c.Open(t.Context(), id, wire.Start{Argv: []string{"sh", "-c", script}, Cwd: defaultCwd})
		if err != nil {
			say(script, err)
			continue
		}
		began, size := time.Now(), 0
		code, err := s.Serve(func(_ wire.Stream, p []byte) { size += len(p) })
		say(script, []any{code, err, size, time.Since(began)})
		s.Close()
	}
	largest := 0
	if s, err := c.Open(t.Context(), id, wire.Start{Argv: []string{"head", "-c", "1048576", "/dev/zero"}, Cwd: "/"}); err == nil {
		_, err = s.Serve(func(_ wire.Stream, p []byte) { largest = max(largest, len(p)) })
		say("largest piece of a burst of 1 MiB", []any{largest, err})
		s.Close()
	}
	if r, err := c.Download(t.Context(), id, "/workspace/home/f"); err == nil {
		content, err := io.ReadAll(r)
		say("download", []any{string(content), err})
		r.Close()
	}
}
