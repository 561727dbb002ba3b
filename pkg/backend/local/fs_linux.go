package local

import (
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// beginFlush asks the disk to begin with a range of the file, without waiting.
func beginFlush(f *os.File, offset, n int64) {
	_ = unix.SyncFileRange(int(f.Fd()), offset, n, unix.SYNC_FILE_RANGE_WRITE)
}

// renameNoReplace moves a file only where nothing has the name.
func renameNoReplace(from, to string) error {
	return unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
}

// carryOver gives f the owner, the access list and the extended attributes of
// the file at path, as far as the world lets us. Capabilities and signatures are
// left: they were given to the content that is replaced.
func carryOver(path string, f *os.File) {
	var old, now syscall.Stat_t
	fd := int(f.Fd())
	if syscall.Lstat(path, &old) != nil || old.Mode&syscall.S_IFMT != syscall.S_IFREG || syscall.Fstat(fd, &now) != nil {
		return
	}
	if old.Uid != now.Uid || old.Gid != now.Gid {
		if syscall.Fchown(fd, int(old.Uid), int(old.Gid)) != nil {
			_ = syscall.Fchown(fd, -1, int(old.Gid))
		}
	}
	for _, name := range attributes(path) {
		if strings.HasPrefix(name, "security.") && name != "security.selinux" {
			continue
		}
		if value, ok := attribute(path, name); ok {
			_ = unix.Fsetxattr(fd, name, value, 0)
		}
	}
}

// attributes lists the names of a file's extended attributes.
func attributes(path string) []string {
	n, err := unix.Llistxattr(path, nil)
	if err != nil || n == 0 {
		return nil
	}
	buf := make([]byte, n)
	if n, err = unix.Llistxattr(path, buf); err != nil {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(buf[:n]), "\x00"), "\x00")
}

func attribute(path, name string) ([]byte, bool) {
	n, err := unix.Lgetxattr(path, name, nil)
	if err != nil {
		return nil, false
	}
	buf := make([]byte, n)
	if n, err = unix.Lgetxattr(path, name, buf); err != nil {
		return nil, false
	}
	return buf[:n], true
}
