package local

import (
	"context"
	"errors"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
)

// StartTerminal implements remoteexec.Driver: the program leads a new session
// whose controlling terminal is new and has its size from the first instant
// (TT-3).
func (d *execDriver) StartTerminal(_ context.Context, spec remoteexec.TerminalSpec) (remoteexec.TerminalProc, error) {
	l, err := d.prepare(spec.Argv, spec.Cwd, spec.Env.Set, spec.Env.Remove)
	if err != nil {
		return nil, err
	}
	master, slave, err := openPTY(spec.Rows, spec.Cols)
	if err != nil {
		return nil, fault.Wrap(err, fault.ExecSpawnFailed, "terminal", spec.Argv[0], "open a terminal: %v", err)
	}
	defer slave.Close()
	device, err := deviceOf(slave.Name())
	if err != nil {
		master.Close()
		return nil, fault.Wrap(err, fault.ExecSpawnFailed, "terminal", spec.Argv[0], "open a terminal: %v", err)
	}
	fd := slave.Fd()
	pid, pidfd, err := l.run([]uintptr{fd, fd, fd}, true)
	if err != nil {
		master.Close()
		return nil, err
	}
	return &term{master: master, device: device, tree: newTree(pid), exit: newExit(pid, pidfd)}, nil
}

func openPTY(rows, cols int) (master, slave *os.File, err error) {
	master, slave, err = pty.Open()
	if err != nil {
		return nil, nil, err
	}
	if err := setSize(master, rows, cols); err != nil {
		master.Close()
		slave.Close()
		return nil, nil, err
	}
	return master, slave, nil
}

func setSize(master *os.File, rows, cols int) error {
	return pty.Setsize(master, &pty.Winsize{Rows: uint16(rows), Cols: uint16(cols)})
}

// term is a program on a terminal.
type term struct {
	master   *os.File
	device   device
	tree     *tree
	exit     *exit
	draining atomic.Bool
}

// PID implements remoteexec.TerminalProc.
func (t *term) PID() int { return t.tree.root.pid }

// Wait implements remoteexec.TerminalProc.
func (t *term) Wait() (remoteexec.Outcome, error) { return t.exit.wait() }

// Read implements remoteexec.TerminalProc. A terminal that nobody holds open any
// more reads EIO, which is its end (TT-10).
func (t *term) Read(p []byte) (int, error) {
	n, err := t.master.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) && t.draining.Load() {
		n, err = t.readQueued(p)
	}
	if errors.Is(err, unix.EIO) || errors.Is(err, os.ErrClosed) {
		err = io.EOF
	}
	return n, err
}

// readQueued reads what is there, without waiting.
func (t *term) readQueued(p []byte) (int, error) {
	raw, err := t.master.SyscallConn()
	if err != nil {
		return 0, err
	}
	n := 0
	var readErr error
	if err := raw.Control(func(fd uintptr) { n, readErr = unix.Read(int(fd), p) }); err != nil {
		return 0, err
	}
	if readErr != nil || n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// EndOutput implements remoteexec.TerminalProc.
func (t *term) EndOutput() {
	t.draining.Store(true)
	t.master.SetReadDeadline(time.Unix(1, 0))
}

// Write implements remoteexec.TerminalProc.
func (t *term) Write(ctx context.Context, p []byte) (int, error) {
	stop := context.AfterFunc(ctx, func() { t.master.SetWriteDeadline(time.Unix(1, 0)) })
	defer stop()
	n, err := t.master.Write(p)
	if err != nil {
		err = fault.Wrap(err, fault.ExecSpawnFailed, "write", "", "write to the terminal: %v", err)
	}
	return n, err
}

// Resize implements remoteexec.TerminalProc.
func (t *term) Resize(_ context.Context, rows, cols int) error {
	if err := setSize(t.master, rows, cols); err != nil {
		return fault.Wrap(err, fault.ExecSpawnFailed, "resize", "", "resize the terminal: %v", err)
	}
	return nil
}

// Foreground implements remoteexec.TerminalProc.
func (t *term) Foreground(context.Context) (*remoteexec.Foreground, error) {
	s, ok := statOf(t.tree.root.pid)
	if !ok || s.ident() != t.tree.root || s.tpgid <= 1 {
		return nil, nil
	}
	return &remoteexec.Foreground{ProcessGroupID: s.tpgid, InputWaiting: t.inputWaiting(s.tpgid)}, nil
}

// inputWaiting says that a member of the group is proven to wait for input of
// this terminal.
func (t *term) inputWaiting(group int) bool {
	calls, ok := waitCallsOf(goarch)
	if !ok {
		return false
	}
	e := evidence{root: "/proc", calls: calls, terminal: t.device}
	for _, s := range t.tree.members() {
		if s.pgrp == group && e.waits(s.pid) {
			return true
		}
	}
	return false
}

// SignalGroup implements remoteexec.TerminalProc.
func (t *term) SignalGroup(_ context.Context, group int, name string) error {
	err := error(unix.ESRCH)
	if session, gone := unix.Getsid(group); gone != nil || session == t.tree.root.pid {
		err = unix.Kill(-group, unix.SignalNum(name))
	}
	if err != nil {
		return fault.Wrap(err, fault.ExecSignalNotDelivered, "signal", "", "send %s to process group %d: %v", name, group, err)
	}
	return nil
}

// HardKill implements remoteexec.HardKiller.
func (t *term) HardKill() { t.tree.freezeAndKill() }

// Close implements remoteexec.TerminalProc.
func (t *term) Close() error { return t.master.Close() }
