package external

import (
	"errors"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownGroup starts a program in a process group of its own. When we die it is
// asked to end; its guard sees to the rest.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}

// enlarge lets a pipe hold more than one frame of content. A limit of the system
// leaves it as it is.
func enlarge(pipe *os.File) {
	if raw, err := pipe.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) { unix.FcntlInt(fd, unix.F_SETPIPE_SZ, 1<<20) })
	}
}

// awaitExit waits until a program has ended, and leaves it to be reaped.
func awaitExit(cmd *exec.Cmd) {
	var info unix.Siginfo
	for errors.Is(unix.Waitid(unix.P_PID, cmd.Process.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
}
