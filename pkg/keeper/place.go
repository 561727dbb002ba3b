// Package keeper is the process that outlives commands (design.md 5): it holds
// the connection of a world, so that a command costs its own round trips and no
// handshake, and it owns the terminals and jobs that go on when the command that
// started them has ended (plugins.md 38 b).
//
// There is one keeper for a user, a state directory, a build of this program and
// a world. It speaks the provider protocol on a socket that only this user can
// reach. Apart from what it holds it is an optimisation: a command that finds it
// missing, old, stuck or full opens the world itself.
package keeper

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/provider"
)

// Place is where the keepers of one user and state directory are found.
type Place struct {
	// Runtime is the directory of their sockets, 0700.
	Runtime string
	// State is the directory of locks, keys and logs.
	State string
	// Build tells builds of this program apart: two of them never share a keeper.
	Build string
}

// NewPlace describes the keepers of a program, which is the file that would be
// started. It makes nothing.
func NewPlace(runtime, state, program string) (Place, error) {
	if runtime == "" || state == "" {
		return Place{}, fault.New(fault.FSIOError, "keeper", "", "there is no directory for the keeper's socket").
			WithHint("set HOME, or XDG_RUNTIME_DIR and AFIELD_STATE_DIR")
	}
	st, err := os.Stat(program)
	if err != nil {
		return Place{}, fault.Wrap(err, fault.FSIOError, "keeper", program, "cannot look at this program: %s", err)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %d", st.Size(), st.ModTime().UnixNano()))
	return Place{Runtime: runtime, State: state, Build: hex.EncodeToString(sum[:4])}, nil
}

// socketBytes is the longest path of a socket on every platform.
const socketBytes = 103

// socket is the path of a keeper's socket: protocol and build are in its name.
func (p Place) socket(id string) (string, error) {
	path := filepath.Join(p.Runtime, fmt.Sprintf("k-%d-%s-%s.sock", provider.Protocol, p.Build, id))
	if len(path) > socketBytes {
		return "", fault.New(fault.FSIOError, "keeper", path, "the path of the keeper's socket has %d bytes, the limit is %d", len(path), socketBytes).
			WithHint("set XDG_RUNTIME_DIR to a short path")
	}
	return path, nil
}

// lockPath is the file that the keeper of a socket keeps locked while it lives.
func lockPath(socket string) string { return strings.TrimSuffix(socket, ".sock") + ".lock" }

// logPath is the keeper's log.
func (p Place) logPath(id string) string { return filepath.Join(p.State, "log", "keeper-"+id+".log") }

// make makes the directory of sockets and checks that it is ours alone.
func (p Place) make() error {
	if err := os.MkdirAll(p.Runtime, 0o700); err != nil {
		return fault.Wrap(err, fault.FSIOError, "keeper", p.Runtime, "cannot make the directory of the keeper's socket: %s", err)
	}
	return p.check()
}

// check refuses a directory that others own or may enter.
func (p Place) check() error {
	st, err := os.Lstat(p.Runtime)
	if err != nil {
		return err
	}
	own, ok := st.Sys().(*syscall.Stat_t)
	if !st.IsDir() || st.Mode().Perm()&0o077 != 0 || ok && int(own.Uid) != os.Geteuid() {
		return fault.New(fault.FSPermissionDenied, "keeper", p.Runtime, "the directory %q of the keeper's socket is not this user's alone", p.Runtime).
			WithHint("it must be a directory of yours with mode 0700")
	}
	return nil
}

// errHeld says that a lock is held by a live keeper.
var errHeld = errors.New("a keeper holds the lock")

// lock takes the lock of a socket: errHeld while a keeper lives. The file is
// removed only by its holder, so a lock that was taken on a removed one is taken
// again.
func lock(socket string) (*os.File, error) {
	path := lockPath(socket)
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, err
		}
		switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
		case errors.Is(err, syscall.EWOULDBLOCK):
			f.Close()
			return nil, errHeld
		case err != nil:
			f.Close()
			return nil, err
		}
		if still(f, path) {
			return f, nil
		}
		f.Close()
	}
}

// still reports whether path names the open file f.
func still(f *os.File, path string) bool {
	a, errA := f.Stat()
	b, errB := os.Lstat(path)
	return errA == nil && errB == nil && os.SameFile(a, b)
}

// sockets gives the paths of all sockets of keepers, whatever their build.
func (p Place) sockets() ([]string, error) {
	if err := p.check(); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return filepath.Glob(filepath.Join(p.Runtime, fmt.Sprintf("k-%d-*.sock", provider.Protocol)))
}
