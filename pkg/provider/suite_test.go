package provider_test

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/backend/all"
	"github.com/afield-dev/afield/pkg/provider"
	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/remoteexec/exectest"
	"github.com/afield-dev/afield/pkg/remotefs"
	"github.com/afield-dev/afield/pkg/remotefs/fstest"
)

// fataler is the part of *testing.T and of the suites' T that opening needs.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(func())
}

// overProtocol opens the local world in dir through a connection: server and
// client share this process and nothing else but a socket.
func overProtocol(t fataler, dir string) *provider.World {
	t.Helper()
	near, far := socketPair(t)
	offer := provider.HelloProvider{Name: "local", Services: []string{"fs", "exec"}, Level: "contract", Features: []string{provider.FeatureEdits}}
	server := &provider.Server{
		Hello: provider.Hello{Plugin: "afield", Version: "test", Providers: []provider.HelloProvider{offer}},
		Open: func(ctx context.Context, p provider.OpenParams) (backend.World, provider.Opened, error) {
			return openLocal(ctx, dir)
		},
	}
	served := provider.NewConn(far, provider.Options{Hello: server.Hello, Serve: server.Handler()})
	conn := provider.NewConn(near, provider.Options{Hello: provider.Hello{Name: "afield", Version: "test"}})
	t.Cleanup(func() {
		conn.Close()
		served.Close()
	})
	w, err := provider.OpenWorld(context.Background(), conn, provider.OpenParams{World: "w"}, "local:test")
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return w
}

func openLocal(ctx context.Context, dir string) (backend.World, provider.Opened, error) {
	local, _ := all.Providers().Provider("local")
	w, err := local.Open(ctx, backend.OpenRequest{
		Config: map[string]any{}, Cwd: dir, HostDir: dir, Environ: os.Environ(), StateDir: filepath.Join(dir, ".state"),
		NewFileMode: -1, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, provider.Opened{}, err
	}
	return w, provider.Describe(w, dir), nil
}

func socketPair(t fataler) (near, far net.Conn) {
	t.Helper()
	dir, err := os.MkdirTemp("", "afield")
	if err != nil {
		t.Fatalf("%v", err)
	}
	defer os.RemoveAll(dir)
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatalf("%v", err)
	}
	defer l.Close()
	if near, err = net.Dial("unix", l.Addr().String()); err != nil {
		t.Fatalf("%v", err)
	}
	if far, err = l.Accept(); err != nil {
		t.Fatalf("%v", err)
	}
	return near, far
}

// The process contract holds over the protocol as it does beside it.
func TestProcessSuiteOverTheProtocol(t *testing.T) {
	exectest.Run(t, exectest.Backend{Open: func(t exectest.T) (remoteexec.Runtime, string) {
		dir, err := os.MkdirTemp("", "afield-protocol")
		if err != nil {
			t.Fatalf("%v", err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		return overProtocol(t, dir).Processes(), dir
	}})
}

// The file contract holds over the protocol as it does beside it.
func TestFileSuiteOverTheProtocol(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := overProtocol(t, dir)
	fstest.Run(t, fstest.Backend{
		Facts: w.Files().Facts(), Files: w.Files(), World: fstest.Host{}, Dir: dir, StateDir: t.TempDir(),
		Another: func() (remotefs.FS, error) { return overProtocol(t, dir).Files(), nil },
		Root:    os.Geteuid() == 0, Rounds: 2,
	})
}
