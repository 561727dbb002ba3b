package local

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/afield-dev/afield/pkg/remotefs"
)

// flushEvery is how much content is written before the disk is asked to begin
// with it, so that the final flush does not find everything undone.
const flushEvery = 8 << 20

// stage is a private directory beside the target with one file in it.
type stage struct {
	d       *Driver
	key     string
	dir     string
	file    *os.File
	opts    remotefs.StageOptions
	natural fs.FileMode // the mode that any program's new file would get there
	made    []string    // directories that were made for key, the topmost first
	written int64
	begun   int64 // up to here the disk has been asked to begin
	moved   bool  // the content is no longer in dir
	closed  bool
}

// Stage makes parents with mode 0777 minus the umask, and beside the target a
// directory of mode 0700 with a file of mode 0600, both exclusively.
func (d *Driver) Stage(_ context.Context, key string, opts remotefs.StageOptions) (remotefs.Stage, error) {
	s := &stage{d: d, key: key, opts: opts}
	parent := filepath.Dir(key)
	if err := s.makeParents(parent); err != nil {
		return nil, err
	}
	s.dir = filepath.Join(parent, d.stageName())
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		return nil, err
	}
	if err := s.create(); err != nil {
		return nil, errors.Join(err, s.Discard())
	}
	return s, nil
}

// stageName does not hold the target's name, which may be as long as a name can
// be (S-10).
func (d *Driver) stageName() string {
	if d.hooks.stageName != nil {
		return d.hooks.stageName()
	}
	var id [8]byte
	_, _ = rand.Read(id[:])
	return ".afield-" + hex.EncodeToString(id[:]) + ".tmp"
}

// makeParents makes what is missing of dir.
func (s *stage) makeParents(dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) || dir == "/" {
		return err
	}
	if err := s.makeParents(filepath.Dir(dir)); err != nil {
		return err
	}
	err := os.Mkdir(dir, 0o777)
	if errors.Is(err, fs.ErrExist) {
		if st, serr := os.Stat(dir); serr == nil && st.IsDir() {
			return nil
		}
	}
	if err == nil {
		s.made = append(s.made, dir)
	}
	return err
}

// create makes the file. Its mode at birth is what umask and a default access
// list of the directory make of 0666; that is kept in mind, and the file closed
// to others until it is sealed.
func (s *stage) create() error {
	if err := os.Chmod(s.dir, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(s.content(), os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o666)
	if err != nil {
		return err
	}
	s.file = f
	st, err := f.Stat()
	if err != nil {
		return err
	}
	s.natural = st.Mode().Perm()
	return f.Chmod(0o600)
}

func (s *stage) content() string { return filepath.Join(s.dir, "content") }

// Write adds content.
func (s *stage) Write(p []byte) (int, error) {
	n, err := s.file.Write(p)
	if s.written += int64(n); s.written-s.begun >= flushEvery {
		beginFlush(s.file, s.begun, s.written-s.begun)
		s.begun = s.written
	}
	return n, err
}

// Seal carries over what a replaced file had, sets the mode, and flushes.
func (s *stage) Seal(context.Context) error {
	if s.opts.Replaces != nil {
		carryOver(s.key, s.file)
	}
	if err := s.file.Chmod(s.mode()); err != nil {
		return err
	}
	return s.file.Sync()
}

// mode drops setuid, setgid and sticky bits of a replaced file.
func (s *stage) mode() fs.FileMode {
	switch {
	case s.opts.Mode >= 0:
		return fs.FileMode(s.opts.Mode).Perm()
	case s.opts.Replaces != nil && s.opts.Replaces.Mode >= 0:
		return fs.FileMode(s.opts.Replaces.Mode).Perm()
	}
	return s.natural
}

// Discard removes what is left: the content, if it was not moved to the target,
// and the directory, if nothing else is in it.
func (s *stage) Discard() error {
	if s.file != nil && !s.closed {
		s.closed = true
		s.file.Close()
	}
	var failed error
	if !s.moved {
		failed = s.remove(s.content())
	}
	return errors.Join(failed, s.remove(s.dir))
}

// remove removes one entry; one that is not there is no failure.
func (s *stage) remove(path string) error {
	remove := os.Remove
	if s.d.hooks.remove != nil {
		remove = s.d.hooks.remove
	}
	if err := remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
