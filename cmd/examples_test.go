package cmd

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// Cases 126 and 127: providers in Python, Node and Go (at driver level) pass
// conformance. The suites of the contracts start thousands of programs there, so
// they run on request (make test-examples); that of the protocol always does.
func TestExamplesConform(t *testing.T) {
	only := []string{"--only", "protocol"}
	if os.Getenv("AFIELD_TEST_EXAMPLES") != "" {
		only = nil
	}
	for name, program := range map[string]string{"pyplugin": "python3", "nodeplugin": "node", "godriver": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(program); program != "" && err != nil {
				lacks(t, program)
			}
			dir := "../examples/" + name
			if program == "" {
				dir = packed(t, name)
			}
			home := t.TempDir()
			var out, errs bytes.Buffer
			status := Main(append([]string{"conformance", "--plugin", dir, "--json"}, only...), &Streams{
				In: bytes.NewReader(nil), Out: &out, Err: &errs, Environ: append(os.Environ(), "HOME="+home, "AFIELD_STATE_DIR="+home),
				Dir: os.Getwd, Terminal: func(any) bool { return false },
			})
			var r conformanceResult
			if err := json.Unmarshal(out.Bytes(), &r); err != nil || status != 0 || r.Passed == 0 || r.Failed > 0 {
				t.Errorf("status %d: %v %s", status, err, errs.String())
			}
			for _, c := range r.Cases {
				if c.Result == "failed" {
					t.Errorf("%s %s: %s", c.ID, c.Name, *c.Reason)
				}
			}
		})
	}
}

func lacks(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("AFIELD_TEST_REQUIRE") != "" {
		t.Fatalf("%s is not installed", what)
	}
	t.Skipf("SKIPPED: %s is not installed", what)
}

// packed makes the archive of an example as its author does, by the template.
func packed(t *testing.T, name string) string {
	t.Helper()
	out := t.TempDir()
	script, err := filepath.Abs("../examples/template/pack.sh")
	if err != nil {
		t.Fatal(err)
	}
	platform := runtime.GOOS + "/" + runtime.GOARCH
	c := exec.Command(script, name, out, platform)
	c.Dir = "../examples/" + name
	if said, err := c.CombinedOutput(); err != nil {
		t.Fatalf("pack.sh: %v %s", err, said)
	}
	sums := exec.Command("sha256sum", "-c", "--quiet", "SHA256SUMS")
	sums.Dir = out
	if said, err := sums.CombinedOutput(); err != nil {
		t.Errorf("SHA256SUMS: %v %s", err, said)
	}
	return filepath.Join(out, name+"_"+runtime.GOOS+"_"+runtime.GOARCH+".tgz")
}
