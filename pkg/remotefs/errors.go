package remotefs

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/afield-dev/afield/pkg/fault"
)

// mapError gives err a code by the table of remotefs.md 11; one that has a code
// keeps it. The message is "cannot VERB "DISPLAY": reason".
func mapError(err error, op, display string) error {
	if err == nil || fault.CodeOf(err) != "" {
		return err
	}
	code := fault.FSIOError
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		return fault.Wrap(err, fault.FSNotFound, op, display,
			"cannot %s %q: a parent path segment is not a directory", op, display)
	case errors.Is(err, fs.ErrNotExist):
		return fault.Wrap(err, fault.FSNotFound, op, display, "cannot %s %q: not found", op, display)
	case errors.Is(err, fs.ErrPermission):
		code = fault.FSPermissionDenied
	}
	return fault.Wrap(err, code, op, display, "cannot %s %q: %s", op, display, reason(err))
}

// reason gives the innermost text of a system error, without the path that a
// wrapper repeats.
func reason(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno.Error()
	}
	return fmt.Sprint(err)
}
