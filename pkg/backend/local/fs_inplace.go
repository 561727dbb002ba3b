package local

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// WriteInPlace writes through the open file: its owner, mode, links and
// attributes stay, and so does a mount on its name. A reader may see a part.
func (d *Driver) WriteInPlace(ctx context.Context, key string, content io.Reader, opts remotefs.InPlaceOptions) (string, error) {
	f, err := os.OpenFile(key, os.O_WRONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	st, err := fstat(f)
	switch {
	case err != nil:
		return "", err
	case kind(st) != remotefs.TypeFile:
		return "", &fault.Error{Code: fault.FSNotRegularFile}
	case opts.Guard != "" && version(st) != opts.Guard:
		return "", &fault.Error{Code: fault.FSStaleVersion}
	case ctx.Err() != nil:
		return "", ctx.Err()
	}
	if err := overwrite(f, content, opts.Mode); err != nil {
		return "", &fault.Error{Code: fault.FSIOError, Retry: fault.RetryUnknown,
			Err: err, Hint: "the file may be partly written; write it again"}
	}
	if st, err = fstat(f); err != nil {
		return "", err
	}
	return version(st), nil
}

func overwrite(f *os.File, content io.Reader, mode int) error {
	n, err := io.Copy(f, content)
	if err == nil {
		err = f.Truncate(n)
	}
	if err == nil && mode >= 0 {
		err = f.Chmod(fs.FileMode(mode).Perm())
	}
	return errors.Join(err, f.Sync())
}
