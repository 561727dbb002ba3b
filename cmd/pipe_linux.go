package cmd

import (
	"os"

	"golang.org/x/sys/unix"
)

// pipeSize is what an unprivileged process may ask for by default.
const pipeSize = 1 << 20

// enlargePipe makes the pipe behind stream larger, if it is one: a third more
// bytes a second. It may fail and nothing depends on it.
func enlargePipe(stream any) {
	if f, ok := stream.(*os.File); ok {
		unix.FcntlInt(f.Fd(), unix.F_SETPIPE_SZ, pipeSize)
	}
}
