// Package fault is the error of the contract: every failure that reaches a
// caller of afield carries exactly one code of the closed list in codes.go, and
// whatever else is known as data: the operation, the path, the backend, a next
// step, and whether trying again is safe.
//
// Nothing decides by an error's text. The exit status of a code is chosen in
// cmd/exit.go and nowhere else.
package fault

import (
	"context"
	"errors"
	"fmt"
)

// Retry says whether repeating the operation is safe.
type Retry int

const (
	// RetryNo: the same call will fail again until something is changed.
	RetryNo Retry = iota
	// RetrySafe: nothing happened; the same call may succeed later.
	RetrySafe
	// RetryUnknown: the operation may have taken effect.
	RetryUnknown
)

// Error is a failure with a code. Message is one line that says what was
// tried, on what, and why it failed; the code is not part of it.
type Error struct {
	Code    Code
	Message string
	Op      string // the primitive: "read", "write", "spawn", …
	Path    string // as the user named it
	Backend string
	Hint    string // the next step, if there is one
	Retry   Retry
	Err     error // the cause; kept for errors.Is and -v
}

// Error gives the message alone.
func (e *Error) Error() string { return e.Message }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// New makes an Error with a message.
func New(code Code, op, path, format string, args ...any) *Error {
	return &Error{Code: code, Op: op, Path: path, Message: fmt.Sprintf(format, args...)}
}

// Wrap makes an Error with a message and a cause.
func Wrap(err error, code Code, op, path, format string, args ...any) *Error {
	e := New(code, op, path, format, args...)
	e.Err = err
	return e
}

// WithHint sets the next step and returns e.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// WithRetry sets the retry class and returns e.
func (e *Error) WithRetry(r Retry) *Error {
	e.Retry = r
	return e
}

// CodeOf gives the code of the first Error in err's chain, or "".
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// Is reports whether err carries code.
func Is(err error, code Code) bool { return err != nil && CodeOf(err) == code }

// Causes of a cancellation. Whoever cancels a context gives one of these to
// context.WithCancelCause; Aborted keeps it, and the exit status follows it.
var (
	ErrDeadline    = errors.New("the deadline given by --timeout passed")
	ErrInterrupted = errors.New("interrupted")
	ErrTerminated  = errors.New("terminated")
	ErrHungUp      = errors.New("hung up")
)

// Aborted gives the Error of a cancelled operation: code is FS_ABORTED or
// EXEC_CANCELLED, and the cause is why ctx ended. It must be called only when
// ctx has ended.
func Aborted(ctx context.Context, code Code, op, path string) *Error {
	return Wrap(context.Cause(ctx), code, op, path, "%s aborted", op)
}
