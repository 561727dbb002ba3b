package e2btest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const testKey = "e2b_0123456789abcdef0123456789abcdef01234567"

// npmPackages installs packages of npm once into the ignored cache folder of
// the repository and gives the folder that holds node_modules.
func npmPackages(t *testing.T, name string, packages ...string) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "..", "..", "..", ".cache", "npm", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "installed")); err == nil {
		return dir
	}
	if _, err := exec.LookPath("npm"); err != nil {
		missing(t, "npm is not installed")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	args := append([]string{"install", "--prefix", dir, "--no-audit", "--no-fund", "--legacy-peer-deps", "--silent"}, packages...)
	if out, err := exec.CommandContext(ctx, "npm", args...).CombinedOutput(); err != nil {
		missing(t, "npm install "+strings.Join(packages, " ")+": "+err.Error()+"\n"+string(out))
	}
	if err := os.WriteFile(filepath.Join(dir, "installed"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// missing skips loudly, or fails where nothing may be missing.
func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("AFIELD_TEST_REQUIRE") != "" {
		t.Fatal(what)
	}
	t.Skip("NOT TESTED: " + what)
}

// node runs a script against a stand-in and fails unless it says that it is
// done.
func node(t *testing.T, s *Server, script, dir string, env ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", script, dir)
	cmd.Env = append(os.Environ(), "E2B_API_KEY="+testKey, "E2B_API_URL="+s.APIURL(), "E2B_SANDBOX_URL="+s.SandboxURL(), "E2B_DEBUG=", "E2B_DOMAIN=")
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.HasSuffix(strings.TrimSpace(string(out)), "done") {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	t.Logf("%s", out)
}

// The newest official SDK and the one that the published peer uses drive the
// stand-in, so that it cannot share a mistake with our client.
func TestOfficialSDK(t *testing.T) {
	for _, version := range []string{"2.51.0", "2.29.1"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			dir := npmPackages(t, "e2b-"+version, "e2b@"+version)
			s := New(Options{Root: t.TempDir(), Key: testKey})
			defer s.Close()
			node(t, s, "testdata/sdk.mjs", dir)
		})
	}
}

// The published peer's sandbox owner and file provider work against the
// stand-in, and its disposal deletes the sandbox.
func TestPublishedPeer(t *testing.T) {
	t.Parallel()
	dir := npmPackages(t, "dsh-e2b-0.0.1-rc.1",
		"@deepseek-ai/dsh-e2b@0.0.1-rc.1", "@deepseek-ai/dsh-fs-e2b@0.0.1-rc.1", "@deepseek-ai/dsh-fs@0.0.1-rc.1",
		"@deepseek-ai/dsh-llm@0.0.1-rc.1", "@deepseek-ai/dsh-timeout@0.0.1-rc.1", "@deepseek-ai/cordis@4.0.1")
	root := t.TempDir()
	s := New(Options{Root: root, Key: testKey})
	defer s.Close()
	node(t, s, "testdata/peer.mjs", dir, "AFIELD_CWD="+root+"/cwd")
	if n := s.Count(); n != 0 {
		t.Errorf("%d sandboxes are left", n)
	}
}
