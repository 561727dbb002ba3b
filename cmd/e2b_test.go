package cmd

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/afield-dev/afield/pkg/backend/e2b/e2btest"
)

const e2bKey = "e2b_0123456789abcdef"

// The scripts of the local world run against an E2B sandbox too, and those of
// testdata/e2b, which are about the service. The sandbox is a stand-in on this
// machine whose folder holds the directories of the scripts.
func TestScriptsE2B(t *testing.T) {
	dir := binaryDir(t)
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := e2btest.New(e2btest.Options{Root: root, Key: e2bKey})
	t.Cleanup(s.Close)
	box := s.Start(time.Hour)
	var files []string
	for _, pattern := range []string{"testdata/script/fs_*.txtar", "testdata/script/exec_streams.txtar", "testdata/script/exec_json.txtar", "testdata/e2b/*.txtar"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		files = append(files, found...)
	}
	testscript.Run(t, testscript.Params{
		Files:               files,
		WorkdirRoot:         root,
		RequireExplicitExec: true,
		Condition:           onWorld("e2b"),
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
			env.Setenv("HOME", env.WorkDir+"/.home")
			env.Setenv("TMPDIR", env.WorkDir+"/.tmp")
			env.Setenv("AFIELD_KEEP", "off")
			env.Setenv("E2B_API_KEY", e2bKey)
			env.Setenv("E2B_API_URL", s.APIURL())
			env.Setenv("E2B_SANDBOX_URL", s.SandboxURL())
			env.Setenv("AFIELD_PROFILE", "e2b")
			env.Setenv("BOX", box.ID)
			profile := fmt.Sprintf("version: 1\nbackend: e2b\nconfig: {sandbox: %s, cwd: %q}\n", box.ID, env.WorkDir)
			profiles := env.WorkDir + "/.home/.config/afield/profiles"
			if err := os.MkdirAll(profiles, 0o700); err != nil {
				return err
			}
			if err := os.MkdirAll(env.WorkDir+"/.tmp", 0o700); err != nil {
				return err
			}
			return os.WriteFile(profiles+"/e2b.yaml", []byte(profile), 0o600)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": cmdExits,
			"mode":  cmdMode,
			"bytes": cmdBytes,
		},
	})
}
