package external

import (
	"io"
	"os/exec"
	"syscall"
)

// guardScript waits until its input ends, which is when we die, gives the
// provider its time, and then ends the group that it is a member of.
const guardScript = `trap "" TERM HUP INT; read x; sleep 2; kill -s TERM 0; sleep 2; kill -s KILL 0`

// guard is a small program in the provider's process group, so that nothing of
// the group outlives us, however we end (plugins.md 28, case 108).
type guard struct {
	cmd   *exec.Cmd
	input io.Closer
}

// startGuard begins to guard a group. Without a shell there is none: what a
// provider leaves behind is then its own business.
func startGuard(group int) *guard {
	g := &guard{cmd: exec.Command("/bin/sh", "-c", guardScript)}
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: group}
	input, err := g.cmd.StdinPipe()
	if err != nil || g.cmd.Start() != nil {
		return nil
	}
	g.input = input
	return g
}

// stop ends the guard alone: its group has been ended.
func (g *guard) stop() {
	if g == nil {
		return
	}
	g.cmd.Process.Kill()
	g.cmd.Wait()
	g.input.Close()
}
