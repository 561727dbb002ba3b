package ssh_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	xssh "golang.org/x/crypto/ssh"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/backend/ssh"
)

// server is Debian's sshd on loopback with throw-away keys.
type server struct {
	port    int
	dir     string // private files of the test
	key     string // private key that is let in
	known   string // known hosts that hold its key
	hostKey xssh.PublicKey
	log     *lockedBuffer
}

// lockedBuffer keeps what a server logs.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// newKey writes a key pair and gives its public half.
func newKey(t testing.TB, file, passphrase string) xssh.PublicKey {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var block *pem.Block
	if passphrase == "" {
		block, err = xssh.MarshalPrivateKey(private, "test")
	} else {
		block, err = xssh.MarshalPrivateKeyWithPassphrase(private, "test", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	key, err := xssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, string(pem.EncodeToMemory(block)))
	write(t, file+".pub", string(xssh.MarshalAuthorizedKey(key)))
	return key
}

func write(t testing.TB, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// startServer starts sshd with further lines of configuration, which stand
// before the defaults and so win. The home of logins is empty, so that start-up
// files of the machine have no part in it.
func startServer(t testing.TB, lines ...string) *server {
	t.Helper()
	program := "/usr/sbin/sshd"
	if _, err := os.Stat(program); err != nil || os.Getuid() != 0 {
		if os.Getenv("AFIELD_TEST_REQUIRE") != "" {
			t.Fatalf("sshd and root are required: %v", err)
		}
		t.Skipf("SKIPPED: needs sshd and root: %v", err)
	}
	os.MkdirAll("/run/sshd", 0o755)
	s := &server{dir: tempDir(t), log: &lockedBuffer{}}
	s.key, s.known = s.dir+"/id", s.dir+"/known_hosts"
	s.hostKey = newKey(t, s.dir+"/host", "")
	write(t, s.dir+"/authorized", string(xssh.MarshalAuthorizedKey(newKey(t, s.key, ""))))
	os.Chmod(s.dir+"/authorized", 0o644) // read as the user who logs in
	for range 5 {
		s.port = freePort(t)
		if s.run(t, program, lines) {
			write(t, s.known, fmt.Sprintf("[127.0.0.1]:%d %s", s.port, xssh.MarshalAuthorizedKey(s.hostKey)))
			return s
		}
	}
	t.Fatalf("sshd does not start: %s", s.log)
	return nil
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// run starts the server and waits until it listens; false if it ended before.
func (s *server) run(t testing.TB, program string, lines []string) bool {
	t.Helper()
	config := append(lines, "Port "+fmt.Sprint(s.port), "ListenAddress 127.0.0.1", "HostKey "+s.dir+"/host",
		"AuthorizedKeysFile "+s.dir+"/authorized", "PidFile none", "StrictModes no", "UsePAM no", "PermitRootLogin yes",
		"PasswordAuthentication no", "KbdInteractiveAuthentication no", "MaxStartups 200", "PrintMotd no", "LogLevel INFO",
		"Subsystem sftp internal-sftp", "SetEnv HOME="+s.dir)
	write(t, s.dir+"/sshd_config", strings.Join(config, "\n")+"\n")
	cmd := exec.Command(program, "-D", "-e", "-f", s.dir+"/sshd_config")
	cmd.Stderr = s.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { cmd.Wait(); close(ended) }()
	t.Cleanup(func() { cmd.Process.Kill(); <-ended })
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		if strings.Contains(s.log.String(), "Server listening") {
			return true
		}
		select {
		case <-ended:
			return false
		case <-time.After(5 * time.Millisecond):
		}
	}
	return false
}

// row is the config of a profile's row for the server; nil removes a key.
func (s *server) row(change map[string]any) map[string]any {
	row := map[string]any{"host": "127.0.0.1", "port": int64(s.port), "user": "root", "identityFile": s.key,
		"knownHostsFile": s.known, "agent": "off", "configFile": "/dev/null", "connectTimeoutMs": int64(30000), "deadPeerMs": int64(30000)}
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
		t.Fatalf("open: %v\n%s", err, s.log)
	}
	return w
}

// tempDir is a directory that other users may search.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "afield-ssh")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	os.Chmod(dir, 0o755)
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}
