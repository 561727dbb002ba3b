package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
)

// processes are those of this machine: a remoteexec.Driver without terminals.
type processes struct{}

func (processes) Facts() remoteexec.Facts {
	return remoteexec.Facts{Backend: id, StartFaults: true, Signals: true, Pauses: true}
}

func environ(set map[string]string, remove []string) []string {
	all := map[string]string{}
	for _, e := range os.Environ() {
		if name, value, _ := strings.Cut(e, "="); !strings.HasPrefix(name, "AFIELD_") {
			all[name] = value
		}
	}
	for name, value := range set {
		all[name] = value
	}
	for _, name := range remove {
		delete(all, name)
	}
	var out []string
	for name, value := range all {
		out = append(out, name+"="+value)
	}
	return out
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// search looks a name up on the PATH of an environment, from a directory.
func search(name string, env []string, dir string) (string, error) {
	var path string
	for _, e := range env {
		if value, ok := strings.CutPrefix(e, "PATH="); ok {
			path = value
		}
	}
	var denied error
	for _, d := range strings.Split(path, ":") {
		full := filepath.Join(d, name)
		if !filepath.IsAbs(full) {
			full = filepath.Join(dir, full)
		}
		info, err := os.Stat(full)
		switch {
		case err != nil || !info.Mode().IsRegular():
		case executable(full):
			return full, nil
		default:
			denied = fault.New(fault.ExecProgramNotExecutable, "spawn", name, "start %s: %s is not executable", name, full)
		}
	}
	if denied != nil {
		return "", denied
	}
	return "", fault.New(fault.ExecProgramNotFound, "spawn", name, "start %s: not found on PATH", name)
}

func (processes) LookPath(_ context.Context, command string, env remoteexec.Env) (string, error) {
	if filepath.IsAbs(command) {
		if executable(command) {
			return command, nil
		}
		return "", fault.New(fault.ExecProgramNotExecutable, "which", command, "which %s: not an executable file", command)
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	found, err := search(command, environ(env.Set, env.Remove), dir)
	if err != nil {
		return "", fault.New(fault.ExecProgramNotFound, "which", command, "which %s: not found on PATH", command)
	}
	return found, nil
}

// process is a program in a session of its own.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout io.ReadCloser
	stderr io.ReadCloser
}

func (processes) Start(_ context.Context, spec remoteexec.StartSpec) (remoteexec.Proc, error) {
	if err := checkDir(spec.Cwd); err != nil {
		return nil, err
	}
	env := environ(spec.Set, spec.Remove)
	program := spec.Argv[0]
	if !strings.Contains(program, "/") {
		found, err := search(program, env, spec.Cwd)
		if err != nil {
			return nil, err
		}
		program = found
	} else if !filepath.IsAbs(program) {
		program = filepath.Join(spec.Cwd, program)
	}
	p := &process{cmd: &exec.Cmd{Path: program, Args: spec.Argv, Dir: spec.Cwd, Env: env, SysProcAttr: &syscall.SysProcAttr{Setsid: true}}}
	var theirs []*os.File
	pipe := func(reads bool) (child, ours *os.File) {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, nil
		}
		if child, ours = w, r; reads {
			child, ours = r, w
		}
		theirs = append(theirs, child)
		return child, ours
	}
	if spec.Stdin == remoteexec.StdinPipe {
		p.cmd.Stdin, p.stdin = pipe(true)
	}
	p.cmd.Stdout, p.stdout = pipe(false)
	p.cmd.Stderr, p.stderr = pipe(false)
	err := p.cmd.Start()
	for _, f := range theirs {
		f.Close()
	}
	if err != nil {
		p.closeAll()
		return nil, startFault(err, spec.Argv[0])
	}
	return p, nil
}

func (p *process) closeAll() {
	for _, c := range []io.Closer{p.stdin, p.stdout, p.stderr} {
		if c != nil {
			c.Close()
		}
	}
}

func checkDir(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fault.New(fault.ExecCwdMissing, "spawn", dir, "enter %s: no such directory", dir)
	case errors.Is(err, syscall.ENOTDIR) || err == nil && !info.IsDir():
		return fault.New(fault.ExecCwdNotDirectory, "spawn", dir, "enter %s: not a directory", dir)
	case err != nil:
		return fault.New(fault.ExecCwdDenied, "spawn", dir, "enter %s: %s", dir, err)
	}
	return nil
}

func startFault(err error, program string) error {
	code := fault.ExecSpawnFailed
	switch {
	case errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ENOTDIR):
		code = fault.ExecProgramNotFound
	case errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM):
		code = fault.ExecProgramNotExecutable
	case errors.Is(err, syscall.ENOEXEC):
		code = fault.ExecProgramFormat
	case errors.Is(err, syscall.E2BIG):
		code = fault.ExecArgumentsTooLong
	}
	return fault.Wrap(err, code, "spawn", program, "start %s: %s", program, err)
}

func (p *process) PID() int              { return p.cmd.Process.Pid }
func (p *process) Stdin() io.WriteCloser { return p.stdin }
func (p *process) Stdout() io.ReadCloser { return p.stdout }
func (p *process) Stderr() io.ReadCloser { return p.stderr }

// Wait gives how the program ended, however long its pipes stay open.
func (p *process) Wait() (remoteexec.Outcome, error) {
	state, err := p.cmd.Process.Wait()
	if err != nil {
		return remoteexec.Outcome{}, err
	}
	status := state.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return remoteexec.Outcome{Signal: unix.SignalName(status.Signal())}, nil
	}
	return remoteexec.Outcome{ExitCode: status.ExitStatus()}, nil
}

// Signal reaches each member of the session.
func (p *process) Signal(ctx context.Context, name string) error {
	number := syscall.SIGTERM
	if name == "SIGKILL" {
		number = syscall.SIGKILL
	}
	members, err := p.Members(ctx)
	for _, pid := range members {
		syscall.Kill(pid, number)
	}
	return err
}

// Members lists what lives of the session. A provider that can follow what leaves
// it should.
func (p *process) Members(context.Context) ([]int, error) {
	found, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	var members []int
	for _, path := range found {
		content, err := os.ReadFile(path)
		_, rest, ok := strings.Cut(string(content), ") ")
		f := strings.Fields(rest)
		if err != nil || !ok || len(f) < 4 || f[0] == "Z" || f[0] == "X" || f[3] != strconv.Itoa(p.PID()) {
			continue
		}
		if pid, err := strconv.Atoi(strings.Split(path, "/")[2]); err == nil {
			members = append(members, pid)
		}
	}
	return members, nil
}

func (p *process) Release() {}

// StartTerminal: there are none.
func (processes) StartTerminal(context.Context, remoteexec.TerminalSpec) (remoteexec.TerminalProc, error) {
	return nil, fault.New(fault.BackendUnsupported, "term", "", "this provider has no terminals")
}
