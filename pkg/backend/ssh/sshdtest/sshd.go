// Package sshdtest starts Debian's SSH server on loopback for tests, with
// throw-away keys and configuration on an unprivileged port.
package sshdtest

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	xssh "golang.org/x/crypto/ssh"
)

// Server is Debian's sshd on loopback with throw-away keys.
type Server struct {
	Port    int
	Dir     string // private files of the test
	Key     string // private key that is let in
	Known   string // known hosts that hold its key
	HostKey xssh.PublicKey
	Log     fmt.Stringer
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

// NewKey writes a key pair and gives its public half. One with a passphrase is
// made by ssh-keygen with a single round, since it guards nothing.
func NewKey(t testing.TB, file, passphrase string) xssh.PublicKey {
	t.Helper()
	if passphrase != "" {
		return lockedKey(t, file, passphrase)
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := xssh.MarshalPrivateKey(private, "test")
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

func lockedKey(t testing.TB, file, passphrase string) xssh.PublicKey {
	t.Helper()
	out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-a", "1", "-N", passphrase, "-f", file).CombinedOutput()
	if err != nil {
		t.Fatalf("ssh-keygen: %v: %s", err, out)
	}
	text, err := os.ReadFile(file + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	key, _, _, _, err := xssh.ParseAuthorizedKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func write(t testing.TB, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Start starts sshd with further lines of configuration, which stand
// before the defaults and so win. The home of logins is empty, so that start-up
// files of the machine have no part in it.
func Start(t testing.TB, lines ...string) *Server {
	t.Helper()
	program := "/usr/sbin/sshd"
	if _, err := os.Stat(program); err != nil || os.Getuid() != 0 {
		if os.Getenv("AFIELD_TEST_REQUIRE") != "" {
			t.Fatalf("sshd and root are required: %v", err)
		}
		t.Skipf("SKIPPED: needs sshd and root: %v", err)
	}
	os.MkdirAll("/run/sshd", 0o755)
	log := &lockedBuffer{}
	s := &Server{Dir: TempDir(t), Log: log, log: log}
	s.Key, s.Known = s.Dir+"/id", s.Dir+"/known_hosts"
	s.HostKey = NewKey(t, s.Dir+"/host", "")
	write(t, s.Dir+"/authorized", string(xssh.MarshalAuthorizedKey(NewKey(t, s.Key, ""))))
	os.Chmod(s.Dir+"/authorized", 0o644) // read as the user who logs in
	for range 5 {
		s.Port = FreePort(t)
		if s.run(t, program, lines) {
			write(t, s.Known, fmt.Sprintf("[127.0.0.1]:%d %s", s.Port, xssh.MarshalAuthorizedKey(s.HostKey)))
			return s
		}
	}
	t.Fatalf("sshd does not start: %s", s.log)
	return nil
}

// FreePort is a port of loopback that nobody listens on.
func FreePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// run starts the server and waits until it listens; false if it ended before.
func (s *Server) run(t testing.TB, program string, lines []string) bool {
	t.Helper()
	config := append(lines, "Port "+fmt.Sprint(s.Port), "ListenAddress 127.0.0.1", "HostKey "+s.Dir+"/host",
		"AuthorizedKeysFile "+s.Dir+"/authorized", "PidFile none", "StrictModes no", "UsePAM no", "PermitRootLogin yes",
		"PasswordAuthentication no", "KbdInteractiveAuthentication no", "MaxStartups 200", "PrintMotd no", "LogLevel INFO",
		"Subsystem sftp internal-sftp", "SetEnv HOME="+s.Dir)
	write(t, s.Dir+"/sshd_config", strings.Join(config, "\n")+"\n")
	cmd := exec.Command(program, "-D", "-e", "-f", s.Dir+"/sshd_config")
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

// TempDir is a directory that other users may search.
func TempDir(t testing.TB) string {
	t.Helper()
	return TempDirIn(t, "/tmp")
}

// TempDirIn is such a directory in parent.
func TempDirIn(t testing.TB, parent string) string {
	t.Helper()
	dir, err := os.MkdirTemp(parent, "afield-ssh")
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
