package provider_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/afield-dev/afield/pkg/backend/local"
	"github.com/afield-dev/afield/pkg/provider"
	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/remoteexec/exectest"
	"github.com/afield-dev/afield/pkg/remotefs"
	"github.com/afield-dev/afield/pkg/remotefs/fstest"
)

// overDrivers opens this machine at driver level in dir: the contract is built
// on our side of the connection.
func overDrivers(t fataler, dir string) *provider.World {
	t.Helper()
	near, far := socketPair(t)
	offer := provider.HelloProvider{Name: "local", Services: []string{"fs", "exec"}, Level: "driver"}
	server := &provider.Server{
		Hello: provider.Hello{Plugin: "afield", Version: "test", Providers: []provider.HelloProvider{offer}},
		OpenDrivers: func(context.Context, provider.OpenParams) (provider.Drivers, provider.Opened, error) {
			return provider.Drivers{
				Files: local.NewDriver(dir), Processes: local.ProcessDriver(local.ProcessOptions{Environ: os.Environ(), Dir: dir}),
			}, provider.Opened{Cwd: provider.Raw(dir), Platform: "linux/amd64", PathStyle: "posix"}, nil
		},
	}
	served := provider.NewConn(far, provider.Options{Hello: server.Hello, Serve: server.Handler()})
	conn := provider.NewConn(near, provider.Options{Hello: provider.Hello{Name: "afield", Version: "test"}})
	t.Cleanup(func() {
		conn.Close()
		served.Close()
	})
	w, err := provider.OpenWorldOn(context.Background(), conn, provider.OpenParams{World: "w"}, "local:test",
		provider.Host{StateDir: filepath.Join(dir, ".state"), NewFileMode: -1})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return w
}

// Case 127: the file contract holds over a driver on the other side.
func TestFileSuiteOverTheDriverLevel(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	os.Mkdir(filepath.Join(dir, ".state"), 0o700)
	w := overDrivers(t, dir)
	fstest.Run(t, fstest.Backend{
		Facts: w.Files().Facts(), Files: w.Files(), World: fstest.Host{}, Dir: dir, StateDir: t.TempDir(),
		Another: func() (remotefs.FS, error) { return overDrivers(t, dir).Files(), nil },
		Root:    os.Geteuid() == 0, Rounds: 2,
	})
}

// The process contract holds over a driver on the other side; terminals excepted.
func TestProcessSuiteOverTheDriverLevel(t *testing.T) {
	exectest.Run(t, exectest.Backend{Open: func(t exectest.T) (remoteexec.Runtime, string) {
		dir, err := os.MkdirTemp("", "afield-driver")
		if err != nil {
			t.Fatalf("%v", err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		return overDrivers(t, dir).Processes(), dir
	}})
}
