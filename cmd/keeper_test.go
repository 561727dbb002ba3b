package cmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/afield-dev/afield/pkg/backend/ssh/sshdtest"
)

// The scripts of the keeper: of the connection on a world that is another afield
// at the end of two pipes, of what is held on the local world and over SSH (cases
// N, O and P of remoteexec.md).
func TestKeeperScripts(t *testing.T) {
	for _, tt := range []struct {
		name, script string
		profile      func(dir string) string
	}{
		{"external", "keeper.txtar", nil},
		{"local", "held.txtar", func(string) string { return "version: 1\nbackend: local\n" }},
		{"ssh", "held.txtar", func(dir string) string {
			s := sshdtest.Start(t, "SetEnv HOME="+dir)
			return fmt.Sprintf("version: 1\nbackend: ssh\nconfig: {host: 127.0.0.1, port: %d, user: root, identityFile: %q, "+
				"knownHostsFile: %q, configFile: /dev/null, agent: \"off\"}\n", s.Port, s.Key, s.Known)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			testscript.Run(t, testscript.Params{
				Files:               []string{"testdata/keeper/" + tt.script},
				RequireExplicitExec: true,
				Setup: func(env *testscript.Env) error {
					profile := ""
					if tt.profile != nil {
						profile = tt.profile(env.WorkDir) // its server outlives the keeper
					}
					h := newKept(t, env.WorkDir)
					if profile != "" {
						h.setProfile(profile)
					}
					for _, e := range h.env {
						name, value, _ := strings.Cut(e, "=")
						env.Setenv(name, value)
					}
					env.Setenv("RUNTIME", h.runtime+"/afield")
					return nil
				},
				Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": cmdExits},
			})
		})
	}
}

// kept is a home whose commands use a keeper. What is left of it is stopped at
// the end of the test.
type kept struct {
	t       *testing.T
	dir     string
	runtime string
	bin     string
	env     []string
}

func newKept(t *testing.T, dir string) *kept {
	t.Helper()
	runtime, err := os.MkdirTemp("/tmp", "afk") // sockets need a short path
	if err != nil {
		t.Fatal(err)
	}
	h := &kept{t: t, dir: dir, runtime: runtime, bin: binaryDir(t) + "/afield"}
	text := "version: 1\nbackend: external\nconfig:\n  argv: [" + h.bin + ", serve, --stdio, --no-project, --default-config]\n" +
		"  env: [SECRET, AFIELD_STATE_DIR]\n"
	h.setProfile(text)
	h.env = []string{
		"PATH=" + filepath.Dir(h.bin) + ":" + os.Getenv("PATH"), "HOME=" + dir + "/.home", "TMPDIR=" + runtime, "LANG=C.UTF-8",
		"XDG_RUNTIME_DIR=" + runtime, "AFIELD_STATE_DIR=" + dir + "/.state", "AFIELD_PROFILE_FILE=" + h.dir + "/profile.yaml", "AFIELD_KEEP=",
	}
	t.Cleanup(func() {
		stop := h.command("keeper", "stop", "--all")
		stop.Dir = "/"
		if out, err := stop.CombinedOutput(); err != nil {
			t.Errorf("keepers that cannot be stopped: %v: %s", err, out)
		}
		os.RemoveAll(runtime)
	})
	return h
}

