package local

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
)

// exit waits for the end of a child without reaping it, so that its id stays
// ours (TE-7).
type exit struct {
	pid   int
	pidfd *os.File // nil on a kernel without
	seen  chan struct{}
}

func newExit(pid, pidfd int) *exit {
	e := &exit{pid: pid, seen: make(chan struct{})}
	if pidfd >= 0 {
		unix.SetNonblock(pidfd, true)
		e.pidfd = os.NewFile(uintptr(pidfd), "pidfd")
	}
	return e
}

// wait blocks until the child has ended. It is called once; seen is closed when
// it returns.
func (e *exit) wait() (remoteexec.Outcome, error) {
	defer close(e.seen)
	var info unix.Siginfo
	err := e.look(&info)
	if err != nil {
		return remoteexec.Outcome{}, fault.Wrap(err, fault.ExecTransportLost, "wait", "", "wait for process %d: %v", e.pid, err)
	}
	return outcome(info), nil
}

// look fills info at the child's end. Through the pidfd it costs no thread.
func (e *exit) look(info *unix.Siginfo) error {
	if e.pidfd == nil {
		return waitid(unix.P_PID, e.pid, info, 0)
	}
	raw, err := e.pidfd.SyscallConn()
	if err != nil {
		return err
	}
	var last error
	err = raw.Read(func(fd uintptr) bool {
		last = waitid(unix.P_PIDFD, int(fd), info, unix.WNOHANG)
		return last != nil || info.Signo != 0
	})
	if last != nil {
		return last
	}
	return err
}

func waitid(kind, id int, info *unix.Siginfo, flags int) error {
	for {
		err := unix.Waitid(kind, id, info, unix.WEXITED|unix.WNOWAIT|flags, nil)
		if err != unix.EINTR {
			return err
		}
	}
}

// close frees the pidfd.
func (e *exit) close() {
	if e.pidfd != nil {
		e.pidfd.Close()
	}
}

// cldExited is si_code of a normal exit; every other code of an end is a death
// by signal.
const cldExited = 1

// outcome reads si_status, which unix.Siginfo does not name: three ints, the
// padding of a pointer, and two more ints come before it.
func outcome(info unix.Siginfo) remoteexec.Outcome {
	offset := uintptr(20)
	if unsafe.Sizeof(uintptr(0)) == 8 {
		offset = 24
	}
	status := *(*int32)(unsafe.Add(unsafe.Pointer(&info), offset))
	if info.Code == cldExited {
		return remoteexec.Outcome{ExitCode: int(status)}
	}
	return remoteexec.Outcome{Signal: signalName(unix.Signal(status))}
}

// signalName gives the portable name, or SIG and the number (OC-6).
func signalName(sig unix.Signal) string {
	if name := unix.SignalName(sig); name != "" {
		return name
	}
	return fmt.Sprintf("SIG%d", int(sig))
}
