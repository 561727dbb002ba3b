package e2b_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/backend/e2b"
	"github.com/afield-dev/afield/pkg/backend/e2b/e2btest"
	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/remoteexec/exectest"
)

const testKey = "e2b_0123456789abcdef0123456789abcdef01234567"

// service is a stand-in and what a world on it is opened with.
type service struct {
	*e2btest.Server
	root  string // of the sandboxes
	state string // of our side
}

func newService(t *testing.T, opts e2btest.Options) *service {
	t.Helper()
	opts.Root, opts.Key = tempDir(t), testKey
	s := &service{e2btest.New(opts), opts.Root, tempDir(t)}
	t.Cleanup(s.Close)
	return s
}

// tempDir gives a folder whose path has no link in it.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// request is an open request with a row's keys.
func (s *service) request(row map[string]any) backend.OpenRequest {
	config := map[string]any{"apiUrl": s.APIURL(), "sandboxUrl": s.SandboxURL()}
	for k, v := range row {
		config[k] = v
	}
	return backend.OpenRequest{
		Config: config, StateDir: s.state, NewFileMode: -1, Log: slog.New(slog.DiscardHandler),
		Secret: func(context.Context, string) (string, error) { return testKey, nil },
	}
}

// open opens the world of a row; the test closes it.
func (s *service) open(t *testing.T, row map[string]any) *e2b.World {
	t.Helper()
	w, err := e2b.Open(t.Context(), s.request(row))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close(context.Background()) })
	return w
}

// inSandbox opens a world in a sandbox that is there, with a working directory
// of its own.
func (s *service) inSandbox(t *testing.T, b *e2btest.Sandbox) (*e2b.World, string) {
	t.Helper()
	dir, err := os.MkdirTemp(b.Home, "case-")
	if err != nil {
		t.Fatal(err)
	}
	return s.open(t, map[string]any{"sandbox": b.ID, "cwd": dir}), dir
}

// The processes of a sandbox pass the suite.
func TestProcesses(t *testing.T) {
	s := newService(t, e2btest.Options{})
	b := s.Start(time.Hour)
	exectest.Run(t, exectest.Backend{Open: func(c exectest.T) (remoteexec.Runtime, string) {
		w, dir := s.inSandbox(t, b)
		return w.Processes(), dir
	}})
}
