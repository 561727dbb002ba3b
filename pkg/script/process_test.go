package script

import (
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// started is a program that a start put in the place of its shell.
type started struct {
	Started
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	answer *Answer
	err    error
}

// start runs a start in a session of its own, as sshd does.
func start(t *testing.T, env []string, s StartSpec) *started {
	t.Helper()
	if s.Cwd == "" {
		s.Cwd = "/"
	}
	if s.Grace == 0 {
		s.Grace = time.Second
	}
	c := Start(s)
	sh, _, _ := strings.Cut(strings.TrimPrefix(env[0], "PATH="), ":")
	cmd := exec.CommandContext(t.Context(), sh+"/sh", c.Argv()[1:]...)
	cmd.Env, cmd.Dir = env, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &started{cmd: cmd, stdin: stdin, answer: NewAnswer(stdout)}
	watchdog := time.AfterFunc(60*time.Second, func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	t.Cleanup(func() {
		watchdog.Stop()
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		stdin.Close()
		cmd.Wait() // an error if the test did so
	})
	if _, err := stdin.Write(c.Input); err != nil {
		t.Fatal(err)
	}
	p.Started, p.err = ReadStarted(p.answer, c)
	return p
}

// output gives all that the program prints.
func (p *started) output(t *testing.T) string {
	t.Helper()
	out, err := io.ReadAll(p.answer)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// The start report names the process that becomes the program.
func TestStartReportsTheProgramItself(t *testing.T) {
	eachShell(t, func(t *testing.T, env []string) {
		p := start(t, env, StartSpec{Argv: []string{"/bin/sh", "-c", "echo $$; cat; pwd"}, Cwd: "/usr", Input: Piped})
		if p.err != nil || p.PID != p.cmd.Process.Pid || p.Begun == 0 {
			t.Fatalf("%+v, %v", p.Started, p.err)
		}
		io.WriteString(p.stdin, "through\n")
		p.stdin.Close()
		pid, rest, _ := strings.Cut(p.output(t), "\n")
		if rest != "through\n/usr\n" || pid == "" {
			t.Errorf("output %q %q", pid, rest)
		}
	})
}

// Values and removals arrive, also under names that no shell holds, and are in
// no command line (C67 to C79, C84).
func TestStartEnvironment(t *testing.T) {
	eachShell(t, func(t *testing.T, env []string) {
		set := map[string]string{"FOO-BAR": "1", "a.b": "two\n", "--split-string": "3", "-u": "4", "EMPTY": "",
			"V": "你好 $(touch /tmp/pwned) \"q\" 'r' \\ !", "LINES_": "a\nb\n", "v": "mine", "x": "y", "IFS": ":", "PWD": "/x"}
		p := start(t, append(slices.Clone(env), "GONE=1", "l=kept", "p=kept"), StartSpec{
			Argv: []string{"/usr/bin/perl", "-e", `print map {"$_=$ENV{$_}\0"} sort keys %ENV; open F, "/proc/$$/cmdline"; print <F>`},
			Set:  set, Remove: []string{"GONE", "never-there"}, Input: NoInput})
		if p.err != nil {
			t.Fatal(p.err)
		}
		out := p.output(t)
		for name, value := range set {
			if !strings.Contains("\x00"+out, "\x00"+name+"="+value+"\x00") {
				t.Errorf("%q is not %q in %q", name, value, out)
			}
		}
		if strings.Contains(out, "GONE") || !strings.Contains(out, "\x00l=kept\x00") || strings.Contains(out, "AFIELD") {
			t.Errorf("environment %q", out)
		}
	})
}

// What cannot start says so by a name (C24 to C29, C56 to C58).
func TestStartRefuses(t *testing.T) {
	eachShell(t, func(t *testing.T, env []string) {
		dir := world(t)
		put(t, dir+"/plain", "x")
		for _, c := range []struct {
			spec StartSpec
			want Kind
		}{
			{StartSpec{Argv: []string{"no-such-program"}}, "program-not-found"},
			{StartSpec{Argv: []string{dir + "/none"}}, "program-not-found"},
			{StartSpec{Argv: []string{dir}}, "program-not-executable"},
			{StartSpec{Argv: []string{"./plain"}, Cwd: dir}, "program-not-executable"},
			{StartSpec{Argv: []string{"true"}, Remove: []string{"PATH"}}, "program-not-found"},
			{StartSpec{Argv: []string{"true"}, Cwd: dir + "/none"}, "cwd-missing"},
			{StartSpec{Argv: []string{"true"}, Cwd: dir + "/plain"}, "cwd-not-directory"},
		} {
			c.spec.Input = NoInput
			if p := start(t, env, c.spec); kindOf(p.err) != c.want {
				t.Errorf("%q: %v, want %s", c.spec.Argv, p.err, c.want)
			}
		}
		os.Mkdir(dir+"/a=b", 0o755)
		os.WriteFile(dir+"/a=b/tool", []byte("#!/bin/sh\necho ran\n"), 0o755)
		for _, spec := range []StartSpec{
			{Argv: []string{"tool"}, Set: map[string]string{"PATH": dir + "/a=b:/bin"}},
			{Argv: []string{"./tool"}, Cwd: dir + "/a=b"},
			{Argv: []string{dir + "/a=b/tool"}, Remove: []string{"NOTHING", "a.b"}},
		} {
			spec.Input = NoInput
			p := start(t, env, spec)
			if out := p.output(t); p.err != nil || out != "ran\n" {
				t.Errorf("%q: %q, %v", spec.Argv, out, p.err)
			}
		}
	})
}

// Payloads beyond one argument travel on the input (C20, C23, C215).
func TestStartLongArguments(t *testing.T) {
	env := []string{"PATH=/bin:/usr/bin"}
	argv := []string{"/bin/sh", "-c", `echo $#; printf "%s\n" "${18}" | wc -c`, "x"}
	for range 18 {
		argv = append(argv, strings.Repeat("é'", 33_333))
	}
	p := start(t, env, StartSpec{Argv: argv, Input: NoInput})
	if out := p.output(t); p.err != nil || out != "18\n100000\n" {
		t.Errorf("%.80q, %v", out, p.err)
	}
}

func members(t *testing.T, env []string, p *started) []int {
	t.Helper()
	c := Members(p.Started)
	pids, err := ReadMembers(run(t, env, c, ""), c)
	if err != nil {
		t.Fatal(err)
	}
	return pids
}

// A tree is seen without our watcher, and signalled whole (C174, C175, C247).
func TestMembersAndKill(t *testing.T) {
	eachShell(t, func(t *testing.T, env []string) {
		p := start(t, env, StartSpec{Argv: []string{"/bin/sh", "-c", "trap '' TERM; sleep 60 & sleep 60 & echo up; wait; wait"}, Input: Piped})
		if line, err := p.answer.ReadString('\n'); err != nil || line != "up\n" {
			t.Fatalf("%q, %v", line, err)
		}
		if got := members(t, env, p); len(got) != 3 || !slices.Contains(got, p.PID) {
			t.Fatalf("members %v of %+v", got, p.Started)
		}
		stranger := p.Started
		stranger.Begun++
		c := Kill(stranger, "KILL")
		if d, err := ReadDelivery(run(t, env, c, ""), c); err != nil || d != Nobody {
			t.Errorf("another start time: %v, %v", d, err)
		}
		c = Kill(p.Started, "TERM")
		if d, err := ReadDelivery(run(t, env, c, ""), c); err != nil || d != Delivered {
			t.Errorf("kill: %v, %v", d, err)
		}
		go p.cmd.Wait()
		c = End(p.Started, 300*time.Millisecond)
		if left, err := ReadMembers(run(t, env, c, ""), c); err != nil || len(left) != 0 {
			t.Errorf("end: %v left, %v", left, err)
		}
		if got := members(t, env, p); len(got) != 0 {
			t.Errorf("left: %v", got)
		}
		if syscall.Kill(p.Watcher, 0) == nil {
			t.Errorf("the watcher %d lives", p.Watcher)
		}
	})
}

// When the input ends, as it does when the connection is lost, a program without
// input is ended with its tree (C209, C320).
func TestWatcherEndsTheTree(t *testing.T) {
	eachShell(t, func(t *testing.T, env []string) {
		p := start(t, env, StartSpec{Argv: []string{"/bin/sh", "-c", "trap '' TERM; sleep 600 & echo up; wait; wait"}, Input: NoInput})
		if line, err := p.answer.ReadString('\n'); err != nil || line != "up\n" {
			t.Fatalf("%q, %v, %v", line, err, p.err)
		}
		p.stdin.Close()
		if err := p.cmd.Wait(); err == nil || p.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Errorf("ended with %v", err)
		}
	})
}

// Lookup finds files only (C35 to C48, C53).
func TestLookup(t *testing.T) {
	eachShell(t, func(t *testing.T, env []string) {
		dir := world(t)
		for _, d := range []string{"/one/tool", "/two", "/three"} {
			os.MkdirAll(dir+d, 0o755)
		}
		os.WriteFile(dir+"/two/tool", nil, 0o644)
		os.WriteFile(dir+"/three/tool", nil, 0o755)
		os.WriteFile(dir+"/here", nil, 0o755)
		lookup := func(name string, path *string) (string, error) {
			c := Lookup(name, path, dir)
			return ReadLookup(run(t, env, c, ""), c)
		}
		set := dir + "/one:" + dir + "/two:three"
		if got, err := lookup("tool", &set); err != nil || got != dir+"/three/tool" {
			t.Errorf("tool: %q, %v", got, err)
		}
		empty := ""
		if got, err := lookup("here", &empty); err != nil || strings.TrimSuffix(got, "here") != dir+"//" && got != dir+"/here" {
			t.Errorf("empty PATH: %q, %v", got, err)
		}
		for _, name := range []string{"echo", "[", "kill"} {
			if got, err := lookup(name, nil); err != nil || !strings.HasSuffix(got, "/"+name) {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		}
		if _, err := lookup("x$(touch pwned)'", nil); kindOf(err) != NotFound {
			t.Errorf("strange name: %v", err)
		}
		if _, err := lookup(dir, nil); kindOf(err) != NotExecutable {
			t.Errorf("a directory: %v", err)
		}
	})
}

// The world says where its home is and what it has.
func TestHello(t *testing.T) {
	eachShell(t, func(t *testing.T, env []string) {
		c := Hello()
		w, err := ReadHello(run(t, env, c, ""), c)
		if err != nil || "HOME="+w.Home != env[1] || !w.Stat || !w.Sum || !w.Proc || time.Since(w.Clock).Abs() > time.Hour {
			t.Errorf("%+v, %v", w, err)
		}
		c = Space("/")
		if free, err := ReadSpace(run(t, env, c, ""), c); err != nil || free <= 0 {
			t.Errorf("space: %d, %v", free, err)
		}
	})
}
