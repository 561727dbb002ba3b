package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// files are those of this machine: a remotefs.Driver and Stager.
type files struct{ cwd string }

func (f files) Facts() remotefs.Facts {
	return remotefs.Facts{Backend: id, Cwd: f.cwd, LosesOwner: true}
}

// Canon gives the physical path; of a missing file that of the nearest ancestor
// with the rest appended.
func (f files) Canon(_ context.Context, path string) (string, error) { return canon(path) }

func canon(path string) (string, error) {
	physical, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) || path == "/" {
		return physical, err
	}
	parent, err := canon(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	return filepath.Join(parent, filepath.Base(path)), nil
}

func key(ref remotefs.Ref) (string, error) {
	if ref.Canonical {
		return ref.Path, nil
	}
	return canon(ref.Path)
}

// Stat follows links. What is not there is an answer and no error.
func (f files) Stat(_ context.Context, ref remotefs.Ref) (string, *remotefs.Info, error) {
	at, err := key(ref)
	if err != nil {
		return absent(ref.Path, err)
	}
	info, err := look(at, unix.Stat)
	if err != nil {
		return absent(at, err)
	}
	return at, info, nil
}

func (f files) Lstat(_ context.Context, path string) (string, *remotefs.Info, error) {
	parent, err := canon(filepath.Dir(path))
	if err != nil {
		return absent(path, err)
	}
	at := filepath.Join(parent, filepath.Base(path))
	info, err := look(at, unix.Lstat)
	if err != nil {
		return absent(at, err)
	}
	if info.Type == remotefs.TypeSymlink {
		info.LinkTarget, _ = os.Readlink(at)
	}
	return at, info, nil
}

func absent(at string, err error) (string, *remotefs.Info, error) {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		err = nil
	}
	return at, nil, err
}

func look(path string, stat func(string, *unix.Stat_t) error) (*remotefs.Info, error) {
	var st unix.Stat_t
	if err := stat(path, &st); err != nil {
		return nil, err
	}
	return infoOf(&st), nil
}

func infoOf(st *unix.Stat_t) *remotefs.Info {
	info := &remotefs.Info{Type: remotefs.TypeOther, Size: -1, Version: token(st), Mode: int(st.Mode & 0o7777)}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		info.Type, info.Size = remotefs.TypeFile, st.Size
	case unix.S_IFDIR:
		info.Type = remotefs.TypeDirectory
	case unix.S_IFLNK:
		info.Type, info.Size = remotefs.TypeSymlink, st.Size
	}
	info.ModTime = time.Unix(st.Mtim.Unix())
	info.Owner, info.Group = fmt.Sprint(st.Uid), fmt.Sprint(st.Gid)
	return info
}

// token changes with every change of the content.
func token(st *unix.Stat_t) string {
	return fmt.Sprintf("%d:%d:%d:%d:%d", st.Dev, st.Ino, st.Size, st.Mtim.Nano(), st.Ctim.Nano())
}

func (f files) List(_ context.Context, ref remotefs.Ref) (string, []remotefs.Entry, error) {
	at, err := key(ref)
	if err != nil {
		return "", nil, err
	}
	info, err := look(at, unix.Stat)
	if err == nil && info.Type != remotefs.TypeDirectory {
		err = &fault.Error{Code: fault.FSNotDirectory}
	}
	if err != nil {
		return "", nil, err
	}
	found, err := os.ReadDir(at)
	if err != nil {
		return "", nil, err
	}
	var entries []remotefs.Entry
	for _, d := range found {
		e := remotefs.Entry{Name: d.Name(), Key: filepath.Join(at, d.Name())}
		if e.Info, err = look(e.Key, unix.Stat); err != nil {
			_, _, e.Err = absent(e.Key, err)
		}
		if physical, err := canon(e.Key); err == nil && d.Type()&fs.ModeSymlink != 0 {
			e.Key = physical
		}
		entries = append(entries, e)
	}
	return at, entries, nil
}

