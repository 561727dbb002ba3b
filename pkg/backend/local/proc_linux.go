package local

import (
	"context"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
)

// proc is a started program.
type proc struct {
	tree                  *tree
	exit                  *exit
	stdin, stdout, stderr *os.File
}

// PID implements remoteexec.Proc.
func (p *proc) PID() int { return p.tree.root.pid }

// Stdin implements remoteexec.Proc.
func (p *proc) Stdin() io.WriteCloser {
	if p.stdin == nil {
		return nil
	}
	return p.stdin
}

// Stdout implements remoteexec.Proc.
func (p *proc) Stdout() io.ReadCloser { return readEnd(p.stdout) }

// Stderr implements remoteexec.Proc.
func (p *proc) Stderr() io.ReadCloser { return readEnd(p.stderr) }

func readEnd(f *os.File) io.ReadCloser {
	if f == nil {
		return nil
	}
	return f
}

// Wait implements remoteexec.Proc.
func (p *proc) Wait() (remoteexec.Outcome, error) { return p.exit.wait() }

// Signal implements remoteexec.Proc.
func (p *proc) Signal(ctx context.Context, name string) error {
	var err error
	if name == "SIGKILL" {
		err = p.tree.kill(ctx)
	} else {
		err = p.tree.signal(unix.SignalNum(name))
	}
	if err != nil {
		return fault.Wrap(err, fault.ExecSignalNotDelivered, "signal", "", "send %s to the tree of %d: %v", name, p.PID(), err)
	}
	return nil
}

// Members implements remoteexec.Proc.
func (p *proc) Members(context.Context) ([]int, error) { return pids(p.tree.members()), nil }

// HardKill implements remoteexec.HardKiller.
func (p *proc) HardKill() { p.tree.freezeAndKill() }

// Release implements remoteexec.Proc.
func (p *proc) Release() {
	p.exit.close()
	p.tree.release()
}
