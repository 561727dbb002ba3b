package cmd

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/afield-dev/afield/pkg/fault"
)

// content is where fs write takes its bytes from.
type content struct {
	io.Reader
	size  int64 // -1 = not known
	close func() error
}

// openContent opens the content of a write: a text of the command line, a file
// of the host, or stdin.
func (a *app) openContent(opts fsWriteOptions) (content, error) {
	switch {
	case opts.hasContent:
		return content{strings.NewReader(opts.content), int64(len(opts.content)), noClose}, nil
	case opts.from != "" && opts.from != "-":
		f, err := a.openHost(opts.from)
		if err != nil {
			return content{}, err
		}
		info, err := f.Stat()
		if err != nil {
			return content{}, hostError(err, "read", opts.from)
		}
		return content{f, info.Size(), f.Close}, nil
	}
	if a.Terminal(a.In) {
		a.note("reading the content from the terminal; end it with ^D on a line of its own")
	}
	return content{a.In, -1, noClose}, nil
}

func noClose() error { return nil }

// openHost opens a regular file of the host, never waiting for one that is not.
func (a *app) openHost(path string) (*os.File, error) {
	if strings.IndexByte(path, 0) >= 0 {
		return nil, fault.New(fault.FSNotFound, "read", path, "cannot read %q: the path holds a NUL", path)
	}
	abs, err := a.hostPath(path)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(abs, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, hostError(err, "read", path)
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, fault.New(fault.FSNotRegularFile, "read", path, "cannot read %q on this host: not a regular file", path)
	}
	return f, nil
}

// hostPath joins a path to the directory in which afield was started.
func (a *app) hostPath(path string) (string, error) {
	if filepath.IsAbs(path) {
		return path, nil
	}
	dir, err := a.Dir()
	if err != nil {
		return "", hostError(err, "find", ".")
	}
	return filepath.Join(dir, path), nil
}

// maxHostText bounds a host file that is read into memory: texts of an edit,
// environment entries.
const maxHostText = 64 << 20

// readHostText reads a whole text file of the host, or stdin for "-".
func (a *app) readHostText(ctx context.Context, path string) (string, error) {
	var r io.Reader
	if path == "-" {
		in, err := newInput(ctx, a.In)
		if err != nil {
			return "", err
		}
		r = in
	} else {
		f, err := a.openHost(path)
		if err != nil {
			return "", err
		}
		defer f.Close()
		r = f
	}
	b, err := io.ReadAll(io.LimitReader(r, maxHostText+1))
	switch {
	case err != nil && ctx.Err() != nil:
		return "", fault.Aborted(ctx, fault.FSAborted, "read", path)
	case err != nil:
		return "", hostError(err, "read", path)
	case len(b) > maxHostText:
		return "", fault.New(fault.FSTooLarge, "read", path, "cannot read %q on this host: more than %d bytes", path, maxHostText)
	case !utf8.Valid(b):
		return "", fault.New(fault.FSNotText, "read", path, "cannot read %q on this host: invalid UTF-8 text", path)
	}
	return string(b), nil
}

// hostError gives an error of a host file its code.
func hostError(err error, verb, path string) error {
	code := fault.FSIOError
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		code = fault.FSNotFound
	case errors.Is(err, fs.ErrPermission):
		code = fault.FSPermissionDenied
	}
	var inner *fs.PathError
	reason := err
	if errors.As(err, &inner) {
		reason = inner.Err
	}
	return fault.Wrap(err, code, verb, path, "cannot %s %q on this host: %s", verb, path, reason)
}
