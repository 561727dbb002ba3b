package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
)

// pollLocal is the cadence of looks at a tree (TE-10).
const pollLocal = 15 * time.Millisecond

// execDriver starts programs of this machine.
type execDriver struct {
	base map[string]string
	dir  string
}

// Facts implements remoteexec.Driver.
func (d *execDriver) Facts() remoteexec.Facts {
	return remoteexec.Facts{
		Backend: "local", StartFaults: true, Signals: true, Pauses: true,
		Terminals: true, InputWait: inputWaitKnown(), Poll: pollLocal,
	}
}

// launch is a program that is about to be started.
type launch struct {
	file string // what the kernel opens; relative to cwd if it is relative
	argv []string
	cwd  string
	env  []string
}

// prepare finds the program and checks the directory, which the kernel would
// report in the words of a missing program (RS-10).
func (d *execDriver) prepare(argv []string, cwd string, set map[string]string, remove []string) (launch, error) {
	if err := checkDir(cwd); err != nil {
		return launch{}, err
	}
	env := effectiveEnv(d.base, set, remove)
	l := launch{file: argv[0], argv: argv, cwd: cwd, env: environ(env)}
	if strings.Contains(argv[0], "/") {
		return l, nil
	}
	found, denied := search(argv[0], env["PATH"], cwd)
	switch {
	case found != "":
		l.file = found
		return l, nil
	case denied != "":
		return l, fault.New(fault.ExecProgramNotExecutable, "spawn", argv[0], "start %s: %s is not executable", argv[0], denied)
	}
	return l, fault.New(fault.ExecProgramNotFound, "spawn", argv[0], "start %s: not found on the PATH of the program", argv[0])
}

// checkDir says why a directory cannot be entered.
func checkDir(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && info.IsDir() {
		err = unix.Faccessat(unix.AT_FDCWD, dir, unix.X_OK, unix.AT_EACCESS)
	}
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil || errors.Is(err, syscall.ENOTDIR):
		return fault.Wrap(err, fault.ExecCwdNotDirectory, "spawn", dir, "enter %s: not a directory", dir)
	case errors.Is(err, fs.ErrNotExist):
		return fault.Wrap(err, fault.ExecCwdMissing, "spawn", dir, "enter %s: no such directory", dir)
	case errors.Is(err, fs.ErrPermission):
		return fault.Wrap(err, fault.ExecCwdDenied, "spawn", dir, "enter %s: not allowed", dir)
	}
	return fault.Wrap(err, fault.ExecSpawnFailed, "spawn", dir, "enter %s: %v", dir, err)
}

// busyRounds bounds the attempts at a file that is open for writing: another
// start of ours may hold a descriptor of it for an instant.
const busyRounds = 6

// run starts the program as the leader of a new session. files are its first
// descriptors.
func (l launch) run(files []uintptr, tty bool) (pid int, pidfd int, err error) {
	beginStart()
	defer func() { endStart(pid) }()
	pidfd = -1
	attr := &syscall.ProcAttr{Dir: l.cwd, Env: l.env, Files: files,
		Sys: &syscall.SysProcAttr{Setsid: true, Setctty: tty, PidFD: &pidfd}}
	for round := range busyRounds {
		pid, err = syscall.ForkExec(l.file, l.argv, attr)
		if err != syscall.ETXTBSY {
			break
		}
		time.Sleep(time.Millisecond << round)
	}
	if err != nil {
		return 0, -1, startFault(err, l.argv[0])
	}
	return pid, pidfd, nil
}

// startFault classifies what execve said.
func startFault(err error, program string) error {
	wrap := func(code fault.Code, why string) error {
		return fault.Wrap(err, code, "spawn", program, "start %s: %s", program, why)
	}
	switch err {
	case syscall.ENOENT, syscall.ENOTDIR:
		return wrap(fault.ExecProgramNotFound, "no such program, or no such interpreter")
	case syscall.EACCES, syscall.EISDIR, syscall.EPERM:
		return wrap(fault.ExecProgramNotExecutable, "not executable")
	case syscall.ENOEXEC:
		return wrap(fault.ExecProgramFormat, "no program of this machine, and no interpreter line")
	case syscall.E2BIG:
		return wrap(fault.ExecArgumentsTooLong, "arguments and environment are too long")
	}
	return wrap(fault.ExecSpawnFailed, err.Error())
}

// Start implements remoteexec.Driver. The program runs when it returns.
func (d *execDriver) Start(_ context.Context, spec remoteexec.StartSpec) (remoteexec.Proc, error) {
	l, err := d.prepare(spec.Argv, spec.Cwd, spec.Set, spec.Remove)
	if err != nil {
		return nil, err
	}
	streams, err := openStreams(spec)
	if err != nil {
		streams.closeAll()
		return nil, fault.Wrap(err, fault.ExecSpawnFailed, "spawn", spec.Argv[0], "start %s: %v", spec.Argv[0], err)
	}
	pid, pidfd, err := l.run(streams.child(), false)
	streams.closeChild()
	if err != nil {
		streams.closeAll()
		return nil, err
	}
	return &proc{
		tree: newTree(pid), exit: newExit(pid, pidfd),
		stdin: streams.ours[0], stdout: streams.ours[1], stderr: streams.ours[2],
	}, nil
}
