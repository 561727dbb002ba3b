package external

import (
	"errors"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownGroup starts a program in a process group of its own. When we die it is
// asked to end; its guard sees to the rest.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}

// awaitExit waits until a program has ended, and leaves it to be reaped.
func awaitExit(cmd *exec.Cmd) {
	var info unix.Siginfo
	for errors.Is(unix.Waitid(unix.P_PID, cmd.Process.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
}
