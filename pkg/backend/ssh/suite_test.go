package ssh_test

import (
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/afield-dev/afield/pkg/backend/ssh"
	"github.com/afield-dev/afield/pkg/backend/ssh/sshdtest"
	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/remoteexec/exectest"
	"github.com/afield-dev/afield/pkg/remotefs"
	"github.com/afield-dev/afield/pkg/remotefs/fstest"
)

// fastParent is a directory where flushing costs nothing, if there is one.
func fastParent() string {
	if _, err := os.Stat("/dev/shm"); err == nil {
		return "/dev/shm"
	}
	return "/tmp"
}

// suite describes the files of a world for the suite.
func suite(t *testing.T, w *ssh.World) fstest.Backend {
	t.Helper()
	dir, state, driver := sshdtest.TempDirIn(t, fastParent()), t.TempDir(), w.FileDriver()
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
	t.Parallel()
	s := startServer(t)
	fstest.Run(t, suite(t, s.mustOpen(t, map[string]any{"cwd": nil})))
}

// owned is a world whose entries belong to a login of this machine.
type owned struct {
	fstest.Host
	uid, gid int
}

func (o owned) own(path string, err error) error {
	return errors.Join(err, os.Lchown(path, o.uid, o.gid))
}

// Mkdir gives the directory to the login; those above it stand already, or are
// made the same way.
func (o owned) Mkdir(path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := o.Mkdir(filepath.Dir(path)); err != nil {
		return err
	}
	return o.own(path, os.Mkdir(path, 0o755))
}

func (o owned) Write(path string, content []byte) error {
	if err := o.Mkdir(filepath.Dir(path)); err != nil {
		return err
	}
	return o.own(path, o.Host.Write(path, content))
}

func (o owned) Symlink(to, path string) error { return o.own(path, o.Host.Symlink(to, path)) }
func (o owned) Fifo(path string) error        { return o.own(path, o.Host.Fifo(path)) }
func (o owned) Socket(path string) error      { return o.own(path, o.Host.Socket(path)) }

// The cases about permission bits are those of a login that they bind.
func TestFilesSuiteUnprivileged(t *testing.T) {
	t.Parallel()
	name, home := login(t, "/bin/sh", "")
	account, err := user.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	b := suite(t, startServer(t, "SetEnv HOME="+home).mustOpen(t, map[string]any{"user": name}))
	o := owned{}
	o.uid, _ = strconv.Atoi(account.Uid)
	o.gid, _ = strconv.Atoi(account.Gid)
	os.Chown(b.Dir, o.uid, o.gid)
	b.World, b.Root = o, false
	b.Only = func(c fstest.Case) bool { return c.Need&fstest.Unprivileged != 0 }
	fstest.Run(t, b)
}

// The processes of a host pass the suite.
func TestProcessesSuite(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	w := s.mustOpen(t, nil)
	exectest.Run(t, exectest.Backend{Open: func(t exectest.T) (remoteexec.Runtime, string) {
		dir := tempDir(t.(*testing.T))
		return w.ProcessesAt(dir), dir
	}})
}
