package box

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/afield-dev/afield/pkg/remotefs/fstest"
)

// boxWorld makes what a case finds through the directory of this machine that
// the box sees as its workspace, as the box's user: that is much cheaper than
// programs in the box.
type boxWorld struct {
	fstest.World
	home string
	user int // -1: whoever runs the test
}

func newBoxWorld(home string) boxWorld {
	w := boxWorld{World: fstest.Host{}, home: home, user: -1}
	if os.Geteuid() == 0 {
		w.user = 1000
	}
	return w
}

// at gives the place of a path of the box on this machine.
func (w boxWorld) at(path string) string {
	rest, ok := strings.CutPrefix(path, defaultCwd+"/")
	if !ok {
		return path
	}
	return w.home + "/" + rest
}

// give hands what was made to the box's user, with what lies above it.
func (w boxWorld) give(path string, err error) error {
	if err != nil || w.user < 0 {
		return err
	}
	for p := w.at(path); len(p) > len(w.home); p = filepath.Dir(p) {
		if err := os.Lchown(p, w.user, w.user); err != nil {
			return err
		}
	}
	return nil
}

func (w boxWorld) Mkdir(p string) error { return w.give(p, w.World.Mkdir(w.at(p))) }
func (w boxWorld) Write(p string, content []byte) error {
	return w.give(p, w.World.Write(w.at(p), content))
}
func (w boxWorld) Read(p string) ([]byte, error)         { return w.World.Read(w.at(p)) }
func (w boxWorld) Append(p string, content []byte) error { return w.World.Append(w.at(p), content) }
func (w boxWorld) Truncate(p string, size int64) error   { return w.World.Truncate(w.at(p), size) }
func (w boxWorld) Symlink(to, p string) error            { return w.give(p, w.World.Symlink(to, w.at(p))) }
func (w boxWorld) Link(old, p string) error              { return w.World.Link(w.at(old), w.at(p)) }
func (w boxWorld) Fifo(p string) error                   { return w.give(p, w.World.Fifo(w.at(p))) }
func (w boxWorld) Socket(p string) error                 { return w.give(p, w.World.Socket(w.at(p))) }
func (w boxWorld) Chmod(p string, mode int) error        { return w.World.Chmod(w.at(p), mode) }
func (w boxWorld) Mtime(p string) (time.Time, error)     { return w.World.Mtime(w.at(p)) }
func (w boxWorld) SetMtime(p string, t time.Time) error  { return w.World.SetMtime(w.at(p), t) }
func (w boxWorld) Rename(from, to string) error          { return w.World.Rename(w.at(from), w.at(to)) }
func (w boxWorld) Remove(p string) error                 { return w.World.Remove(w.at(p)) }
func (w boxWorld) Lstat(p string) (*fstest.Entry, error) { return w.World.Lstat(w.at(p)) }
func (w boxWorld) Tree(dir string) ([]string, error)     { return w.World.Tree(w.at(dir)) }

func (w boxWorld) Fill(dir string, n int) error {
	if err := w.World.Fill(w.at(dir), n); err != nil {
		return err
	}
	return filepath.WalkDir(w.at(dir), func(p string, _ fs.DirEntry, err error) error {
		if err == nil && w.user >= 0 {
			err = os.Lchown(p, w.user, w.user)
		}
		return err
	})
}

// Umask is that of the stand-in's programs.
func (w boxWorld) Umask() (int, error) { return 0o022, nil }