// setProfile says what world the commands use.
func (h *kept) setProfile(text string) {
	h.t.Helper()
	if err := os.WriteFile(filepath.Join(h.dir, "profile.yaml"), []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// command is an afield of this home.
func (h *kept) command(args ...string) *exec.Cmd {
	c := exec.Command(h.bin, args...)
	c.Dir, c.Env = h.dir, h.env
	return c
}

// run runs one and gives its output and status.
func (h *kept) run(args ...string) (stdout, stderr string, status int) {
	h.t.Helper()
	var out, errs bytes.Buffer
	c := h.command(args...)
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil && c.ProcessState == nil {
		h.t.Fatal(err)
	}
	return out.String(), errs.String(), c.ProcessState.ExitCode()
}

// want runs one that must end with a status, and gives its output.
func (h *kept) want(status int, args ...string) string {
	h.t.Helper()
	out, errs, got := h.run(args...)
	if got != status {
		h.t.Fatalf("%q: status %d, want %d\n%s%s", args, got, status, out, errs)
	}
	return out
}

// keepers lists those that run.
func (h *kept) keepers() []keeperState {
	h.t.Helper()
	var list []keeperState
	if err := json.Unmarshal([]byte(h.want(0, "keeper", "list", "--json")), &list); err != nil {
		h.t.Fatal(err)
	}
	return list
}

// warm makes a keeper run and gives it.
func (h *kept) warm() keeperState {
	h.t.Helper()
	h.want(0, "fs", "stat", ".")
	list := h.keepers()
	if len(list) != 1 {
		h.t.Fatalf("%d keepers, want 1", len(list))
	}
	return list[0]
}

// Many commands at once start exactly one keeper.
func TestKeeperStartRace(t *testing.T) {
	t.Parallel()
	h := newKept(t, t.TempDir())
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if _, errs, status := h.run("fs", "stat", "."); status != 0 {
				t.Errorf("status %d: %s", status, errs)
			}
		})
	}
	all.Wait()
	if list := h.keepers(); len(list) != 1 {
		t.Errorf("%d keepers, want 1", len(list))
	}
	log, err := os.ReadFile(h.keepers()[0].Log)
	if n := strings.Count(string(log), "msg=started"); err != nil || n != 1 {
		t.Errorf("%d keepers were started, want 1: %v\n%s", n, err, log)
	}
}

// Case 134: a step of a pipeline that started a keeper ends at once, since the
// keeper has none of its descriptors; it has a session of its own and is in /.
func TestKeeperDetached(t *testing.T) {
	t.Parallel()
	h := newKept(t, t.TempDir())
	extra, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := h.command("fs", "stat", ".")
	c.ExtraFiles = []*os.File{theirs}
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out) // waits for the end of a pipe as a shell does
	}
	theirs.Close()
	extra.SetReadDeadline(time.Now().Add(watchdog))
	if n, err := extra.Read(make([]byte, 1)); n != 0 || err == nil || os.IsTimeout(err) {
		t.Errorf("the keeper has a descriptor of its starter: %d, %v", n, err)
	}
	k := h.warm()
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", k.PID))
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if session, tty := fields[3], fields[4]; session != fmt.Sprint(k.PID) || tty != "0" {
		t.Errorf("session %s and terminal %s of process %d", session, tty, k.PID)
	}
	if cwd, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", k.PID)); cwd != "/" {
		t.Errorf("it is in %q", cwd)
	}
	for _, path := range []string{k.Socket, k.Log} {
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", path, st, err)
		}
	}
}

// Case 134: killed in the middle of calls, each of them ends with an error and
// nothing is half-written; the next call works.
func TestKeeperKilled(t *testing.T) {
	t.Parallel()
	h := newKept(t, t.TempDir())
	k := h.warm()
	var all sync.WaitGroup
	for i := range 10 {
		c := h.command("fs", "write", "--json", fmt.Sprintf("f%d", i))
		in, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		var errs bytes.Buffer
		c.Stderr = &errs
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := in.Write(bytes.Repeat([]byte("x"), 1<<20)); err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			c.Wait()
			var failed struct{ Error failure }
			json.Unmarshal(errs.Bytes(), &failed)
			if s := c.ProcessState.ExitCode(); s != exitUnreachable || failed.Error.Code == nil {
				t.Errorf("status %d, want %d: %s", s, exitUnreachable, errs.String())
			}
		})
	}
	awaitThat(t, "ten calls are under way", func() bool { return h.keepers()[0].Callers == 10 })
	syscall.Kill(k.PID, syscall.SIGKILL)
	all.Wait()
	if left, _ := filepath.Glob(h.dir + "/f*"); len(left) != 0 {
		t.Errorf("published: %q", left)
	}
	h.want(0, "fs", "stat", ".")
	if again := h.warm(); again.PID == k.PID {
		t.Errorf("it is still process %d", k.PID)
	}
}

