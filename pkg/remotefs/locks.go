package remotefs

import (
	"context"
	"errors"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
)

// NewLocks makes the Locker of a world: one that holds between all processes of
// this host that share stateDir, which is made on demand (S-17). identity names
// the world. With an empty stateDir it holds in this process alone.
//
// One file carries all locks: a key's is the lock of one byte at an offset that
// is a hash of identity and key, so nothing is left to clean up.
func NewLocks(stateDir, identity string) Locker {
	if stateDir == "" {
		return &queues{}
	}
	return &fileLocks{path: filepath.Join(stateDir, "fs.lock"), identity: identity}
}

// fileLocks is a Locker over ranges of one file. Inside the process a queue
// keeps the order, so that one goroutine at a time waits for the file.
type fileLocks struct {
	path     string
	identity string
	local    queues
}

func (l *fileLocks) Lock(ctx context.Context, key string) (func(), error) {
	leave, err := l.local.Lock(ctx, key)
	if err != nil {
		return nil, err
	}
	f, err := l.open()
	if err == nil {
		err = l.wait(ctx, f, l.offset(key))
	}
	if err != nil {
		leave()
		return nil, err
	}
	return func() {
		f.Close() // ends the lock
		leave()
	}, nil
}

// open gives a description of its own, which is what such a lock belongs to.
func (l *fileLocks) open() (*os.File, error) {
	f, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, os.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(l.path), 0o700); err != nil {
			return nil, &NoLockError{Err: err}
		}
		f, err = os.OpenFile(l.path, os.O_RDWR|os.O_CREATE, 0o600)
	}
	if err != nil {
		return nil, &NoLockError{Err: err}
	}
	return f, nil
}

// offset is the place of a key's lock.
func (l *fileLocks) offset(key string) int64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, l.identity)
	_, _ = h.Write([]byte{0})
	_, _ = io.WriteString(h, key)
	return int64(h.Sum64() >> 2)
}

// wait takes the lock. It closes f if that fails. A lock that comes after ctx
// has ended is given back at once.
func (l *fileLocks) wait(ctx context.Context, f *os.File, offset int64) error {
	taken, err := tryRange(f, offset)
	if taken || err != nil {
		return closeOn(f, err)
	}
	done := make(chan error, 1)
	go func() { done <- waitRange(f, offset) }()
	select {
	case err := <-done:
		return closeOn(f, err)
	case <-ctx.Done():
		go func() {
			<-done
			f.Close()
		}()
		return ctx.Err()
	}
}

func closeOn(f *os.File, err error) error {
	if err == nil {
		return nil
	}
	f.Close()
	return &NoLockError{Err: err}
}
