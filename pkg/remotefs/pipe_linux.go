package remotefs

import (
	"golang.org/x/sys/unix"
	"os"
)

// pipeSize is what an unprivileged process may ask for by default.
const pipeSize = 1 << 20

// enlargePipe makes the pipe behind v larger, if v is one. It may fail and
// nothing depends on it.
func enlargePipe(v any) {
	f, ok := v.(*os.File)
	if !ok {
		return
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) {
		_, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeSize)
	})
}
