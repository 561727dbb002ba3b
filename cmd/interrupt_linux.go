package cmd

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// directOutput gives f as a writer without the goroutine of patient, which
// costs a third of the bytes a second: to a regular file, where a write ends by
// itself, and to a pipe, where a write can take what fits at once.
func directOutput(ctx context.Context, f *os.File, patient io.Writer) io.Writer {
	info, err := f.Stat()
	switch {
	case err == nil && info.Mode().IsRegular():
		return f
	case err == nil && info.Mode()&fs.ModeNamedPipe != 0:
		return &pipeOutput{ctx: ctx, f: f, patient: patient}
	}
	return patient
}

// pipeOutput writes to a pipe what fits and then waits for room or the end of
// ctx.
type pipeOutput struct {
	ctx     context.Context
	f       *os.File
	wake    *os.File  // becomes readable when ctx ends; made when it is needed
	patient io.Writer // for a pipe that cannot, see write
	cannot  bool
}

func (o *pipeOutput) Write(p []byte) (int, error) {
	total := 0
	for total < len(p) && !o.cannot {
		n, err := o.write(p[total:])
		total += n
		if err != nil {
			return total, err
		}
	}
	if total == len(p) {
		return total, nil
	}
	n, err := o.patient.Write(p[total:])
	return total + n, err
}

// write takes what fits, or waits. Kernels before 6.5, and pipes with a name,
// know no such write.
func (o *pipeOutput) write(p []byte) (int, error) {
	if o.ctx.Err() != nil {
		return 0, outputAborted(o.ctx)
	}
	n, err := unix.Pwritev2(int(o.f.Fd()), [][]byte{p}, -1, unix.RWF_NOWAIT)
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, unix.EINTR):
		return 0, nil
	case errors.Is(err, unix.EAGAIN):
		return 0, o.wait()
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM):
		o.cannot = true
		return 0, nil
	}
	return 0, &fs.PathError{Op: "write", Path: o.f.Name(), Err: err}
}

// wait returns when there is room, the reader has gone, or ctx has ended.
func (o *pipeOutput) wait() error {
	if o.wake == nil {
		wake, err := wakeAtEnd(o.ctx)
		if err != nil {
			return err
		}
		o.wake = wake
	}
	_, err := unix.Poll([]unix.PollFd{
		{Fd: int32(o.f.Fd()), Events: unix.POLLOUT},
		{Fd: int32(o.wake.Fd()), Events: unix.POLLIN},
	}, -1)
	if err != nil && !errors.Is(err, unix.EINTR) {
		return os.NewSyscallError("poll", err)
	}
	return nil
}
