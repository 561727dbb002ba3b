package ssh_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	xssh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
)

// accounts is held while the accounts of the machine are changed: useradd does not
// wait for another one.
var accounts sync.Mutex

// login makes a user of the machine for the time of the test.
func login(t testing.TB, shell, password string) (name, home string) {
	t.Helper()
	home = tempDir(t)
	name = "af" + strings.ToLower(home[len(home)-8:])
	accounts.Lock()
	defer accounts.Unlock()
	if out, err := exec.Command("useradd", "-M", "-d", home, "-s", shell, name).CombinedOutput(); err != nil {
		t.Fatalf("useradd: %v: %s", err, out)
	}
	t.Cleanup(func() {
		accounts.Lock()
		defer accounts.Unlock()
		exec.Command("userdel", name).Run()
	})
	if password == "" {
		password = "unguessable-" + home
	}
	set := exec.Command("chpasswd")
	set.Stdin = strings.NewReader(name + ":" + password + "\n")
	if out, err := set.CombinedOutput(); err != nil {
		t.Fatalf("chpasswd: %v: %s", err, out)
	}
	if out, err := exec.Command("chown", name+":", home).CombinedOutput(); err != nil {
		t.Fatalf("chown: %v: %s", err, out)
	}
	return name, home
}

// works says that a program runs in the world of a row.
func works(t *testing.T, row map[string]any, change func(*backend.OpenRequest)) {
	t.Helper()
	w, err := open(t, row, change)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	if _, out, _, err := run(t, w.Processes(), remoteexec.Spec{Argv: []string{"echo", "in"}}); err != nil || out != "in\n" {
		t.Errorf("%q, %v", out, err)
	}
}

// fails says that a world does not open, with a code; the error never holds a
// secret.
func fails(t *testing.T, row map[string]any, code fault.Code, words ...string) *fault.Error {
	t.Helper()
	_, err := open(t, row, nil)
	if !fault.Is(err, code) {
		t.Fatalf("open: %v, want %s", err, code)
	}
	f := err.(*fault.Error)
	for _, word := range words {
		if !strings.Contains(f.Message+"\n"+f.Hint, word) {
			t.Errorf("%q is not in %q, hint %q", word, f.Message, f.Hint)
		}
	}
	if f.Hint == "" || strings.Contains(f.Message, "hunter2") || strings.Contains(f.Message, "\n") {
		t.Errorf("message %q, hint %q", f.Message, f.Hint)
	}
	return f
}

// Keys: with a passphrase, from an agent, with a certificate.
func TestKeys(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	dir := t.TempDir()
	locked := newKey(t, dir+"/locked", "hunter2")
	held := newKey(t, dir+"/held", "")
	allowed, _ := os.ReadFile(s.Dir + "/authorized")
	write(t, s.Dir+"/authorized", string(allowed)+string(xssh.MarshalAuthorizedKey(locked))+string(xssh.MarshalAuthorizedKey(held)))
	t.Run("with a passphrase", func(t *testing.T) {
		works(t, s.row(map[string]any{"identityFile": dir + "/locked", "identityPassphrase": "hunter2"}), nil)
	})
	t.Run("with a wrong passphrase", func(t *testing.T) {
		fails(t, s.row(map[string]any{"identityFile": dir + "/locked", "identityPassphrase": "hunter23"}), fault.BackendAuthFailed, "does not open it")
	})
	t.Run("without the passphrase", func(t *testing.T) {
		fails(t, s.row(map[string]any{"identityFile": dir + "/locked"}), fault.BackendAuthFailed, "identityPassphrase")
	})
	t.Run("in an agent", func(t *testing.T) {
		socket := startAgent(t, dir+"/held")
		works(t, s.row(map[string]any{"identityFile": nil, "agent": "auto"}), func(r *backend.OpenRequest) {
			r.Environ = append(r.Environ, "SSH_AUTH_SOCK="+socket)
		})
		if _, err := open(t, s.row(map[string]any{"identityFile": nil}), func(r *backend.OpenRequest) {
			r.Environ = append(r.Environ, "SSH_AUTH_SOCK="+socket)
		}); !fault.Is(err, fault.BackendAuthFailed) {
			t.Errorf("agent: off still uses the agent: %v", err)
		}
	})
}

// startAgent serves one key on a socket.
func startAgent(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	key, err := xssh.ParseRawPrivateKey(data)
	if err != nil {
		t.Fatal(err)
	}
	ring := agent.NewKeyring()
	if err := ring.Add(agent.AddedKey{PrivateKey: key}); err != nil {
		t.Fatal(err)
	}
	socket := tempDir(t) + "/agent"
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go agent.ServeAgent(ring, c)
		}
	}()
	return socket
}

