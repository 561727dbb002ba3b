package local

import (
	"context"
	"os"
	"syscall"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// file is an open regular file.
type file struct {
	*os.File
	key  string
	info *remotefs.Info
}

func (f *file) Key() string          { return f.key }
func (f *file) Info() *remotefs.Info { return f.info }

// Open decides by type before it opens, opens without blocking, and looks again
// at what it has opened.
func (d *Driver) Open(_ context.Context, ref remotefs.Ref, limit int64) (remotefs.File, error) {
	key, st, err := d.stat(ref)
	if err != nil {
		return nil, err
	}
	if err := readable(st, limit); err != nil {
		return nil, err
	}
	call(d.hooks.beforeOpen)
	f, err := os.OpenFile(key, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	opened, err := fstat(f)
	if err == nil {
		err = readable(opened, -1)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &file{File: f, key: key, info: info(opened)}, nil
}

func readable(st *syscall.Stat_t, limit int64) error {
	if kind(st) != remotefs.TypeFile {
		return &fault.Error{Code: fault.FSNotRegularFile}
	}
	if limit >= 0 && st.Size > limit {
		return &fault.Error{Code: fault.FSTooLarge}
	}
	return nil
}

func fstat(f *os.File) (*syscall.Stat_t, error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	var st syscall.Stat_t
	var failed error
	err = conn.Control(func(fd uintptr) {
		failed = retry(func() error { return syscall.Fstat(int(fd), &st) })
	})
	if err != nil {
		return nil, err
	}
	return &st, failed
}
