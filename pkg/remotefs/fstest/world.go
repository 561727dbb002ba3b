package fstest

import (
	"errors"
	"time"
)

// World makes and looks at what is in the world behind a backend, by another
// way than the contract. Paths are absolute. Host is the world of this machine,
// Shell one where a POSIX shell with GNU or busybox tools can be run.
type World interface {
	// Mkdir makes a directory and its missing parents.
	Mkdir(path string) error
	// Write stores content in path through its open file, made with its missing
	// parents if it is not there.
	Write(path string, content []byte) error
	Read(path string) ([]byte, error)
	Append(path string, content []byte) error
	Truncate(path string, size int64) error
	Symlink(to, path string) error
	Link(old, path string) error
	Fifo(path string) error
	// Socket makes a socket, or says errors.ErrUnsupported.
	Socket(path string) error
	Chmod(path string, mode int) error
	// Mtime and SetMtime are the time of the content in nanoseconds.
	Mtime(path string) (time.Time, error)
	SetMtime(path string, t time.Time) error
	Rename(from, to string) error
	// Remove removes path and all below it, whatever its modes.
	Remove(path string) error
	// Lstat does not follow a link. Absent: nil.
	Lstat(path string) (*Entry, error)
	// Tree lists all paths below dir, relative to it, in any order.
	Tree(dir string) ([]string, error)
	// Fill makes n empty files with the names 0 to n-1 in dir.
	Fill(dir string, n int) error
	// Umask is that of a program in the world.
	Umask() (int, error)
}

// Mounter is a World where file systems can be mounted.
type Mounter interface {
	// MountSmall mounts a file system of about so many bytes on dir.
	MountSmall(dir string, size int64) error
	// MountReadOnly makes what is on dir read-only.
	MountReadOnly(dir string) error
	// Bind mounts the file at from on the file at to.
	Bind(from, to string) error
	Unmount(path string) error
}

// Entry is what Lstat tells.
type Entry struct {
	Kind  Kind
	Mode  int // & 07777
	Size  int64
	Inode uint64
}

// Kind is the type of an entry.
type Kind int

// The kinds.
const (
	Regular Kind = iota
	Directory
	Symlink
	Special
)

// kindOf gives the kind of a raw mode.
func kindOf(mode uint32) Kind {
	switch mode & 0o170000 {
	case 0o100000:
		return Regular
	case 0o040000:
		return Directory
	case 0o120000:
		return Symlink
	}
	return Special
}

// unsupported says that a world has no way to make something.
func unsupported(err error) bool { return errors.Is(err, errors.ErrUnsupported) }
