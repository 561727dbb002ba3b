package local_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/afield-dev/afield/pkg/backend/local"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/remoteexec/exectest"
)

// The local processes pass the suite and leave no goroutine behind (T-4).
func TestProcesses(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	t.Run("suite", func(t *testing.T) {
		exectest.Run(t, exectest.Backend{Open: func(t exectest.T) (remoteexec.Runtime, string) {
			dir := t.(*testing.T).TempDir()
			return local.Processes(local.ProcessOptions{Environ: os.Environ(), Dir: dir}), dir
		}})
	})
}

// processes gives a runtime that the test shuts down.
func processes(t *testing.T, environ ...string) remoteexec.Runtime {
	t.Helper()
	rt := local.Processes(local.ProcessOptions{Environ: append(environ, "PATH="+os.Getenv("PATH")), Dir: "/"})
	t.Cleanup(func() {
		if err := rt.Shutdown(context.Background()); err != nil {
			t.Errorf("shutdown: %v", err)
		}
	})
	return rt
}

// script is a request for a script whose output is collected.
func script(text string) remoteexec.Spec {
	out := remoteexec.Output{Mode: remoteexec.OutputCollect, MaxBytes: 64000}
	return remoteexec.Spec{
		Argv: []string{"/bin/sh", "-c", text}, Cwd: "/", Stdout: out, Stderr: out, Grace: 200 * time.Millisecond,
	}
}

// run runs a request to its end and gives stdout.
func run(t *testing.T, rt remoteexec.Runtime, spec remoteexec.Spec) (remoteexec.Report, string, error) {
	t.Helper()
	h, err := rt.Spawn(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	report, err := h.Wait(context.Background())
	chunk, _ := h.Collected(remoteexec.Stdout).ReadText(0)
	return report, chunk.Text, err
}

// C65, C66: names that look like credentials, and ours, do not reach a child.
func TestAmbientScrub(t *testing.T) {
	rt := processes(t, "X_API_KEY=1", "x_token=1", "My_Password_File=1", "SECRETARY=1", "MONKEY=1", "PLAIN=1",
		"GPG_PASSPHRASE=1", "DSH_A=1", "dsh_b=1", "Dsh_c=1", "AFIELD_D=1", "afield_e=1")
	spec := script("exec env")
	_, out, err := run(t, rt, spec)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(out) {
		if name, _, _ := strings.Cut(line, "="); name != "PATH" && name != "PWD" && name != "_" && name != "SHLVL" && name != "OLDPWD" {
			names = append(names, name)
		}
	}
	if got := strings.Join(names, " "); got != "GPG_PASSPHRASE PLAIN" && got != "PLAIN GPG_PASSPHRASE" {
		t.Errorf("the child has %s", got)
	}
}

// C68: a removed name is absent, not empty.
func TestAmbientTombstone(t *testing.T) {
	spec := script(`echo "${PROBE-gone}"`)
	spec.Env.Remove = []string{"PROBE"}
	if _, out, err := run(t, processes(t, "PROBE=x"), spec); out != "gone\n" || err != nil {
		t.Errorf("got %q, %v", out, err)
	}
}

// C263, C264: what forks while it is being ended is ended too, and so is what
// was seen once and has a new parent.
func TestForkStormEnds(t *testing.T) {
	rt := processes(t)
	mark := "STORM=" + t.TempDir()
	spec := script(`trap '' TERM; echo up; while :; do (setsid sh -c 'trap "" TERM; sleep 60' &) ; sleep 0.01; done`)
	spec.Env.Set = map[string]string{"STORM": strings.TrimPrefix(mark, "STORM=")}
	h, err := rt.Spawn(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	for h.Collected(remoteexec.Stdout).Total() == 0 {
		time.Sleep(time.Millisecond)
	}
	h.Terminate()
	if gone, err := h.WaitForExit(context.Background()); !gone || err != nil {
		t.Errorf("the tree is not gone: %v, %v", gone, err)
	}
	if left := carrying(t, mark); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
}

// carrying lists live processes with an entry in their environment.
func carrying(t *testing.T, entry string) (pids []string) {
	t.Helper()
	found, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range found {
		environ, err := os.ReadFile(path)
		if err == nil && strings.Contains("\x00"+string(environ), "\x00"+entry+"\x00") {
			pids = append(pids, path)
		}
	}
	return pids
}

// C318, HX-2: the last pass kills trees and terminals that ignore TERM without
// waiting for them.
func TestHardStop(t *testing.T) {
	rt := processes(t)
	h, err := rt.Spawn(t.Context(), script(`trap '' TERM HUP; echo up; while :; do sleep 60; done`))
	if err != nil {
		t.Fatal(err)
	}
	term, err := rt.OpenTerminal(t.Context(), remoteexec.TerminalSpec{
		Argv: []string{"/bin/sh", "-c", `trap '' TERM HUP; while :; do sleep 60; done`}, Cwd: "/",
		Rows: 24, Cols: 80, Grace: remoteexec.MaxDelay,
	})
	if err != nil {
		t.Fatal(err)
	}
	for h.Collected(remoteexec.Stdout).Total() == 0 {
		time.Sleep(time.Millisecond)
	}
	rt.HardStop()
	report, err := h.Wait(t.Context())
	if err != nil || report.Outcome.Signal != "SIGKILL" {
		t.Errorf("the program ended with %+v, %v", report.Outcome, err)
	}
	outcome, err := term.Wait(t.Context())
	if err != nil || outcome.Signal != "SIGKILL" {
		t.Errorf("the terminal ended with %+v, %v", outcome, err)
	}
}

// asNobody runs the calling test again as an ordinary user where we are root,
// whom no permission stops. It reports whether the caller is that run.
func asNobody(t *testing.T, extra ...string) bool {
	t.Helper()
	if os.Getuid() != 0 {
		return true
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), extra...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	cmd.Dir = "/"
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("as an ordinary user: %v\n%s", err, out)
	}
	return false
}

// C58: a directory that may not be searched.
func TestForbiddenDirectory(t *testing.T) {
	dir := os.Getenv("EXEC_TEST_DIR")
	if dir == "" {
		dir = forbidden(t)
	}
	if !asNobody(t, "EXEC_TEST_DIR="+dir) {
		return
	}
	spec := script("echo ran")
	spec.Cwd = dir
	_, out, err := run(t, processes(t), spec)
	if !fault.Is(err, fault.ExecCwdDenied) || out != "" {
		t.Errorf("got %q, %v", out, err)
	}
}

// forbidden makes a directory that an ordinary user may see and not enter.
func forbidden(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "forbidden")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0); err != nil {
		t.Fatal(err)
	}
	return dir
}

// C142, SF-5: where no spill file can be made the tail and the outcome stand.
func TestSpillNowhere(t *testing.T) {
	dir := os.Getenv("EXEC_TEST_DIR")
	if dir == "" {
		dir = forbidden(t)
	}
	if !asNobody(t, "EXEC_TEST_DIR="+dir) {
		return
	}
	t.Setenv("TMPDIR", dir)
	spec := script("echo 0123456789")
	spec.Stdout.MaxBytes, spec.Stdout.SpillMax = 4, 100
	report, out, err := run(t, processes(t), spec)
	if err != nil || out != "789\n" || report.Stdout.SpillPath != "" || report.Outcome.ExitCode != 0 {
		t.Errorf("got %+v, %q, %v", report, out, err)
	}
}
