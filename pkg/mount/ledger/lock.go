package ledger

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// ErrBusy: another process holds the session for longer than the caller waits.
var ErrBusy = errors.New("the session is in use by another process")

// lock is an advisory lock that the kernel releases when the process ends.
type lock struct{ f *flock.Flock }

// lockSession locks a session's folder, exclusively or shared with other
// readers, and waits at most so long. An exclusive lock makes the folder.
func lockSession(ctx context.Context, dir string, exclusive bool, wait time.Duration) (*lock, error) {
	if exclusive {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	return acquire(ctx, filepath.Join(dir, "lock"), exclusive, wait)
}

// acquire locks the file at path. A file that was removed while we waited is no
// lock: the one that took its place counts.
func acquire(ctx context.Context, path string, exclusive bool, wait time.Duration) (*lock, error) {
	deadline := time.Now().Add(wait)
	for {
		flags := os.O_RDONLY
		if exclusive {
			flags = os.O_CREATE | os.O_RDWR
		}
		f := flock.New(path, flock.SetFlag(flags), flock.SetPermissions(0o600))
		if err := hold(ctx, f, exclusive, time.Until(deadline)); err != nil {
			return nil, err
		}
		if current(f, path) {
			return &lock{f}, nil
		}
		f.Close()
		if exclusive {
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				return nil, err
			}
		}
	}
}

// hold waits in the kernel's queue, which keeps the order of arrival, and gives
// up after wait or when ctx ends. A lock that comes too late is released.
func hold(ctx context.Context, f *flock.Flock, exclusive bool, wait time.Duration) error {
	try, block := f.TryRLock, f.RLock
	if exclusive {
		try, block = f.TryLock, f.Lock
	}
	if ok, err := try(); ok || err != nil {
		return err
	}
	got := make(chan error, 1)
	go func() { got <- block() }()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	var err error
	select {
	case err := <-got:
		return err
	case <-timer.C:
		err = ErrBusy
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	go func() { <-got; f.Close() }()
	return err
}

// current reports whether the file at path is the one that is locked.
func current(f *flock.Flock, path string) bool {
	at, err := os.Stat(path)
	if err != nil {
		return false
	}
	held, err := f.Stat()
	return err == nil && os.SameFile(at, held)
}

func (l *lock) release() { l.f.Close() }

// LockFile locks the file at path, which it makes, and waits at most so long.
func LockFile(ctx context.Context, path string, wait time.Duration) (unlock func(), err error) {
	l, err := acquire(ctx, path, true, wait)
	if err != nil {
		return nil, err
	}
	return l.release, nil
}
