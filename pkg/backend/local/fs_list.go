package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// List opens the directory itself, which refuses what is none without blocking
// on a FIFO. A link re-pointed after its resolution does not redirect it.
func (d *Driver) List(ctx context.Context, ref remotefs.Ref) (string, []remotefs.Entry, error) {
	key := ref.Path
	if !ref.Canonical {
		var err error
		if key, err = canon(key); err != nil {
			return "", nil, err
		}
	}
	dir, err := os.OpenFile(key, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if errors.Is(err, syscall.ENOTDIR) {
		err = notDirectory(key)
	}
	if err != nil {
		return "", nil, err
	}
	defer dir.Close()
	names, err := dir.ReadDir(-1)
	if err != nil && len(names) == 0 {
		return "", nil, err
	}
	call(d.hooks.beforeProbe)
	entries := make([]remotefs.Entry, 0, len(names))
	for _, n := range names {
		if ctx.Err() != nil {
			return "", nil, ctx.Err()
		}
		entries = append(entries, probe(key, n))
	}
	return key, entries, nil
}

// notDirectory tells a path that is no directory from one that leads through
// something that is none.
func notDirectory(key string) error {
	var st syscall.Stat_t
	if err := retry(func() error { return syscall.Stat(key, &st) }); err != nil {
		return err
	}
	return &fault.Error{Code: fault.FSNotDirectory, Err: syscall.ENOTDIR}
}

// probe says of an entry what a stat that follows links says. Content is never
// opened.
func probe(dir string, n fs.DirEntry) remotefs.Entry {
	path := filepath.Join(dir, n.Name())
	e := remotefs.Entry{Name: n.Name(), Key: path}
	var st syscall.Stat_t
	err := retry(func() error { return syscall.Stat(path, &st) })
	switch {
	case err == nil:
		e.Info = info(&st)
	case !isAbsent(err):
		e.Err = err
		return e
	}
	if n.Type()&fs.ModeSymlink != 0 {
		if key, err := canon(path); err == nil {
			e.Key = key
		}
	}
	return e
}

func call(hook func()) {
	if hook != nil {
		hook()
	}
}
