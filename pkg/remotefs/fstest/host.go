package fstest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Host is the world of this machine, as the user of this process.
type Host struct{}

// Mkdir makes a directory and its missing parents.
func (Host) Mkdir(path string) error { return os.MkdirAll(path, 0o755) }

// Write stores content through the open file.
func (h Host) Write(path string, content []byte) error {
	if err := h.Mkdir(filepath.Dir(path)); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}

// Read gives the content.
func (Host) Read(path string) ([]byte, error) { return os.ReadFile(path) }

// Append adds content.
func (Host) Append(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

// Truncate cuts a file.
func (Host) Truncate(path string, size int64) error { return os.Truncate(path, size) }

// Symlink makes a link.
func (Host) Symlink(to, path string) error { return os.Symlink(to, path) }

// Link makes a second name.
func (Host) Link(old, path string) error { return os.Link(old, path) }

// Fifo makes a FIFO.
func (Host) Fifo(path string) error { return syscall.Mkfifo(path, 0o644) }

// Socket makes a socket that nobody listens on. It is bound under a short name,
// since the name of a socket is bounded.
func (Host) Socket(path string) error {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	dir, err := os.MkdirTemp("", "s")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	short := filepath.Join(dir, "s")
	if err := os.Symlink(filepath.Dir(path), short); err != nil {
		return err
	}
	return syscall.Bind(fd, &syscall.SockaddrUnix{Name: filepath.Join(short, filepath.Base(path))})
}

// Chmod sets all twelve bits.
func (Host) Chmod(path string, mode int) error { return syscall.Chmod(path, uint32(mode)) }

// Mtime gives the time of the content.
func (Host) Mtime(path string) (time.Time, error) {
	st, err := os.Stat(path)
	if err != nil {
		return time.Time{}, err
	}
	return st.ModTime(), nil
}

// SetMtime sets it.
func (Host) SetMtime(path string, t time.Time) error { return os.Chtimes(path, time.Time{}, t) }

// Rename renames.
func (Host) Rename(from, to string) error { return os.Rename(from, to) }

// Remove removes everything, also below directories that nobody may enter.
func (Host) Remove(path string) error {
	_ = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && err != nil {
			_ = os.Chmod(p, 0o700)
		}
		return nil
	})
	_ = filepath.WalkDir(path, func(p string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(p, 0o700)
		}
		return nil
	})
	return os.RemoveAll(path)
}

// Lstat looks at an entry.
func (Host) Lstat(path string) (*Entry, error) {
	var st syscall.Stat_t
	err := syscall.Lstat(path, &st)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return nil, nil
	case err != nil:
		return nil, err
	}
	mode := uint32(st.Mode)
	return &Entry{Kind: kindOf(mode), Mode: int(mode & 0o7777), Size: st.Size, Inode: uint64(st.Ino)}, nil
}

// Tree lists what is below dir; what may not be entered is left out.
func (Host) Tree(dir string) ([]string, error) {
	var all []string
	err := filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if rel, _ := filepath.Rel(dir, p); rel != "." {
			all = append(all, rel)
		}
		if errors.Is(err, fs.ErrPermission) {
			return nil
		}
		return err
	})
	return all, err
}

// Fill makes n files.
func (Host) Fill(dir string, n int) error {
	for i := range n {
		f, err := os.Create(filepath.Join(dir, strconv.Itoa(i)))
		if err != nil {
			return err
		}
		f.Close()
	}
	return nil
}

// Umask reads the mask of this process without changing it.
func (Host) Umask() (int, error) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "Umask:"); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(v), 8, 32)
			return int(n), err
		}
	}
	return 0, fmt.Errorf("no Umask in /proc/self/status")
}
