//go:build !linux

package local

import (
	"errors"
	"os"
	"syscall"
)

// beginFlush does nothing here; the final flush does all.
func beginFlush(*os.File, int64, int64) {}

// renameNoReplace cannot be had here, so a file system without hard links
// refuses a guarded creation.
func renameNoReplace(string, string) error { return errors.ErrUnsupported }

// carryOver gives f the owner of the file at path, as far as the world lets us.
func carryOver(path string, f *os.File) {
	var old syscall.Stat_t
	if syscall.Lstat(path, &old) != nil || old.Mode&syscall.S_IFMT != syscall.S_IFREG {
		return
	}
	if f.Chown(int(old.Uid), int(old.Gid)) != nil {
		_ = f.Chown(-1, int(old.Gid))
	}
}
