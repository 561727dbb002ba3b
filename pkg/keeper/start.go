package keeper

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/afield-dev/afield/pkg/fault"
)

// Start starts a keeper for a setup that has been identified, unless one lives,
// and does not wait for it: its socket accepts callers from now on. Of many
// callers at once exactly one starts it.
//
// The keeper is detached: a session of its own, the directory /, no descriptor
// of ours but the lock and the socket, its outputs to its log.
func (p Place) Start(program string, environ []string, s Setup) (started bool, err error) {
	if err := p.make(); err != nil {
		return false, err
	}
	held, err := lock(s.Socket)
	if errors.Is(err, errHeld) {
		return false, nil
	}
	if err != nil {
		return false, fault.Wrap(err, fault.FSIOError, "keeper", s.Socket, "cannot lock the keeper's place: %s", err)
	}
	defer held.Close()
	if err := launch(program, environ, s, held); err != nil {
		os.Remove(s.Socket)
		os.Remove(lockPath(s.Socket))
		return false, fault.Wrap(err, fault.FSIOError, "keeper", s.Socket, "cannot start the keeper: %s", err)
	}
	return true, nil
}

// The descriptors that a keeper is given beside its standard ones.
const (
	lockDescriptor   = 3
	listenDescriptor = 4
)

// launch makes the socket and starts the program that serves it. Callers may
// connect before the program runs.
func launch(program string, environ []string, s Setup, held *os.File) error {
	socket, err := listen(s.Socket)
	if err != nil {
		return err
	}
	defer socket.Close()
	setup, err := s.encode()
	if err != nil {
		return err
	}
	in, out, err := os.Pipe()
	if err != nil {
		return err
	}
	defer in.Close()
	defer out.Close()
	log := openLog(s.Log)
	defer log.Close()
	keepDescriptors()
	c := exec.Cmd{
		Path: program, Args: []string{"afield", "serve", "--keep"}, Env: environ, Dir: "/",
		Stdin: in, Stdout: log, Stderr: log, ExtraFiles: []*os.File{held, socket},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := c.Start(); err != nil {
		return err
	}
	in.Close()
	_, err = out.Write(setup)
	c.Process.Release()
	return err
}

// listen makes the socket with mode 0600. The directory is ours alone, so nobody
// connects before the mode is set. The caller holds the lock: what stands there
// is of a keeper that has ended.
func listen(path string) (*os.File, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	defer l.Close()
	l.SetUnlinkOnClose(false)
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, err
	}
	return l.File()
}

// openLog opens the log for a keeper that starts; one that cannot be written is
// done without.
func openLog(path string) *os.File {
	os.MkdirAll(filepath.Dir(path), 0o700)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		f, _ = os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	}
	return f
}
