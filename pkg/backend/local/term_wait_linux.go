package local

import (
	"bytes"
	"encoding/binary"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// goarch is the architecture whose system calls the processes here make.
const goarch = runtime.GOARCH

// inputWaitKnown says that the evidence of TT-15 can be read on this machine.
func inputWaitKnown() bool {
	_, ok := waitCallsOf(goarch)
	return ok
}

// waitCalls are the numbers of the system calls in which a program waits for
// input; -1 where an architecture lacks one.
type waitCalls struct {
	read, sel, pselect6, poll, ppoll, epollWait, epollPwait int
}

// waitCallsOf knows the architectures of TT-15.
func waitCallsOf(arch string) (waitCalls, bool) {
	switch arch {
	case "amd64":
		return waitCalls{read: 0, sel: 23, pselect6: 270, poll: 7, ppoll: 271, epollWait: 232, epollPwait: 281}, true
	case "arm64":
		return waitCalls{read: 63, sel: -1, pselect6: 72, poll: -1, ppoll: 73, epollWait: -1, epollPwait: 22}, true
	}
	return waitCalls{}, false
}

// device names an open device file.
type device struct{ dev, rdev uint64 }

func deviceOf(path string) (device, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return device{}, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return device{dev: uint64(st.Dev), rdev: uint64(st.Rdev)}, nil
}

// evidence reads below root, which is /proc, whether a process is blocked
// reading one terminal on descriptor 0 (TT-14, TT-15). What cannot be read or
// understood proves nothing.
type evidence struct {
	root     string
	calls    waitCalls
	terminal device
}

// waits says that a thread of the process is proven to wait.
func (e evidence) waits(pid int) bool {
	dir := e.root + "/" + strconv.Itoa(pid)
	if stdin, err := deviceOf(dir + "/fd/0"); err != nil || stdin != e.terminal {
		return false
	}
	for _, tid := range numbersIn(dir + "/task") {
		if e.threadWaits(dir + "/task/" + strconv.Itoa(tid)) {
			return true
		}
	}
	return false
}

// threadWaits looks at the system call that a thread is in.
func (e evidence) threadWaits(dir string) bool {
	var buf [512]byte
	line, err := readSmall(dir+"/syscall", buf[:])
	if err != nil {
		return false
	}
	call, ok := parseCall(string(line))
	if !ok {
		return false
	}
	switch call.number {
	case e.calls.read:
		return call.args[0] == 0
	case e.calls.sel, e.calls.pselect6:
		return selectsZero(dir, call)
	case e.calls.poll, e.calls.ppoll:
		return pollsZero(dir, call)
	case e.calls.epollWait, e.calls.epollPwait:
		return epollsZero(dir, call)
	}
	return false
}

// sysCall is a system call with its arguments.
type sysCall struct {
	number int
	args   [6]uint64
}

// parseCall reads a line of /proc/PID/syscall: the number, six arguments and two
// registers; a running thread has other words there.
func parseCall(line string) (sysCall, bool) {
	words := strings.Fields(line)
	if len(words) != 9 {
		return sysCall{}, false
	}
	number, err := strconv.Atoi(words[0])
	if err != nil || number < 0 {
		return sysCall{}, false
	}
	c := sysCall{number: number}
	for i := range c.args {
		if c.args[i], err = strconv.ParseUint(words[i+1], 0, 64); err != nil {
			return sysCall{}, false
		}
	}
	return c, true
}

// memory reads bytes of a thread's memory.
func memory(dir string, at uint64, n int) ([]byte, bool) {
	f, err := os.Open(dir + "/mem")
	if err != nil {
		return nil, false
	}
	defer f.Close()
	buf := make([]byte, n)
	_, err = f.ReadAt(buf, int64(at))
	return buf, err == nil
}

// selectsZero: the read set of a select holds descriptor 0.
func selectsZero(dir string, c sysCall) bool {
	if c.args[0] == 0 || c.args[1] == 0 {
		return false
	}
	set, ok := memory(dir, c.args[1], 1)
	return ok && set[0]&1 != 0
}

// maxPolled bounds how many entries of a poll are looked at.
const maxPolled = 1024

// pollsZero: a poll asks for input on descriptor 0.
func pollsZero(dir string, c sysCall) bool {
	n := min(c.args[1], maxPolled)
	if c.args[0] == 0 || n == 0 {
		return false
	}
	entries, ok := memory(dir, c.args[0], int(n)*8)
	for ; ok && len(entries) > 0; entries = entries[8:] {
		fd := int32(binary.NativeEndian.Uint32(entries))
		if events := binary.NativeEndian.Uint16(entries[4:]); fd == 0 && events&unix.POLLIN != 0 {
			return true
		}
	}
	return false
}

// epollsZero: the set of an epoll holds descriptor 0 for input.
func epollsZero(dir string, c sysCall) bool {
	info, err := os.ReadFile(dir + "/fdinfo/" + strconv.FormatUint(c.args[0], 10))
	if err != nil {
		return false
	}
	for line := range bytes.Lines(info) {
		words := bytes.Fields(line)
		if len(words) < 4 || string(words[0]) != "tfd:" || string(words[1]) != "0" || string(words[2]) != "events:" {
			continue
		}
		events, err := strconv.ParseUint(string(words[3]), 16, 32)
		return err == nil && events&unix.EPOLLIN != 0
	}
	return false
}
