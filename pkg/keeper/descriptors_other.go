//go:build !linux

package keeper

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// keepDescriptors keeps descriptors that this process has inherited from
// reaching the keeper: a pipe of a CI step would stay open with it.
func keepDescriptors() {
	list, _ := os.ReadDir("/dev/fd")
	for _, e := range list {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}

// become makes one descriptor a copy of another.
func become(old, new int) error { return unix.Dup2(old, new) }
