package local

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/afield-dev/afield/pkg/remotefs"
	"github.com/afield-dev/afield/pkg/remotefs/fstest"
)

// nobody is a user that permission bits bind.
const nobody = 65534

// unprivilegedVariable says that this process is the one without rights.
const unprivilegedVariable = "AFIELD_TEST_UNPRIVILEGED"

// suite describes this machine for the suite.
func suite(t *testing.T) fstest.Backend {
	t.Helper()
	dir, rounds := place(t)
	state, driver := t.TempDir(), NewDriver(dir)
	open := func() (remotefs.FS, error) {
		return remotefs.New(driver, remotefs.Options{Locks: remotefs.NewLocks(state, "suite")}), nil
	}
	files, _ := open()
	b := fstest.Backend{
		Only:  chosen(),
		Facts: driver.Facts(), Files: files, Another: open, Driver: driver, World: fstest.Host{},
		Dir: dir, StateDir: state, Root: os.Geteuid() == 0, Rounds: rounds,
	}
	if mayMount(t) {
		b.World = fstest.MountingHost{}
	}
	return b
}

// chosen are all cases, or those for a user without rights.
func chosen() func(fstest.Case) bool {
	if os.Getenv(unprivilegedVariable) == "" {
		return nil
	}
	return func(c fstest.Case) bool { return c.Need&fstest.Unprivileged != 0 || c.Num%5 == 0 }
}

// place gives root a directory in memory, where flushing costs nothing and races
// can be run as often as they are specified, and others one on the disk: so the
// suite runs on both.
func place(t *testing.T) (dir string, rounds int) {
	t.Helper()
	dir, rounds = t.TempDir(), 2
	if os.Geteuid() == 0 {
		if mem, err := os.MkdirTemp("/dev/shm", "afield-suite-"); err == nil {
			t.Cleanup(func() { os.RemoveAll(mem) })
			dir, rounds = mem, 0
		}
	}
	physical, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	return physical, rounds
}

// mayMount reports whether file systems can be mounted. Where everything is
// required root must be able to.
func mayMount(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() != 0 {
		return false
	}
	dir := t.TempDir()
	m := fstest.MountingHost{}
	if err := m.MountSmall(dir, 1<<20); err != nil {
		need(t, "mounting as root: %v", err)
		return false
	}
	if err := m.Unmount(dir); err != nil {
		t.Fatal(err)
	}
	return true
}

// need fails a test that cannot do what it is for where everything is required,
// and says so loudly elsewhere.
func need(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("AFIELD_TEST_REQUIRE") != "" {
		t.Fatalf(format, args...)
	}
	t.Logf("LEFT OUT: "+format, args...)
}

func TestFilesSuite(t *testing.T) { fstest.Run(t, suite(t)) }

// The cases about permissions bind no root: then they, and every fifth of the
// others, run once more as a user without rights, in a process of its own.
func TestFilesSuiteUnprivileged(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("TestFilesSuite has run them: the user of this process is not root")
	}
	dir, err := os.MkdirTemp("", "afield-unprivileged-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := errorOf(os.Chmod(dir, 0o755), os.Mkdir(filepath.Join(dir, "tmp"), 0o777), os.Chmod(filepath.Join(dir, "tmp"), 0o777)); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "suite")
	copyProgram(t, program)
	cmd := exec.Command(program, "-test.run=^TestFilesSuite$", "-test.v")
	cmd.Dir = filepath.Join(dir, "tmp")
	cmd.Env = append(os.Environ(), "TMPDIR="+filepath.Join(dir, "tmp"), "GORACE=atexit_sleep_ms=0", unprivilegedVariable+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !bytes.Contains(out, []byte("--- PASS: TestFilesSuite/027")) {
		t.Fatalf("the cases about permissions did not run:\n%s", out)
	}
}

func errorOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// copyProgram copies this test program to where anybody may run it.
func copyProgram(t *testing.T, to string) {
	t.Helper()
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(out, from)
	if err := errorOf(err, out.Close()); err != nil {
		t.Fatal(err)
	}
}
