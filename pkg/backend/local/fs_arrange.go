package local

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

var _ remotefs.Arranger = (*Driver)(nil)

// Mkdir makes a directory, with parents the missing ones above it, too.
func (d *Driver) Mkdir(_ context.Context, path string, mode int, parents bool) (bool, error) {
	made := true
	var err error
	if parents {
		st, look := os.Stat(path)
		made = look != nil
		if err = os.MkdirAll(path, 0o777); err != nil && !made && !st.IsDir() {
			err = syscall.EEXIST
		}
	} else {
		err = os.Mkdir(path, 0o777)
	}
	if err == nil && made && mode >= 0 {
		err = syscall.Chmod(path, uint32(mode))
	}
	return made && err == nil, err
}

// Remove removes an entry, or a directory with everything in it.
func (d *Driver) Remove(_ context.Context, path string, recursive bool) error {
	if !recursive {
		st, err := os.Lstat(path)
		if err == nil && st.IsDir() {
			return syscall.EISDIR
		}
		return os.Remove(path)
	}
	if err := guardHome(path); err != nil {
		return err
	}
	return os.RemoveAll(path)
}

// guardHome refuses the root, the home directories of the user that the account
// and the environment name, and what holds them.
func guardHome(path string) error {
	homes := []string{"/"}
	if h, err := os.UserHomeDir(); err == nil {
		homes = append(homes, h)
	}
	if u, err := user.Current(); err == nil {
		homes = append(homes, u.HomeDir)
	}
	for _, home := range homes {
		if physical, err := canon(home); err == nil && remotefs.PathContains(path, physical) {
			return &fault.Error{Code: fault.FSPermissionDenied, Op: "remove", Path: path,
				Message: "cannot remove \"" + path + "\": it is or holds the root or home directory",
				Hint:    "name what is inside it"}
		}
	}
	return nil
}

// Move renames in one step.
func (d *Driver) Move(_ context.Context, from, to string, noReplace bool) error {
	if noReplace {
		return retry(func() error { return renameNoReplace(from, to) })
	}
	err := retry(func() error { return syscall.Rename(from, to) })
	return inTheWay(err, to)
}

// inTheWay tells a directory that has the name from other failures.
func inTheWay(err error, to string) error {
	if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.EEXIST) || errors.Is(err, syscall.ENOTEMPTY) {
		if st, look := os.Lstat(to); look == nil {
			if st.IsDir() {
				return syscall.ENOTEMPTY
			}
			return syscall.EEXIST
		}
	}
	return err
}

// Copy stages a copy beside the target and publishes it in one step.
func (d *Driver) Copy(ctx context.Context, from, to string, noReplace bool) error {
	stage := filepath.Join(filepath.Dir(to), d.stageName())
	if err := os.Mkdir(stage, 0o700); err != nil {
		return err
	}
	defer os.RemoveAll(stage)
	staged := filepath.Join(stage, "content")
	dir, err := copyAny(ctx, from, staged)
	if err != nil {
		return err
	}
	if dir {
		defer os.Chmod(staged, 0o700) // in vain once it is published
	}
	return d.Move(ctx, staged, to, noReplace || dir)
}

// copyAny copies what is at from, whatever it is, and says whether it is a
// directory.
func copyAny(ctx context.Context, from, to string) (dir bool, err error) {
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	st, err := os.Lstat(from)
	if err != nil {
		return false, err
	}
	switch {
	case st.Mode()&fs.ModeSymlink != 0:
		text, err := os.Readlink(from)
		if err != nil {
			return false, err
		}
		if err := os.Symlink(text, to); err != nil {
			return false, err
		}
		return false, setTimes(to, st.ModTime())
	case st.IsDir():
		return true, copyDir(ctx, from, to, st)
	case st.Mode().IsRegular():
		return false, copyFile(ctx, from, to, st)
	}
	return false, &fault.Error{Code: fault.FSNotRegularFile, Op: "copy", Path: from}
}

func copyDir(ctx context.Context, from, to string, st fs.FileInfo) error {
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if isStage(e.Name()) {
			continue
		}
		if _, err := copyAny(ctx, filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return finish(to, st)
}

func copyFile(ctx context.Context, from, to string, st fs.FileInfo) error {
	in, err := os.OpenFile(from, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	for err == nil && ctx.Err() == nil {
		_, err = io.CopyN(out, in, 64<<20)
	}
	if errors.Is(err, io.EOF) {
		err = ctx.Err()
	}
	if err == nil {
		err = errors.Join(ctx.Err(), out.Sync())
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	return finish(to, st)
}

// finish sets mode and times of a copy.
func finish(path string, st fs.FileInfo) error {
	raw, ok := st.Sys().(*syscall.Stat_t)
	mode := uint32(st.Mode().Perm())
	if ok {
		mode = uint32(raw.Mode & 0o7777)
	}
	if err := syscall.Chmod(path, mode); err != nil {
		return err
	}
	return setTimes(path, st.ModTime())
}

// setTimes sets the times of the entry itself.
func setTimes(path string, at time.Time) error {
	ts := unix.NsecToTimespec(at.UnixNano())
	return unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW)
}

// Chmod sets permission bits.
func (d *Driver) Chmod(ctx context.Context, path string, mode int, recursive bool) error {
	if !recursive {
		return syscall.Chmod(path, uint32(mode))
	}
	return filepath.WalkDir(path, func(p string, e fs.DirEntry, err error) error {
		if err == nil && ctx.Err() == nil && e.Type()&fs.ModeSymlink == 0 {
			err = syscall.Chmod(p, uint32(mode))
		}
		return errors.Join(err, ctx.Err())
	})
}

// Link makes a symbolic link.
func (d *Driver) Link(_ context.Context, text, path string) error { return os.Symlink(text, path) }

// Touch sets the time of modification, or makes an empty file.
func (d *Driver) Touch(_ context.Context, path string, at time.Time, exist bool) (bool, error) {
	made := false
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if exist {
			return false, err
		}
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|syscall.O_NONBLOCK, 0o666)
		if err != nil {
			return false, err
		}
		made = true
		f.Close()
	}
	if at.IsZero() {
		return made, unix.UtimesNanoAt(unix.AT_FDCWD, path, nil, 0)
	}
	return made, os.Chtimes(path, at, at)
}
