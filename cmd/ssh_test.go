package cmd

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/afield-dev/afield/pkg/backend/ssh/sshdtest"
)

// The scripts of the file contract are run unchanged over a real SSH server: the
// login's home is the script's own directory.
func TestScriptsOverSSH(t *testing.T) {
	dir := binaryDir(t)
	scripts, err := filepath.Glob("testdata/script/fs_*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("scripts: %v", err)
	}
	scripts = append(scripts, "testdata/ssh/ssh_exec.txtar")
	testscript.Run(t, testscript.Params{
		Files:               scripts,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
			env.Setenv("HOME", env.WorkDir+"/.home")
			env.Setenv("XDG_CONFIG_HOME", env.WorkDir+"/.home/.config")
			env.Setenv("XDG_STATE_HOME", env.WorkDir+"/.home/.local/state")
			env.Setenv("TMPDIR", env.WorkDir+"/.tmp")
			env.Setenv("AFIELD_KEEP", "off")
			server := sshdtest.Start(t, "SetEnv HOME="+env.WorkDir)
			env.Setenv("XDG_RUNTIME_DIR", server.Dir) // sockets need a short path
			profiles := env.WorkDir + "/.home/.config/afield/profiles"
			for _, d := range []string{env.WorkDir + "/.tmp", profiles} {
				if err := os.MkdirAll(d, 0o700); err != nil {
					return err
				}
			}
			return os.WriteFile(profiles+"/default.yaml", fmt.Appendf(nil, `version: 1
backend: ssh
config: {host: 127.0.0.1, port: %d, user: root, identityFile: %q, knownHostsFile: %q, configFile: /dev/null, agent: "off"}
`, server.Port, server.Key, server.Known), 0o600)
		},
		Condition: onWorld("ssh"),
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": cmdExits, "mode": cmdMode, "bytes": cmdBytes,
		},
	})
}