// file is an open file.
type file struct {
	*os.File
	at   string
	info *remotefs.Info
}

func (f file) Key() string          { return f.at }
func (f file) Info() *remotefs.Info { return f.info }

func (f files) Open(_ context.Context, ref remotefs.Ref, limit int64) (remotefs.File, error) {
	at, err := key(ref)
	if err != nil {
		return nil, err
	}
	info, err := look(at, unix.Stat)
	if err == nil {
		err = readable(info, limit)
	}
	if err != nil {
		return nil, err
	}
	opened, err := os.OpenFile(at, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err = unix.Fstat(int(opened.Fd()), &st); err == nil {
		err = readable(infoOf(&st), -1)
	}
	if err != nil {
		opened.Close()
		return nil, err
	}
	return file{opened, at, infoOf(&st)}, nil
}

func readable(info *remotefs.Info, limit int64) error {
	switch {
	case info.Type != remotefs.TypeFile:
		return &fault.Error{Code: fault.FSNotRegularFile}
	case limit >= 0 && info.Size > limit:
		return &fault.Error{Code: fault.FSTooLarge}
	}
	return nil
}

// stage is a private directory beside the target with one file in it.
type stage struct {
	*os.File
	at, dir string
	mode    fs.FileMode
	closed  bool
}

// Stage makes missing parents and the staging file.
func (f files) Stage(_ context.Context, at string, opts remotefs.StageOptions) (remotefs.Stage, error) {
	if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
		return nil, err
	}
	dir := filepath.Join(filepath.Dir(at), ".afield-"+rand.Text()[:16]+".tmp")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	content, err := os.OpenFile(filepath.Join(dir, "content"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		os.Remove(dir)
		return nil, err
	}
	s := &stage{File: content, at: at, dir: dir}
	info, err := content.Stat()
	if err != nil {
		return nil, errors.Join(err, s.Discard())
	}
	s.mode = info.Mode().Perm() // what the world gives to new files
	switch {
	case opts.Mode >= 0:
		s.mode = fs.FileMode(opts.Mode).Perm()
	case opts.Replaces != nil && opts.Replaces.Mode >= 0:
		s.mode = fs.FileMode(opts.Replaces.Mode).Perm()
	}
	return s, content.Chmod(0o600)
}

func (s *stage) Seal(context.Context) error {
	return errors.Join(s.Chmod(s.mode), s.Sync())
}

// Publish is one step: a link that replaces nothing, or a rename.
func (s *stage) Publish(opts remotefs.PublishOptions) (string, error) {
	if opts.Guard != "" {
		info, err := look(s.at, unix.Lstat)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return "", &fault.Error{Code: fault.FSStaleVersion, Err: fs.ErrNotExist}
		case err != nil:
			return "", err
		case info.Version != opts.Guard:
			return "", &fault.Error{Code: fault.FSStaleVersion}
		}
	}
	if err := s.rename(opts.NoReplace); err != nil {
		return "", err
	}
	os.Remove(s.Name())
	if parent, err := os.Open(filepath.Dir(s.at)); err == nil {
		parent.Sync()
		parent.Close()
	}
	var st unix.Stat_t
	err := unix.Fstat(int(s.Fd()), &st)
	return token(&st), err
}

func (s *stage) rename(noReplace bool) error {
	if noReplace {
		err := os.Link(s.Name(), s.at)
		if errors.Is(err, fs.ErrExist) {
			return &fault.Error{Code: fault.FSNotObserved}
		}
		return err
	}
	err := os.Rename(s.Name(), s.at)
	if errors.Is(err, syscall.EISDIR) || errors.Is(err, fs.ErrExist) {
		return &fault.Error{Code: fault.FSNotRegularFile}
	}
	return err
}

// Discard removes what is left, once.
func (s *stage) Discard() error {
	if s.closed {
		return nil
	}
	s.closed = true
	s.Close()
	os.Remove(s.Name())
	return os.Remove(s.dir)
}
