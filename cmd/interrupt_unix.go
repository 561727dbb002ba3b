//go:build unix

package cmd

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// interruptible reads a descriptor and looks, before each read that may block,
// whether the context has ended.
type interruptible struct {
	ctx  context.Context
	f    *os.File
	wake *os.File // becomes readable when ctx ends
}

func newInterruptible(ctx context.Context, f *os.File) (*interruptible, error) {
	wake, err := wakeAtEnd(ctx)
	if err != nil {
		return nil, err
	}
	return &interruptible{ctx, f, wake}, nil
}

// wakeAtEnd gives a descriptor that becomes readable when ctx ends.
func wakeAtEnd(ctx context.Context) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { w.Close() })
	return r, nil
}

func (i *interruptible) Read(p []byte) (int, error) {
	fds := []unix.PollFd{
		{Fd: int32(i.f.Fd()), Events: unix.POLLIN},
		{Fd: int32(i.wake.Fd()), Events: unix.POLLIN},
	}
	for i.ctx.Err() == nil {
		if _, err := unix.Poll(fds, -1); errors.Is(err, unix.EINTR) {
			continue
		} else if err != nil {
			return 0, os.NewSyscallError("poll", err)
		}
		if fds[1].Revents == 0 {
			return i.f.Read(p)
		}
	}
	return 0, context.Cause(i.ctx)
}
