package e2b_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/backend/e2b"
	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/remoteexec/exectest"
	"github.com/afield-dev/afield/pkg/remotefs/fstest"
)

// With E2B_API_KEY both suites run on the service that the E2B_ variables
// name, in a sandbox of its own that is deleted at the end. It is asked for by
// AFIELD_TEST_LIVE, which `make test-live` sets: no other run goes out.
func TestLive(t *testing.T) {
	if os.Getenv("AFIELD_TEST_LIVE") == "" || os.Getenv("E2B_API_KEY") == "" {
		t.Skip("NOT TESTED on the real service: run `make test-live` with E2B_API_KEY set")
	}
	request := func(row map[string]any) backend.OpenRequest {
		if dir := os.Getenv("AFIELD_TEST_LIVE_CWD"); dir != "" && row["cwd"] == nil {
			row["cwd"] = dir
		}
		return backend.OpenRequest{
			Config: row, StateDir: t.TempDir(), NewFileMode: -1, Log: slog.New(slog.DiscardHandler), Environ: os.Environ(),
			Secret: func(context.Context, string) (string, error) { return os.Getenv("E2B_API_KEY"), nil },
		}
	}
	own, err := e2b.Open(t.Context(), request(map[string]any{"perCommand": true, "timeoutMs": int64(1800000)}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := own.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	open := func(c exectest.T) (*e2b.World, string) {
		cwd, err := own.Cwd(c.Context())
		if err != nil {
			c.Fatalf("%v", err)
		}
		dir := cwd + "/case-" + strings.ToLower(rand.Text())
		if _, err := inWorld(own, nil, "mkdir", "-p", "--", dir); err != nil {
			c.Fatalf("%v", err)
		}
		w, err := e2b.Open(c.Context(), request(map[string]any{"sandbox": own.ID(), "cwd": dir}))
		if err != nil {
			c.Fatalf("%v", err)
		}
		return w, dir
	}
	t.Run("files", func(t *testing.T) {
		w, dir := open(t)
		driver := w.Driver()
		fstest.Run(t, fstest.Backend{
			Facts: driver.Facts(), Files: w.Files(), Driver: driver, Dir: dir, StateDir: t.TempDir(), Rounds: 1,
			World: fstest.Shell{Exec: func(stdin []byte, argv ...string) ([]byte, error) { return inWorld(own, stdin, argv...) }},
		})
	})
	t.Run("processes", func(t *testing.T) {
		exectest.Run(t, exectest.Backend{Open: func(c exectest.T) (remoteexec.Runtime, string) {
			w, dir := open(c)
			return w.Processes(), dir
		}})
	})
}

// inWorld runs a program to its end, which must be good.
func inWorld(w *e2b.World, stdin []byte, argv ...string) ([]byte, error) {
	spec := remoteexec.Spec{
		Argv: argv, Cwd: "/", Grace: time.Second,
		Stdout: remoteexec.Output{Mode: remoteexec.OutputCollect, MaxBytes: 64 << 20},
		Stderr: remoteexec.Output{Mode: remoteexec.OutputCollect, MaxBytes: 1 << 16},
	}
	if stdin != nil {
		spec.Stdin, spec.StdinData = remoteexec.StdinData, stdin
	}
	h, err := w.Processes().Spawn(context.Background(), spec)
	if err != nil {
		return nil, err
	}
	r, err := h.Wait(context.Background())
	if err != nil {
		return nil, err
	}
	out, err := h.Collected(remoteexec.Stdout).ReadFrom(0)
	if err == nil && r.Outcome != (remoteexec.Outcome{}) {
		said, _ := h.Collected(remoteexec.Stderr).ReadText(0)
		err = fmt.Errorf("%q ended with %+v: %s", argv, r.Outcome, said.Text)
	}
	return out.Bytes, err
}
