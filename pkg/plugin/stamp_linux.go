package plugin

import (
	"os"
	"syscall"
)

// stampOf gives size, mode, inode, modification and change time of a file.
func stampOf(path string) ([5]int64, bool) {
	info, err := os.Lstat(path)
	if err != nil {
		return [5]int64{}, false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return [5]int64{}, false
	}
	return [5]int64{st.Size, int64(st.Mode), int64(st.Ino), st.Mtim.Nano(), st.Ctim.Nano()}, true
}
