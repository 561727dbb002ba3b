package boxtest_test

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/afield-dev/afield/pkg/backend/box/boxtest"
)

func TestMain(m *testing.M) {
	boxtest.Main()
	os.Exit(m.Run())
}

// need fails where the tests of CI must run, and skips loudly elsewhere.
func need(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if os.Getenv("AFIELD_TEST_REQUIRE") != "" {
		t.Fatal(err)
	}
	t.Skip("SKIPPED: ", err)
}

func newServer(t *testing.T, opts boxtest.Options) *boxtest.Server {
	t.Helper()
	mode, err := boxtest.Isolation()
	need(t, err)
	t.Logf("boxes are isolated by: %s", mode)
	s, err := boxtest.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// node runs a script of testdata with the packages of npm.
func node(t *testing.T, s *boxtest.Server, script string, args ...string) {
	t.Helper()
	root, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := boxtest.NodeModules(root)
	need(t, err)
	text, err := os.ReadFile(filepath.Join("testdata", script))
	if err != nil {
		t.Fatal(err)
	}
	// Packages are looked up from where the script stands.
	file := filepath.Join(dir, script)
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", append([]string{file}, args...)...)
	cmd.Env = append(os.Environ(), "UPSTASH_BOX_BASE_URL="+s.URL(), "UPSTASH_BOX_API_KEY="+s.Key(), "UPSTASH_DISABLE_TELEMETRY=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", script, err, out)
	}
}

// The official SDK finds in the stand-in the service that it knows
// (upstash-box.md 14 A).
func TestOfficialSDK(t *testing.T) {
	t.Parallel()
	s := newServer(t, boxtest.Options{Polls: 1})
	node(t, s, "sdk.mjs", t.TempDir())
}

// A foreign WebSocket client finds the session protocol of the frame list
// (upstash-box.md 14 B 1).
func TestForeignSessionClient(t *testing.T) {
	t.Parallel()
	s := newServer(t, boxtest.Options{})
	node(t, s, "session.mjs", newBox(t, s))
	if n := s.Sessions(); n != 0 {
		t.Errorf("%d sessions are open at the end", n)
	}
}

// newBox makes a box by the plain route.
func newBox(t *testing.T, s *boxtest.Server) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/v2/box", strings.NewReader(`{"ephemeral":true}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Box-Api-Key", s.Key())
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var box struct{ ID string }
	if err := json.NewDecoder(resp.Body).Decode(&box); err != nil {
		t.Fatal(err)
	}
	return box.ID
}
