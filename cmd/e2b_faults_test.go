package cmd

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/afield-dev/afield/pkg/backend/e2b/e2btest"
)

// What can go wrong with a service, an account or a sandbox, each script with a
// stand-in of its own.
func TestScriptsE2BFaults(t *testing.T) {
	dir := binaryDir(t)
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/e2b_faults",
		WorkdirRoot:         root,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
			env.Setenv("HOME", env.WorkDir+"/.home")
			env.Setenv("TMPDIR", env.WorkDir+"/.tmp")
			env.Setenv("AFIELD_KEEP", "off")
			env.Setenv("E2B_API_KEY", e2bKey)
			env.Values[faultyKey{}] = &faulty{}
			return os.MkdirAll(env.WorkDir+"/.tmp", 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": cmdExits, "service": cmdService, "fault": cmdFault, "expire": cmdExpire, "sandboxes": cmdSandboxes,
		},
	})
}

// faulty is the service of a script and the sandbox of its profile.
type faulty struct {
	*e2btest.Server
	box *e2btest.Sandbox
}

type faultyKey struct{}

func faultyOf(ts *testscript.TestScript) *faulty { return ts.Value(faultyKey{}).(*faulty) }

// words reads NAME=VALUE arguments.
func words(ts *testscript.TestScript, args []string) map[string]string {
	m := map[string]string{}
	for _, a := range args {
		k, v, ok := strings.Cut(a, "=")
		if !ok {
			ts.Fatalf("%q is not NAME=VALUE", a)
		}
		m[k] = v
	}
	return m
}

func number(ts *testscript.TestScript, text string) int {
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	ts.Check(err)
	return n
}

// cmdService starts the stand-in with one sandbox: service [version=V] [max=N].
func cmdService(ts *testscript.TestScript, neg bool, args []string) {
	m, f := words(ts, args), faultyOf(ts)
	root := ts.MkAbs("world")
	ts.Check(os.MkdirAll(root+"/ws", 0o755))
	f.Server = e2btest.New(e2btest.Options{Root: root, Key: e2bKey, EnvdVersion: m["version"], MaxSandboxes: number(ts, m["max"])})
	ts.Defer(f.Close)
	f.box = f.Start(time.Hour)
	ts.Setenv("E2B_API_URL", f.APIURL())
	ts.Setenv("E2B_SANDBOX_URL", f.SandboxURL())
	ts.Setenv("BOX", f.box.ID)
	ts.Setenv("WS", root+"/ws")
	profiles := ts.MkAbs(".home/.config/afield/profiles")
	ts.Check(os.MkdirAll(profiles, 0o700))
	for name, form := range map[string]string{"known": "sandbox: " + f.box.ID, "made": "create: true", "own": "perCommand: true"} {
		text := "version: 1\nbackend: e2b\nconfig: {" + form + ", cwd: " + strconv.Quote(root+"/ws") + "}\n"
		ts.Check(os.WriteFile(profiles+"/"+name+".yaml", []byte(text), 0o600))
	}
	ts.Setenv("AFIELD_PROFILE", "known")
}

// cmdFault lets requests fail: fault METHOD [status=N] [text=T] [retry=SECONDS]
// [cut=BYTES] [times=N] [skip=N] [dies=yes]; with dies the sandbox ends where
// the connection is cut.
func cmdFault(ts *testscript.TestScript, neg bool, args []string) {
	f := faultyOf(ts)
	if len(args) == 1 && args[0] == "none" {
		f.ReleaseAll()
		return
	}
	m := words(ts, args[1:])
	rule := &e2btest.Rule{
		Method: args[0], Status: number(ts, m["status"]), Text: m["text"], Cut: number(ts, m["cut"]),
		Times: number(ts, m["times"]), Skip: number(ts, m["skip"]),
	}
	if m["retry"] != "" {
		rule.Header = map[string]string{"Retry-After": m["retry"]}
	}
	if m["dies"] != "" {
		rule.After = f.box.Expire
		if rule.Cut < 0 {
			rule.Before = f.box.Expire
		}
	}
	f.Rule(rule)
}

// cmdExpire ends the life of the profile's sandbox.
func cmdExpire(ts *testscript.TestScript, neg bool, args []string) { faultyOf(ts).box.Expire() }

// cmdSandboxes says how many there are: sandboxes N.
func cmdSandboxes(ts *testscript.TestScript, neg bool, args []string) {
	if n := faultyOf(ts).Count(); len(args) != 1 || n != number(ts, args[0]) {
		ts.Fatalf("there are %d sandboxes", n)
	}
}