// A certificate lets in whose key is in no list.
func TestCertificate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := xssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir+"/ca.pub", string(xssh.MarshalAuthorizedKey(ca.PublicKey())))
	s := startServer(t, "TrustedUserCAKeys "+dir+"/ca.pub")
	cert := &xssh.Certificate{Key: newKey(t, dir+"/id", ""), CertType: xssh.UserCert, ValidPrincipals: []string{"root"},
		ValidBefore: xssh.CertTimeInfinity}
	if err := cert.SignCert(rand.Reader, ca); err != nil {
		t.Fatal(err)
	}
	write(t, dir+"/cert", string(xssh.MarshalAuthorizedKey(cert)))
	works(t, s.row(map[string]any{"identityFile": dir + "/id", "certificateFile": dir + "/cert"}), nil)
	fails(t, s.row(map[string]any{"identityFile": dir + "/id"}), fault.BackendAuthFailed, "tried key ssh-ed25519 SHA256:")
}

// A password comes from a secret, and nobody is asked.
func TestPassword(t *testing.T) {
	t.Parallel()
	s := startServer(t, "PasswordAuthentication yes")
	user, _ := login(t, "/bin/sh", "hunter2")
	row := func(password any) map[string]any {
		return s.row(map[string]any{"identityFile": nil, "user": user, "password": password})
	}
	works(t, row("hunter2"), nil)
	fails(t, row("hunter3"), fault.BackendAuthFailed, "password")
	fails(t, row(nil), fault.BackendAuthFailed, "ssh -v")
}

// An unknown key is an error with the line that makes it known; a changed one is
// always an error (design.md 4.9).
func TestHostKeys(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	known := t.TempDir() + "/sub/known_hosts"
	strict := s.row(map[string]any{"knownHostsFile": known, "hostKey": "strict"})
	f := fails(t, strict, fault.BackendHostKey, xssh.FingerprintSHA256(s.HostKey), known)
	_, rest, _ := strings.Cut(f.Hint, known+": ")
	line, _, _ := strings.Cut(rest, " (or")
	os.MkdirAll(t.TempDir(), 0o700)
	accept := s.row(map[string]any{"knownHostsFile": known, "hostKey": "accept-new"})
	works(t, accept, nil)
	if kept, err := os.ReadFile(known); err != nil || !strings.Contains(string(kept), line) {
		t.Errorf("kept %q, want %q, %v", kept, line, err)
	}
	works(t, strict, nil)
	other := newKey(t, t.TempDir()+"/other", "")
	write(t, known, fmt.Sprintf("[127.0.0.1]:%d %s", s.Port, xssh.MarshalAuthorizedKey(other)))
	fails(t, strict, fault.BackendHostKey, "has changed", "ssh-keygen -R '[127.0.0.1]:")
	fails(t, accept, fault.BackendHostKey, "has changed")
}

// The user's configuration counts, as `ssh -G` reads it: alias, jump hosts in
// their order, proxy command, key.
func TestUserConfiguration(t *testing.T) {
	t.Parallel()
	s, gate := startServer(t), startServer(t)
	known := t.TempDir() + "/known"
	a, _ := os.ReadFile(s.Known)
	b, _ := os.ReadFile(gate.Known)
	write(t, known, string(a)+string(b))
	config := t.TempDir() + "/config"
	write(t, config, fmt.Sprintf(`Host *
  UserKnownHostsFile %s
  User root
Host build1 jumped proxied
  HostName 127.0.0.1
  Port %d
  IdentityFile %s
Host gate
  HostName 127.0.0.1
  Port %d
  IdentityFile %s
Host jumped
  ProxyJump gate
Host proxied
  ProxyCommand /usr/bin/ssh -F %s -o BatchMode=yes -W %%h:%%p gate
`, known, s.Port, s.Key, gate.Port, gate.Key, config))
	for _, host := range []string{"build1", "jumped", "proxied"} {
		t.Run(host, func(t *testing.T) {
			works(t, map[string]any{"host": host, "configFile": config, "agent": "off"}, nil)
		})
	}
	t.Run("a jump host that fails is named", func(t *testing.T) {
		port := freePort(t)
		fails(t, s.row(map[string]any{"jump": fmt.Sprintf("root@127.0.0.1:%d", port)}), fault.BackendUnreachable,
			"jump host root@127.0.0.1:", "refuses")
	})
}
