package box

import (
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/afield-dev/afield/pkg/backend/box/boxtest"
)

// Each script in testdata/script is run as a user would type it, with a plain
// binary and a stand-in of its own.
func TestScripts(t *testing.T) {
	t.Parallel()
	newServer(t, boxtest.Options{}) // skips loudly where it cannot be run
	dir := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "afield"), "../../..").CombinedOutput(); err != nil {
		t.Fatalf("go build: %s", out)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			s, err := boxtest.New(boxtest.Options{Key: "box_key"})
			if err != nil {
				return err
			}
			env.Defer(s.Close)
			env.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
			env.Setenv("AFIELD_CONFIG_DIR", env.WorkDir+"/.config")
			env.Setenv("AFIELD_STATE_DIR", env.WorkDir+"/.state")
			env.Setenv("AFIELD_KEEP", "off")
			env.Setenv("UPSTASH_BOX_API_KEY", "box_key")
			env.Setenv("UPSTASH_BOX_BASE_URL", s.URL())
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": cmdExits, "control": cmdControl, "live": cmdLive},
	})
}

// cmdExits runs a program and asserts its exact status: exits N PROG ARGS….
func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS PROGRAM [ARG…]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var status *exec.ExitError
		if !errors.As(err, &status) {
			ts.Fatalf("%v", err)
		}
		got = status.ExitCode()
	}
	if got != want {
		ts.Fatalf("status %d, want %d", got, want)
	}
}

// cmdControl asks the stand-in for a failure: control METHOD PATH [BODY].
func cmdControl(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: control METHOD PATH [BODY]")
	}
	req, err := http.NewRequest(args[0], ts.Getenv("UPSTASH_BOX_BASE_URL")+args[1], strings.NewReader(strings.Join(args[2:], "")))
	ts.Check(err)
	req.Header.Set("X-Box-Api-Key", "box_key")
	resp, err := http.DefaultClient.Do(req)
	ts.Check(err)
	resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		ts.Fatalf("%s %s: %s", args[0], args[1], resp.Status)
	}
}

// cmdLive asserts how many boxes live: live N.
func cmdLive(ts *testscript.TestScript, _ bool, args []string) {
	resp, err := http.Get(ts.Getenv("UPSTASH_BOX_BASE_URL") + "/control/boxes")
	ts.Check(err)
	defer resp.Body.Close()
	var text strings.Builder
	_, err = io.Copy(&text, resp.Body)
	ts.Check(err)
	got := strings.Count(text.String(), `"Status":`) - strings.Count(text.String(), `"Status":"deleted"`)
	if len(args) != 1 || strconv.Itoa(got) != args[0] {
		ts.Fatalf("%d boxes live, want %s", got, strings.Join(args, " "))
	}
}
