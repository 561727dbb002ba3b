//go:build !linux

package external

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup starts a program in a process group of its own.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// enlarge: pipes are as large as they are.
func enlarge(*os.File) {}

// awaitExit waits until a program has ended. Here that reaps it; the guard keeps
// the id of its group from being given to another.
func awaitExit(cmd *exec.Cmd) { cmd.Process.Wait() }
