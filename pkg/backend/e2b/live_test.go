package e2b_test

import (
	"context"
	"log/slog"
	"os"
	"testing"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/backend/e2b"
	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/remoteexec/exectest"
)

// With E2B_API_KEY the process suite runs on the service that the E2B_ variables
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
	exectest.Run(t, exectest.Backend{Open: func(c exectest.T) (remoteexec.Runtime, string) {
		cwd, err := own.Cwd(c.Context())
		if err != nil {
			c.Fatalf("%v", err)
		}
		_, dir, err := run(t, own.Processes(), cwd, "mktemp", "-d", cwd+"/case-XXXXXX")
		if err != nil || len(dir) < 2 {
			c.Fatalf("%q %v", dir, err)
		}
		dir = dir[:len(dir)-1]
		w, err := e2b.Open(c.Context(), request(map[string]any{"sandbox": own.ID(), "cwd": dir}))
		if err != nil {
			c.Fatalf("%v", err)
		}
		return w.Processes(), dir
	}})
}
