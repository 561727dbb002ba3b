package cmd

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// started is an afield that runs.
type started struct {
	*exec.Cmd
	t      *testing.T
	stdin  io.WriteCloser
	stdout *bufio.Reader
}

func start(t *testing.T, dir string, args ...string) *started {
	t.Helper()
	c := exec.Command(filepath.Join(binaryDir(t), "afield"), args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "AFIELD_STATE_DIR="+filepath.Join(dir, ".state"))
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	s := &started{c, t, in, bufio.NewReader(out)}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	return s
}

// line gives the next line of stdout.
func (s *started) line() string {
	s.t.Helper()
	text, err := s.stdout.ReadString('\n')
	if err != nil {
		s.t.Fatalf("no line on stdout: %v", err)
	}
	return strings.TrimSuffix(text, "\n")
}

// pid gives the next line as a process id.
func (s *started) pid() int {
	s.t.Helper()
	pid, err := strconv.Atoi(s.line())
	if err != nil {
		s.t.Fatal(err)
	}
	return pid
}

var asked = []struct {
	signal syscall.Signal
	status int
}{{syscall.SIGINT, exitInterrupted}, {syscall.SIGTERM, exitTerminated}, {syscall.SIGHUP, exitHungUp}}

// A write that is asked to end before its commit leaves nothing (remotefs.md
// 10).
func TestSignalsEndAWrite(t *testing.T) {
	for _, tt := range asked {
		t.Run(tt.signal.String(), func(t *testing.T) {
			dir := t.TempDir()
			s := start(t, dir, "fs", "write", "f")
			// More than can be held back before staging: the write is under way
			// once all of it was taken.
			if _, err := s.stdin.Write(letters()); err != nil {
				t.Fatal(err)
			}
			s.Process.Signal(tt.signal)
			s.Wait()
			if got := s.ProcessState.ExitCode(); got != tt.status {
				t.Errorf("status %d, want %d", got, tt.status)
			}
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if e.Name() != ".state" {
					t.Errorf("%s is left behind", e.Name())
				}
			}
		})
	}
}

// A read that waits for a reader who takes nothing ends at once.
func TestASignalEndsAReadThatNobodyTakes(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), append([]byte("first\n"), letters()...), 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, dir, "fs", "read", "f")
	if got := s.line(); got != "first" {
		t.Fatalf("first line %q", got)
	}
	s.Process.Signal(syscall.SIGTERM)
	state, err := s.Process.Wait() // Cmd.Wait would close the pipe, and so be a reader who has gone
	if err != nil {
		t.Fatal(err)
	}
	if got := state.ExitCode(); got != exitTerminated {
		t.Errorf("status %d, want %d", got, exitTerminated)
	}
}

// A program is ended with all that it started (HX-1), and the status says by
// what afield was asked.
func TestSignalsEndATree(t *testing.T) {
	for _, tt := range asked {
		t.Run(tt.signal.String(), func(t *testing.T) {
			s := start(t, t.TempDir(), "exec", "--", "sh", "-c", "sleep 300 & echo $!; echo $$; wait")
			pids := []int{s.pid(), s.pid()}
			s.Process.Signal(tt.signal)
			s.Wait()
			if got := s.ProcessState.ExitCode(); got != tt.status {
				t.Errorf("status %d, want %d", got, tt.status)
			}
			for _, pid := range pids {
				awaitGone(t, pid)
			}
		})
	}
}

// A second signal does not wait for the grace time: the tree is killed and
// afield ends by the signal (HX-1, HX-2).
func TestASecondSignalKillsAtOnce(t *testing.T) {
	s := start(t, t.TempDir(), "exec", "--grace", "1h", "--", "sh", "-c",
		`trap 'echo refused' TERM; sleep 300 & echo $!; echo $$; while :; do wait; done`)
	pids := []int{s.pid(), s.pid()}
	s.Process.Signal(syscall.SIGTERM)
	if got := s.line(); got != "refused" {
		t.Fatalf("the program said %q", got)
	}
	s.Process.Signal(syscall.SIGTERM)
	s.Wait()
	if state := s.ProcessState.Sys().(syscall.WaitStatus); !state.Signaled() || state.Signal() != syscall.SIGTERM {
		t.Errorf("afield ended with %v", s.ProcessState)
	}
	for _, pid := range pids {
		awaitGone(t, pid)
	}
}

// awaitGone waits until no live process has the id.
func awaitGone(t *testing.T, pid int) {
	t.Helper()
	awaitThat(t, "process "+strconv.Itoa(pid)+" is gone", func() bool {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil {
			return true
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		return strings.HasPrefix(rest, "Z") || strings.HasPrefix(rest, "X")
	})
}

// signalParent asks the parent of the process whose id is in file to end.
func signalParent(t *testing.T, file string) {
	t.Helper()
	pid := strings.TrimSpace(readFile(t, file))
	_, rest, _ := strings.Cut(readFile(t, "/proc/"+pid+"/stat"), ") ")
	parent, err := strconv.Atoi(strings.Fields(rest)[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(parent, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
