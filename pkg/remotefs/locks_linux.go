package remotefs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// tryRange takes the lock of one byte if it is free. It belongs to the open
// file description, so two of one process exclude each other as well.
func tryRange(f *os.File, offset int64) (bool, error) {
	err := lockRange(f, unix.F_OFD_SETLK, offset)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return false, nil
	}
	return err == nil, err
}

// waitRange blocks until the lock is there.
func waitRange(f *os.File, offset int64) error { return lockRange(f, unix.F_OFD_SETLKW, offset) }

func lockRange(f *os.File, cmd int, offset int64) error {
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: 0, Start: offset, Len: 1}
	for {
		err := unix.FcntlFlock(f.Fd(), cmd, &lock)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
