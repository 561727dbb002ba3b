package transfer

import (
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// setLinkTime sets the time of a link itself, reached below the root.
func setLinkTime(root *os.Root, name string, ns int64) error {
	dir, err := root.Open(path.Dir(name))
	if err != nil {
		return err
	}
	defer dir.Close()
	ts := unix.NsecToTimespec(ns)
	return unix.UtimesNanoAt(int(dir.Fd()), path.Base(name), []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW)
}
