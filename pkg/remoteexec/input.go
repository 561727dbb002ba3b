package remoteexec

import (
	"errors"
	"io"
	"sync"
	"syscall"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
)

// input is a handle's standard input.
type input struct {
	h     *handle
	write sync.Mutex // keeps the bytes of one write together
	once  sync.Once
	err   error // of the one close
}

// Write implements io.Writer; see Handle.Stdin.
func (in *input) Write(p []byte) (int, error) {
	in.write.Lock()
	defer in.write.Unlock()
	if dropped, err := in.await(); dropped || err != nil {
		return accepted(p, err)
	}
	for rest := p; len(rest) > 0; {
		if in.h.isStopping() {
			return len(p), nil
		}
		if in.h.hasExited() {
			return len(p) - len(rest), errInputGone(nil)
		}
		n, err := in.h.proc.Stdin().Write(rest[:min(len(rest), blockSize)])
		if rest = rest[n:]; err != nil {
			return in.failed(p, rest, err)
		}
	}
	return len(p), nil
}

// failed answers a write that the world refused: dropped if the program is
// being stopped anyway (SI-8).
func (in *input) failed(p, rest []byte, err error) (int, error) {
	if in.h.isStopping() {
		return len(p), nil
	}
	if fault.CodeOf(err) == "" {
		err = errInputGone(err)
	}
	return len(p) - len(rest), err
}

func errInputGone(err error) error {
	if errors.Is(err, syscall.EPIPE) {
		return fault.Wrap(err, fault.ExecSessionExited, "write", "", "write: the program has closed its input")
	}
	return fault.Wrap(err, fault.ExecSessionExited, "write", "", "write: the program has ended")
}

func accepted(p []byte, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// await waits for the session (SI-5). dropped says that termination was asked
// for first.
func (in *input) await() (dropped bool, err error) {
	select {
	case <-in.h.started:
	case <-in.h.stopping:
	}
	switch {
	case isClosed(in.h.started) && in.h.startErr != nil:
		return false, in.h.startErr
	case in.h.hasExited():
		return false, errInputGone(nil)
	}
	return in.h.isStopping(), nil
}

// Close sends end-of-file once.
func (in *input) Close() error {
	in.write.Lock()
	defer in.write.Unlock()
	dropped, err := in.await()
	switch {
	case fault.Is(err, fault.ExecSessionExited):
		return nil // the end has closed it
	case dropped || err != nil:
		return err
	}
	return in.shut()
}

// shut closes the stream and ends a write that waits.
func (in *input) shut() error {
	in.once.Do(func() { in.err = in.h.proc.Stdin().Close() })
	if fault.CodeOf(in.err) == "" {
		return nil // a descriptor that does not close is no news to the caller
	}
	return in.err
}

// feed sends batch data; a child that does not take it all is no failure (SI-2).
func (in *input) feed(data []byte) {
	if _, err := in.Write(data); err == nil && !in.h.isStopping() {
		in.Close()
	}
}

// copyFrom passes a stream on until the program ends.
func (in *input) copyFrom(src io.Reader) {
	buf := make([]byte, copyBuffer)
	for {
		n, err := src.Read(buf)
		if _, werr := in.Write(buf[:n]); werr != nil {
			return
		}
		if err != nil {
			in.Close()
			return
		}
	}
}

// unblock ends a read of copyFrom where the source can be told to.
func unblock(src io.Reader) {
	if d, ok := src.(interface{ SetReadDeadline(time.Time) error }); ok {
		d.SetReadDeadline(time.Unix(1, 0))
	}
}
