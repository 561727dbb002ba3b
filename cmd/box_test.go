package cmd

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/afield-dev/afield/pkg/backend/box/boxtest"
)

// boxUser is who programs are in a box of the stand-in when root runs it.
const boxUser = 1000

// The scripts of the local world run in an Upstash Box too. The box is a stand-in
// on this machine; the directories of the scripts lie where it sees them, outside
// its own /tmp, and belong to its user.
func TestScriptsBox(t *testing.T) {
	dir := binaryDir(t)
	root, err := os.MkdirTemp("/var/tmp", "afield-box-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	s, err := boxtest.New(boxtest.Options{Share: root})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	scripts, err := filepath.Glob("testdata/script/fs_*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("scripts: %v", err)
	}
	testscript.Run(t, testscript.Params{
		Files:               scripts,
		WorkdirRoot:         root,
		RequireExplicitExec: true,
		Condition:           onWorld("box"),
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
			home := env.WorkDir + "-home" // not where the box looks: it may not read all of it
			env.Setenv("HOME", home)
			env.Setenv("TMPDIR", home+"/tmp")
			env.Setenv("AFIELD_KEEP", "off")
			env.Setenv("UPSTASH_BOX_API_KEY", s.Key())
			env.Setenv("UPSTASH_BOX_BASE_URL", s.URL())
			profiles := home + "/.config/afield/profiles"
			for _, d := range []string{profiles, home + "/tmp"} {
				if err := os.MkdirAll(d, 0o700); err != nil {
					return err
				}
			}
			profile := fmt.Sprintf("version: 1\nbackend: box\nconfig: {create: true, cwd: %q}\n", env.WorkDir)
			if err := os.WriteFile(profiles+"/default.yaml", []byte(profile), 0o600); err != nil {
				return err
			}
			return giveToBox(env.WorkDir)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": cmdExits,
			"mode":  cmdMode,
			"bytes": cmdBytes,
		},
	})
}

// giveToBox gives a tree to the user of the box.
func giveToBox(dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if err == nil {
			err = os.Lchown(p, boxUser, boxUser)
		}
		return err
	})
}
