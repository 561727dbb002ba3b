package ssh

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// place writes a file and the directories above it.
func place(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// openSSH is the real client.
func openSSH(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("ssh")
	if err != nil {
		if os.Getenv("AFIELD_TEST_REQUIRE") != "" {
			t.Fatalf("ssh is required: %v", err)
		}
		t.Skipf("SKIPPED: needs ssh: %v", err)
	}
	return program
}

// An answer of `ssh -G` is used again as long as the files of the configuration,
// also included ones, hold the same; never where it depends on more.
func TestConfigurationIsRemembered(t *testing.T) {
	t.Parallel()
	home, real := t.TempDir(), openSSH(t)
	program := home + "/ssh"
	place(t, program, "#!/bin/sh\necho asked >>"+home+"/asked\nexec "+real+" \"$@\"\n")
	os.Chmod(program, 0o700)
	config := home + "/config"
	resolved := func(host, port string, asked int) {
		t.Helper()
		s, err := resolve(t.Context(), request{host: host, home: home, dir: home, configFile: config, program: program,
			environ: []string{"HOME=" + home, "PATH=/usr/bin:/bin"}, state: newState(home + "/state")})
		if err != nil || fmt.Sprint(s.Port) != port {
			t.Errorf("%s: port %d, %v, want %s", host, s.Port, err, port)
		}
		text, _ := os.ReadFile(home + "/asked")
		if n := strings.Count(string(text), "asked"); n != asked {
			t.Errorf("%s: asked %d times, want %d", host, n, asked)
		}
	}
	place(t, config, "Include "+home+"/parts/*\nHost a\n  Port 1001\n")
	resolved("a", "1001", 1)
	resolved("a", "1001", 1)
	resolved("b", "22", 2)
	place(t, config, "Include "+home+"/parts/*\nHost a\n  Port 1002\n")
	resolved("a", "1002", 3)
	place(t, home+"/parts/one", "Host a\n  Port 1003\n")
	resolved("a", "1003", 4)
	place(t, home+"/parts/one", "Host a\n  Port 1004\n")
	resolved("a", "1004", 5)
	resolved("a", "1004", 5)
	place(t, home+"/parts/one", "Match exec true\n  Port 1005\n")
	resolved("a", "1005", 6)
	resolved("a", "1005", 7)
}

// Where OpenSSH's client is not installed, the parser reads the same from the
// same files.
func TestParserReadsWhatOpenSSHDoes(t *testing.T) {
	t.Parallel()
	home, program := t.TempDir(), openSSH(t)
	config := home + "/config"
	place(t, config, `Host plain
  HostName plain.example
  User me
Host full
  HostName %h.example
  Port 2222
  IdentityFile `+home+`/one
  IdentityFile `+home+`/two
  CertificateFile `+home+`/two-cert.pub
  IdentitiesOnly yes
  IdentityAgent none
  HostKeyAlias other
  StrictHostKeyChecking accept-new
  ServerAliveInterval 7
  ConnectTimeout 9
  Ciphers aes256-gcm@openssh.com
Host jumped
  ProxyJump gate,me@gate2:2200
Host piped
  ProxyCommand nc %h %p
  UserKnownHostsFile `+home+`/known
Host *
  User everybody
`)
	for _, host := range []string{"plain", "full", "jumped", "piped", "unknown.example"} {
		r := request{host: host, home: home, dir: home, configFile: config, agent: "/agent", environ: []string{"HOME=" + home, "PATH=/usr/bin:/bin"}}
		parsed, err := resolve(t.Context(), r)
		if err != nil {
			t.Fatalf("%s: %v", host, err)
		}
		r.program = program
		asked, err := resolve(t.Context(), r)
		if err != nil {
			t.Fatalf("%s: %v", host, err)
		}
		if parsed.Source != config || asked.Source != "ssh -G" {
			t.Errorf("%s: sources %q and %q", host, parsed.Source, asked.Source)
		}
		for _, fact := range []struct {
			name        string
			there, want any
		}{
			{"host", parsed.Host, asked.Host}, {"port", parsed.Port, asked.Port}, {"user", parsed.User, asked.User},
			{"certificates", parsed.CertificateFiles, asked.CertificateFiles}, {"only", parsed.IdentitiesOnly, asked.IdentitiesOnly},
			{"agent", parsed.Agent, asked.Agent}, {"jumps", parsed.Jumps, asked.Jumps}, {"command", parsed.ProxyCommand, asked.ProxyCommand},
			{"alias", parsed.HostKeyAlias, asked.HostKeyAlias}, {"accept", parsed.AcceptNew, asked.AcceptNew},
			{"keepalive", parsed.Keepalive, asked.Keepalive}, {"timeout", parsed.ConnectTimeout, asked.ConnectTimeout},
		} {
			if fmt.Sprint(fact.there) != fmt.Sprint(fact.want) {
				t.Errorf("%s: %s is %v, want %v", host, fact.name, fact.there, fact.want)
			}
		}
		if host == "full" && (!slices.Equal(parsed.IdentityFiles, asked.IdentityFiles) || !slices.Equal(parsed.Ciphers, asked.Ciphers)) {
			t.Errorf("keys %q and %q, ciphers %q and %q", parsed.IdentityFiles, asked.IdentityFiles, parsed.Ciphers, asked.Ciphers)
		}
		if host == "piped" && !slices.Equal(parsed.KnownHosts, asked.KnownHosts) {
			t.Errorf("known hosts %q and %q", parsed.KnownHosts, asked.KnownHosts)
		}
	}
}
