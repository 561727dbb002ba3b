package plugin

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/backend/all"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/profile"
	"github.com/afield-dev/afield/pkg/provider"
)

// The test binary is the provider of the tests' plugins, and an installer that
// dies at a step.
func TestMain(m *testing.M) {
	switch {
	case os.Getenv("AFIELD_PROVIDER") == "1":
		serveTestProvider(os.Args[1], os.Args[2])
	case os.Getenv("PLUGIN_TEST_KILL") != "":
		dieAtStep(os.Getenv("PLUGIN_TEST_HOME"), os.Getenv("PLUGIN_TEST_SOURCE"), os.Getenv("PLUGIN_TEST_KILL"))
	default:
		os.Exit(m.Run())
	}
}

// serveTestProvider serves this machine as plugin id, provider "world".
func serveTestProvider(id, version string) {
	provider.Announce(os.Stdout, os.Getenv("AFIELD_NONCE"))
	s := &provider.Server{
		Hello: provider.Hello{Plugin: id, Version: version, Providers: []provider.HelloProvider{
			{Name: id, Services: []string{"fs", "exec"}, Level: "contract", Features: []string{"collect"}}}},
		Open: func(ctx context.Context, p provider.OpenParams) (backend.World, provider.Opened, error) {
			local, _ := all.Providers().Provider("local")
			dir, _ := os.Getwd()
			w, err := local.Open(ctx, backend.OpenRequest{Config: map[string]any{}, Environ: []string{"PATH=" + os.Getenv("PATH"),
				"SEEN=" + p.Secrets["key"] + " " + fmt.Sprint(p.Config["cwd"]) + " " + os.Getenv("AFIELD_PROVIDER")},
				HostDir: dir, StateDir: dir, NewFileMode: -1, Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				return nil, provider.Opened{}, err
			}
			return w, provider.Describe(w, dir), nil
		},
	}
	<-provider.NewConn(testPipes{}, provider.Options{Hello: s.Hello, Serve: s.Handler()}).Closed()
}

type testPipes struct{ io.Reader }

func (testPipes) Read(p []byte) (int, error)  { return os.Stdin.Read(p) }
func (testPipes) Write(p []byte) (int, error) { return os.Stdout.Write(p) }
func (testPipes) Close() error                { return os.Stdin.Close() }

func dieAtStep(home, source, step string) {
	h := hostAt(home)
	h.step = func(name string) {
		if name == step {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
	}
	_, err := h.Add(context.Background(), "default", AddOptions{Sources: []string{source}}, composer(h))
	fmt.Println(err)
	os.Exit(3)
}

func hostAt(home string) *Host {
	exe, _ := os.Executable()
	env := []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "PLUGIN_TEST_EXE=" + exe, "GORACE=atexit_sleep_ms=0"}
	return &Host{
		Places: profile.NewPlaces(env), Environ: env, Dir: home, Version: "1.5.0", Platform: "linux/amd64",
		Providers: all.Providers(), Log: slog.New(slog.DiscardHandler),
	}
}

func newHost(t testing.TB) *Host {
	t.Helper()
	home := t.TempDir()
	t.Cleanup(func() { removeTree(filepath.Join(home, ".local")) })
	return hostAt(home)
}

// composer composes as the plugin commands do.
func composer(h *Host) func(profile.Plugged) *profile.Composition {
	return func(p profile.Plugged) *profile.Composition {
		return profile.Compose(profile.Request{
			Name: "default", Named: true, Alone: true, Environ: h.Environ, Dir: h.Dir, Providers: h.Providers,
			Plugins: func(string) (profile.Plugged, error) { return p, nil },
		})
	}
}

// pluginFiles are those of a whole plugin with one provider of its name.
func pluginFiles(id, version string) map[string]string {
	return map[string]string{
		"plugin.yaml": fmt.Sprintf(`manifest: 1
id: %[1]s
version: %[2]s
providers:
  - name: %[1]s
    services: [fs, exec]
    configSchema: schema.json
    env: [PLUGIN_TEST_EXE, GORACE]
    run: {any: {argv: [bin/serve, %[1]s, %[2]s]}}
patch:
  rows:
    - {id: world, disabled: true}
    - {id: %[1]s-row, name: %[1]s}
`, id, version),
		"schema.json": `{"type":"object","properties":{"cwd":{"type":"string"},"key":{"type":"string","x-secret":true,"default":"${PLUGIN_KEY}"}}}`,
		"bin/serve!":  "#!/bin/sh\nexec \"$PLUGIN_TEST_EXE\" \"$@\"\n",
	}
}

// pluginArchive makes the archive of a plugin with the real tar.
func pluginArchive(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := dirOf(t, files)
	path := filepath.Join(t.TempDir(), "plugin.tgz")
	out, err := exec.Command("tar", "-C", filepath.Dir(dir), "-czf", path, filepath.Base(dir)).CombinedOutput()
	if err != nil {
		t.Fatalf("tar: %v: %s", err, out)
	}
	return path
}

func (h *Host) mustAdd(t testing.TB, o AddOptions, sources ...string) AddResult {
	t.Helper()
	o.Sources = sources
	r, err := h.Add(context.Background(), "default", o, composer(h))
	if err != nil {
		t.Fatalf("add %v: %v", sources, err)
	}
	return r
}

// refuseAdd holds that an installation is refused with a code, and that the
// profile's file and the staging area are as before.
func (h *Host) refuseAdd(t testing.TB, code fault.Code, o AddOptions, sources ...string) error {
	t.Helper()
	before, _ := os.ReadFile(lockPath(h.Places, "default"))
	o.Sources = sources
	_, err := h.Add(context.Background(), "default", o, composer(h))
	wantCode(t, err, code)
	after, _ := os.ReadFile(lockPath(h.Places, "default"))
	if string(before) != string(after) {
		t.Errorf("the profile's file changed from %s to %s", before, after)
	}
	if left, _ := os.ReadDir(h.stagingDir()); len(left) > 0 {
		t.Errorf("staging is left: %v", left)
	}
	return err
}

func (h *Host) ids(t testing.TB) string {
	t.Helper()
	list, err := h.List("default")
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, x := range list {
		ids = append(ids, x.ID)
	}
	return strings.Join(ids, " ")
}
