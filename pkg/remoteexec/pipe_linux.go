package remoteexec

import (
	"os"

	"golang.org/x/sys/unix"
)

// defaultPipe is the size of a pipe that nobody enlarged; fullPipe is what an
// unprivileged process may ask for everywhere.
const (
	defaultPipe = 64 << 10
	fullPipe    = 1 << 20
)

// growOnce gives a function that enlarges a pipe when a transfer has filled it
// once. What is no pipe stays as it is.
func growOnce(stream any) func(n int) {
	f, ok := stream.(*os.File)
	return func(n int) {
		if ok && n >= defaultPipe {
			ok = false
			growPipe(f)
		}
	}
}

func growPipe(f *os.File) {
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	raw.Control(func(fd uintptr) {
		if size, err := unix.FcntlInt(fd, unix.F_GETPIPE_SZ, 0); err == nil && size < fullPipe {
			unix.FcntlInt(fd, unix.F_SETPIPE_SZ, fullPipe)
		}
	})
}
