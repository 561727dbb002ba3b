package cmd

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/afield-dev/afield/pkg/backend/box/boxtest"
)

// binary builds a plain afield and the plugin of the examples once for the whole
// test run: a race-built one sleeps a second at its end.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "afield-test-")
	if err != nil {
		return "", err
	}
	out, err := exec.Command("go", "build", "-o", dir+"/", "..", "../examples/goplugin").CombinedOutput()
	if err != nil {
		return "", errors.New(string(out))
	}
	return dir, nil
})

// binaryDir gives the directory that holds the plain binary.
func binaryDir(t testing.TB) string {
	t.Helper()
	dir, err := binary()
	if err != nil {
		t.Fatalf("go build: %s", err)
	}
	return dir
}

func TestMain(m *testing.M) {
	boxtest.Main() // a box is this program again
	status := m.Run()
	if dir, err := binary(); err == nil {
		os.RemoveAll(dir)
	}
	os.Exit(status)
}

// Each script in testdata/script is run as a user would type it, against the
// local world, with a home and a state directory of its own.
func TestScripts(t *testing.T) {
	dir := binaryDir(t)
	examples, err := filepath.Abs("../examples")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Condition:           onWorld("local"),
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
			env.Setenv("BIN", dir)
			env.Setenv("EXAMPLES", examples)
			env.Setenv("HOME", env.WorkDir+"/.home")
			env.Setenv("XDG_CONFIG_HOME", env.WorkDir+"/.home/.config")
			env.Setenv("XDG_STATE_HOME", env.WorkDir+"/.home/.local/state")
			env.Setenv("TMPDIR", env.WorkDir+"/.tmp")
			return os.MkdirAll(env.WorkDir+"/.tmp", 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":        cmdExits,
			"unprivileged": cmdUnprivileged,
			"mode":         cmdMode,
			"bytes":        cmdBytes,
		},
	})
}

// onWorld lets a line of a script hold for some worlds only: [remote] for those
// with a umask and an environment of their own, [local], [ssh] or [e2b] for one,
// [mount] where mounting is allowed: always, and the script fails, where nothing
// may be left out.
func onWorld(name string) func(string) (bool, error) {
	return func(word string) (bool, error) {
		switch word {
		case "remote":
			return name != "local", nil
		case "local", "ssh", "e2b", "box":
			return word == name, nil
		case "mount":
			return os.Getenv("AFIELD_TEST_REQUIRE") != "" || canMount(), nil
		}
		return false, fmt.Errorf("unknown condition %q", word)
	}
}

// cmdExits runs a program and asserts its exact status: exits N PROG ARGS…. A
// death by signal is -1 and so never equals a status.
func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS PROGRAM [ARG…]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// cmdUnprivileged is exits without root's right to pass over permissions.
func cmdUnprivileged(ts *testscript.TestScript, neg bool, args []string) {
	if os.Geteuid() == 0 && len(args) > 1 {
		args = slices.Insert(args, 1, "setpriv", "--bounding-set=-dac_override,-dac_read_search")
	}
	cmdExits(ts, neg, args)
}

// cmdMode asserts the permission bits of a file: mode OCTAL FILE.
func cmdMode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: mode OCTAL FILE")
	}
	info, err := os.Lstat(ts.MkAbs(args[1]))
	ts.Check(err)
	want, err := strconv.ParseUint(args[0], 8, 32)
	ts.Check(err)
	if got := info.Mode().Perm(); got != os.FileMode(want) {
		ts.Fatalf("mode of %s is %04o, want %04o", args[1], got, want)
	}
}

// cmdBytes asserts the content of a file given as a quoted Go string: bytes
// FILE 'a\r\nb'.
func cmdBytes(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: bytes FILE QUOTED")
	}
	want, err := strconv.Unquote(`"` + args[1] + `"`)
	ts.Check(err)
	got, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	if string(got) != want {
		ts.Fatalf("%s holds %q, want %q", args[0], got, want)
	}
}
