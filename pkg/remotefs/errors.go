package remotefs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/afield-dev/afield/pkg/fault"
)

// failure gives the error of a call that did not succeed: FS_ABORTED if ctx has
// ended, which is tested first, else err with a code by the table of
// remotefs.md 11.
func failure(ctx context.Context, err error, op, display string) error {
	if ctx.Err() != nil {
		return fault.Aborted(ctx, fault.FSAborted, op, display)
	}
	return mapError(err, op, display)
}

// mapError gives err a code; one that has a code keeps it, and gets the words of
// the contract if it has none.
func mapError(err error, op, display string) error {
	if err == nil {
		return nil
	}
	var known *fault.Error
	if errors.As(err, &known) {
		return complete(known, op, display)
	}
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fault.Wrap(err, fault.FSAborted, op, display, "%s aborted", op)
	case errors.Is(err, syscall.ENOTDIR):
		e := fault.Wrap(err, fault.FSNotFound, op, display,
			"cannot %s %q: a parent path segment is not a directory", op, display)
		return e.WithHint("%s", hints(fault.FSNotFound))
	case errors.Is(err, fs.ErrNotExist):
		return complete(&fault.Error{Code: fault.FSNotFound, Err: err}, op, display)
	case errors.Is(err, fs.ErrPermission):
		return complete(&fault.Error{Code: fault.FSPermissionDenied, Err: err}, op, display)
	}
	return complete(&fault.Error{Code: fault.FSIOError, Err: err}, op, display)
}

// mapChange is mapError for staging and publishing, where something that is
// absent is not the caller's file (remotefs.md 11).
func mapChange(err error, op, display string) error {
	if errors.Is(err, fs.ErrNotExist) && fault.CodeOf(err) == "" {
		return complete(&fault.Error{Code: fault.FSIOError, Err: err}, op, display)
	}
	return mapError(err, op, display)
}

// complete fills what the error of a driver leaves open. The driver's own value
// is not changed.
func complete(e *fault.Error, op, display string) error {
	out := *e
	if out.Op == "" {
		out.Op = op
	}
	if out.Path == "" {
		out.Path = display
	}
	if out.Message == "" {
		out.Message = words(&out, op, display)
	}
	if out.Hint == "" {
		out.Hint = hints(out.Code)
	}
	return &out
}

// words are the messages of the contract.
func words(e *fault.Error, op, display string) string {
	if e.Code == fault.FSNotObserved {
		return fmt.Sprintf("cannot overwrite existing %q without reading it first", display)
	}
	return fmt.Sprintf("cannot %s %q: %s", op, display, why(e))
}

func why(e *fault.Error) string {
	switch e.Code {
	case fault.FSNotFound:
		return "not found"
	case fault.FSNotDirectory:
		return "not a directory"
	case fault.FSNotRegularFile:
		return "not a regular file"
	case fault.FSPermissionDenied:
		return "permission denied"
	case fault.FSStaleVersion:
		if errors.Is(e.Err, fs.ErrNotExist) {
			return "file no longer exists"
		}
		return "file changed since it was read"
	}
	return reason(e.Err)
}

// hints are the next steps of remotefs.md 11.
func hints(code fault.Code) string {
	switch code {
	case fault.FSNotFound:
		return "check the path, or list its parent"
	case fault.FSNotDirectory:
		return "read it, or list its parent"
	case fault.FSNotRegularFile:
		return "name a regular file"
	case fault.FSNotText:
		return "use --bytes"
	case fault.FSTooLarge:
		return "raise the limit, or read a window"
	case fault.FSPermissionDenied:
		return "fix the rights, or use another path"
	case fault.FSStaleVersion:
		return "re-read the file, then retry"
	case fault.FSNotObserved:
		return "read the file, then retry"
	case fault.FSEditNotFound:
		return "re-read the file and copy the exact text"
	case fault.FSAmbiguousEdit:
		return "give more context, or replace all"
	}
	return ""
}

// reason gives the innermost text of a system error, without the path that a
// wrapper repeats.
func reason(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno.Error()
	}
	if err == nil {
		return "input/output error"
	}
	return fmt.Sprint(err)
}

// notText is the error of content that is no text.
func notText(op, display, what string) error {
	return complete(&fault.Error{Code: fault.FSNotText,
		Message: fmt.Sprintf("cannot %s %q: %s", op, display, what)}, op, display)
}

// unsupported is the error of a change in a world that can only be read.
func unsupported(op string, at At) error {
	name := at.Target.Display
	if at.Target.Key == "" {
		name = at.Path
	}
	return fault.New(fault.BackendUnsupported, op, name, "cannot %s %q: this world's files can only be read", op, name)
}
