package ssh_test

import (
	"context"
	"io"
	"log/slog"
	"os"
	"testing"

	xssh "golang.org/x/crypto/ssh"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/backend/ssh"
	"github.com/afield-dev/afield/pkg/backend/ssh/sshdtest"
)

// server is a real SSH server on loopback.
type server struct{ *sshdtest.Server }

func startServer(t testing.TB, lines ...string) *server {
	t.Helper()
	return &server{sshdtest.Start(t, lines...)}
}

func newKey(t testing.TB, file, passphrase string) xssh.PublicKey {
	t.Helper()
	return sshdtest.NewKey(t, file, passphrase)
}

func tempDir(t testing.TB) string {
	t.Helper()
	return sshdtest.TempDir(t)
}

func freePort(t testing.TB) int {
	t.Helper()
	return sshdtest.FreePort(t)
}

func write(t testing.TB, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// row is the config of a profile's row for the server; nil removes a key.
func (s *server) row(change map[string]any) map[string]any {
	row := map[string]any{"host": "127.0.0.1", "port": int64(s.Port), "user": "root", "identityFile": s.Key,
		"knownHostsFile": s.Known, "agent": "off", "configFile": "/dev/null", "connectTimeoutMs": int64(30000), "deadPeerMs": int64(30000)}
	for k, v := range change {
		if row[k] = v; v == nil {
			delete(row, k)
		}
	}
	return row
}

// open opens the world of a row. Secrets are taken from the row's own values.
func open(t testing.TB, row map[string]any, change func(*backend.OpenRequest)) (*ssh.World, error) {
	t.Helper()
	req := backend.OpenRequest{
		Config: row, HostDir: t.TempDir(), StateDir: t.TempDir(), NewFileMode: -1,
		Environ: append(os.Environ(), "HOME="+t.TempDir()), Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Secret: func(_ context.Context, key string) (string, error) { v, _ := row[key].(string); return v, nil },
	}
	if change != nil {
		change(&req)
	}
	w, err := ssh.Open(t.Context(), req)
	if err == nil {
		t.Cleanup(func() { w.Close(context.Background()) })
	}
	return w, err
}

// mustOpen opens the world of the server.
func (s *server) mustOpen(t testing.TB, change map[string]any) *ssh.World {
	t.Helper()
	w, err := open(t, s.row(change), nil)
	if err != nil {
		t.Fatalf("open: %v\n%s", err, s.Log)
	}
	return w
}