// A keeper that does not answer costs a command a moment and nothing else; it
// can be stopped.
func TestKeeperStuck(t *testing.T) {
	t.Parallel()
	h := newKept(t, t.TempDir())
	k := h.warm()
	syscall.Kill(k.PID, syscall.SIGSTOP)
	h.want(0, "fs", "stat", ".")
	if list := h.keepers(); len(list) != 1 || list[0].State != "silent" || list[0].PID != k.PID {
		t.Errorf("%+v", list)
	}
	h.want(0, "keeper", "stop", "--all")
	awaitThat(t, "it is gone", func() bool { return len(h.keepers()) == 0 })
}

// A socket that is removed is made again: what is held stays within reach.
func TestKeeperSocketRemoved(t *testing.T) {
	t.Parallel()
	h := newKept(t, t.TempDir())
	k := h.warm()
	os.Remove(k.Socket)
	awaitThat(t, "the socket is there again", func() bool { _, err := os.Lstat(k.Socket); return err == nil })
	if again := h.warm(); again.PID != k.PID {
		t.Errorf("process %d, was %d", again.PID, k.PID)
	}
}

// Case 133: two builds have two keepers for one world, and neither stops the
// other.
func TestKeeperBuilds(t *testing.T) {
	t.Parallel()
	h := newKept(t, t.TempDir())
	h.warm()
	b, err := os.ReadFile(h.bin)
	if err != nil {
		t.Fatal(err)
	}
	other := *h
	other.bin = t.TempDir() + "/afield"
	if err := os.WriteFile(other.bin, append(b, 0), 0o700); err != nil {
		t.Fatal(err)
	}
	other.want(0, "fs", "stat", ".")
	if list := h.keepers(); len(list) != 2 || list[0].PID == list[1].PID || list[0].ID != list[1].ID {
		t.Errorf("%+v", list)
	}
	if _, errs, _ := h.run("-v", "fs", "stat", "."); errs != "" {
		t.Errorf("the first does not serve any more: %s", errs)
	}
}

// A keeper ends after its idle time.
func TestKeeperIdle(t *testing.T) {
	t.Parallel()
	h := newKept(t, t.TempDir())
	h.env = append(h.env, "AFIELD_KEEP=100ms")
	k := h.warm()
	awaitGone(t, k.PID)
	if left, _ := filepath.Glob(h.runtime + "/afield/*"); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
}

// Case 134: another user is refused, by the directory and by the keeper itself.
func TestKeeperOtherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		missing(t, "needs the rights to become another user")
	}
	needTool(t, "setpriv")
	h := newKept(t, t.TempDir())
	k := h.warm()
	// This test as another user: it reads what the keeper says to it.
	as := func() ([]byte, error) {
		c := exec.Command("setpriv", "--reuid=65534", "--clear-groups", "/proc/self/fd/3", "-test.run=^TestKeeperStranger$")
		self, err := os.Open("/proc/self/exe")
		if err != nil {
			t.Fatal(err)
		}
		defer self.Close()
		c.ExtraFiles, c.Env, c.Dir = []*os.File{self}, []string{"KEEPER_SOCKET=" + k.Socket, "GORACE=atexit_sleep_ms=0"}, "/"
		return c.Output()
	}
	if out, err := as(); err == nil {
		t.Errorf("connected: %s", out)
	}
	for _, path := range []string{k.Socket, h.runtime, filepath.Dir(k.Socket)} {
		if err := os.Chmod(path, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := as(); err != nil || !strings.HasPrefix(string(out), "heard 0 bytes") {
		t.Errorf("the keeper said something to another user: %s %v", out, err)
	}
	if err := os.Chmod(filepath.Dir(k.Socket), 0o700); err != nil {
		t.Fatal(err)
	}
}

// TestKeeperStranger is the other user of TestKeeperOtherUser.
func TestKeeperStranger(t *testing.T) {
	socket := os.Getenv("KEEPER_SOCKET")
	if socket == "" {
		return
	}
	c, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(watchdog))
	heard, err := io.ReadAll(c)
	fmt.Printf("heard %d bytes: %v\n", len(heard), err)
}
