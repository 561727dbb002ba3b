package mount

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/backend/ssh"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// sshFiles gives this machine's files over an SSH server on loopback that lives
// as long as the test.
func sshFiles(t *testing.T) func(dir string) remotefs.FS {
	t.Helper()
	const program = "/usr/sbin/sshd"
	if _, err := os.Stat(program); err != nil || os.Getuid() != 0 {
		if os.Getenv("AFIELD_TEST_REQUIRE") != "" {
			t.Fatalf("sshd and root are required: %v", err)
		}
		t.Skipf("SKIPPED: needs sshd and root: %v", err)
	}
	must(t, os.MkdirAll("/run/sshd", 0o755))
	dir := t.TempDir()
	for _, name := range []string{"host", "id"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, name)).CombinedOutput(); err != nil {
			t.Fatalf("ssh-keygen: %s", out)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	host, err := os.ReadFile(filepath.Join(dir, "host.pub"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "known"), fmt.Appendf(nil, "[127.0.0.1]:%d %s", port, host), 0o600))
	startSSHD(t, program, dir, port)
	return func(cwd string) remotefs.FS {
		w, err := ssh.Open(t.Context(), backend.OpenRequest{
			Config: map[string]any{"host": "127.0.0.1", "port": int64(port), "user": "root", "identityFile": filepath.Join(dir, "id"),
				"knownHostsFile": filepath.Join(dir, "known"), "agent": "off", "configFile": "/dev/null",
				"connectTimeoutMs": int64(30000), "deadPeerMs": int64(30000)},
			Cwd: cwd, HostDir: dir, StateDir: filepath.Join(dir, "state"), NewFileMode: -1, Environ: os.Environ(),
			Log: slog.New(slog.DiscardHandler), Secret: func(context.Context, string) (string, error) { return "", nil },
		})
		must(t, err)
		t.Cleanup(func() { w.Close(context.Background()) })
		return w.Files()
	}
}

// startSSHD starts the server and waits until it answers.
func startSSHD(t *testing.T, program, dir string, port int) {
	t.Helper()
	config := fmt.Sprintf("Port %d\nListenAddress 127.0.0.1\nHostKey %s/host\nAuthorizedKeysFile %s/id.pub\nPidFile none\n"+
		"StrictModes no\nUsePAM no\nPermitRootLogin yes\nSubsystem sftp internal-sftp\nSetEnv HOME=%s\n", port, dir, dir, dir)
	must(t, os.WriteFile(filepath.Join(dir, "config"), []byte(config), 0o600))
	var log bytes.Buffer
	cmd := exec.Command(program, "-D", "-e", "-f", filepath.Join(dir, "config"))
	cmd.Stderr = &log
	must(t, cmd.Start())
	ended := make(chan struct{})
	go func() { cmd.Wait(); close(ended) }()
	t.Cleanup(func() { cmd.Process.Kill(); <-ended })
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			c.Close()
			return
		}
		select {
		case <-ended:
			t.Fatalf("sshd ended: %s", log.String())
		case <-time.After(5 * time.Millisecond):
		}
	}
	t.Fatal("sshd does not listen")
}

// The same holds over SSH.
func TestNoMarkerOverSSHClaimsWhatTheCallerLacks(t *testing.T) {
	files := sshFiles(t)
	for seed := range uint64(2) {
		tr := newTrace(t, seed)
		tr.m.Files = files(tr.dir)
		for range 60 {
			tr.step()
		}
		tr.agree()
	}
}
