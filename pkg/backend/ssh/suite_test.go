package ssh_test

import (
	"os"
	"testing"

	"github.com/afield-dev/afield/pkg/backend/ssh"
	"github.com/afield-dev/afield/pkg/backend/ssh/sshdtest"
	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/remoteexec/exectest"
	"github.com/afield-dev/afield/pkg/remotefs"
	"github.com/afield-dev/afield/pkg/remotefs/fstest"
)

// suite describes the files of a world for the suite.
func suite(t *testing.T, w *ssh.World) fstest.Backend {
	t.Helper()
	parent := "/tmp"
	if _, err := os.Stat("/dev/shm"); err == nil {
		parent = "/dev/shm" // flushing costs nothing there
	}
	dir, state, driver := sshdtest.TempDirIn(t, parent), t.TempDir(), w.FileDriver()
	open := func() (remotefs.FS, error) {
		return remotefs.New(driver, remotefs.Options{Locks: remotefs.NewLocks(state, "suite")}), nil
	}
	files, _ := open()
	return fstest.Backend{Facts: driver.Facts(), Files: files, Another: open, Driver: driver, World: fstest.MountingHost{},
		Dir: dir, StateDir: state, Root: true, Rounds: 2,
		// A thousand replacements take a thousand helpers: what they show, a rename,
		// is the file system's.
		Only: func(c fstest.Case) bool { return c.Num != 239 }}
}

// The files of a host with a shell pass the suite.
func TestFilesSuite(t *testing.T) {
	s := startServer(t)
	fstest.Run(t, suite(t, s.mustOpen(t, map[string]any{"cwd": nil})))
}

// The processes of a host pass the suite.
func TestProcessesSuite(t *testing.T) {
	s := startServer(t)
	w := s.mustOpen(t, nil)
	exectest.Run(t, exectest.Backend{Open: func(t exectest.T) (remoteexec.Runtime, string) {
		dir := tempDir(t.(*testing.T))
		return w.ProcessesAt(dir), dir
	}})
}
