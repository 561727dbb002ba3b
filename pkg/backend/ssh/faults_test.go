package ssh_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// Hosts that cannot be reached say why, each with its code.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	fails(t, s.row(map[string]any{"host": "no-such-host.invalid"}), fault.BackendUnreachable, "does not resolve")
	fails(t, s.row(map[string]any{"port": int64(freePort(t))}), fault.BackendUnreachable, "refuses")
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	port := int64(silent.Addr().(*net.TCPAddr).Port)
	fails(t, s.row(map[string]any{"port": port, "connectTimeoutMs": int64(300)}), fault.BackendUnreachable, "does not answer within 300ms")
	fails(t, s.row(map[string]any{"identityFile": t.TempDir() + "/none"}), fault.BackendAuthFailed, "tried no key to offer")
}

// One session at a time, or none: all works over more connections, or the error
// says so.
func TestMaxSessions(t *testing.T) {
	t.Parallel()
	w := startServer(t, "MaxSessions 1").mustOpen(t, nil)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			_, out, _, err := run(t, w.Processes(), remoteexec.Spec{Argv: []string{"echo", fmt.Sprint(i)}})
			if err != nil || out != fmt.Sprintf("%d\n", i) {
				t.Errorf("%d: %q, %v", i, out, err)
			}
		})
	}
	wg.Wait()
	none := startServer(t, "MaxSessions 0")
	fails(t, none.row(nil), fault.BackendUnsupported, "opens no session")
}

// 64 programs at once on one host (C13).
func TestManyAtOnce(t *testing.T) {
	w := startServer(t).mustOpen(t, nil)
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			_, out, _, err := run(t, w.Processes(), remoteexec.Spec{Argv: []string{"echo", fmt.Sprint(i)}})
			if err != nil || out != fmt.Sprintf("%d\n", i) {
				t.Errorf("%d: %q, %v", i, out, err)
			}
		})
	}
	wg.Wait()
}

// Many commands at once against a server that turns away those which it has no room
// for: all are let in after a while.
func TestManyConnectionsAtOnce(t *testing.T) {
	t.Parallel()
	s := startServer(t, "MaxStartups 3")
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if _, err := open(t, s.row(nil), nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// Any login shell carries arguments and values unchanged, and the noise of its
// profile is not seen (C17, C213 to C215).
func TestLoginShells(t *testing.T) {
	t.Parallel()
	args := []string{"", "a b", "c\nd", `"`, "'", `\`, "*", "`id`", "$(id)", "é€😀", "!x", "~", " ", "\t", "x\n"}
	want := "[" + strings.Join(args, "][") + "]"
	for _, shell := range []string{"bash", "dash", "zsh", "fish", "csh", "tcsh", "mksh", "rbash", "busybox"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			path := requireShell(t, shell)
			if shell == "busybox" { // a shell by its name
				ash := tempDir(t) + "/ash"
				if err := os.Symlink(path, ash); err != nil {
					t.Fatal(err)
				}
				path = ash
			}
			user, home := login(t, path, "")
			own := startServer(t, "SetEnv HOME="+home)
			for _, file := range []string{".bashrc", ".zshenv", ".cshrc", ".config/fish/config.fish"} {
				os.MkdirAll(filepath.Dir(home+"/"+file), 0o755)
				os.WriteFile(home+"/"+file, []byte("echo 'welcome to the host'\n"), 0o644)
			}
			w := own.mustOpen(t, map[string]any{"user": user})
			_, out, log, err := run(t, w.Processes(), remoteexec.Spec{Argv: append([]string{"printf", "[%s]"}, args...)})
			if err != nil || out != want || log != "" {
				t.Errorf("got %q %q, %v", out, log, err)
			}
			big := strings.Repeat("x", 100_000)
			_, out, _, err = run(t, w.Processes(), remoteexec.Spec{
				Argv: []string{"sh", "-c", "echo ${#1} ${#V} $V2", "x", big},
				Env:  remoteexec.Env{Set: map[string]string{"V": big, "V2": "it's \"me\" !"}}})
			if err != nil || out != "100000 100000 it's \"me\" !\n" {
				t.Errorf("big: %.80q, %v", out, err)
			}
			got, err := w.Files().Resolve(t.Context(), "x", "")
			if err != nil || got.Key != home+"/x" {
				t.Errorf("home: %+v, %v", got, err)
			}
		})
	}
}

func requireShell(t *testing.T, name string) string {
	t.Helper()
	for _, dir := range []string{"/bin/", "/usr/bin/"} {
		if _, err := os.Stat(dir + name); err == nil {
			return dir + name
		}
	}
	if os.Getenv("AFIELD_TEST_REQUIRE") != "" {
		t.Fatalf("%s is required", name)
	}
	t.Skipf("SKIPPED: %s is not installed", name)
	return ""
}

// A login that runs nothing at all says what to try.
func TestNoShellAndNoSFTP(t *testing.T) {
	t.Parallel()
	s := startServer(t, "ForceCommand echo This account is closed; exit 1", "Subsystem none /bin/false")
	fails(t, s.row(nil), fault.BackendUnsupported, "ssh 127.0.0.1 true")
}

// When the connection is lost, that is what is said, and the program dies, whether
// it has input or not (C158, C209).
func TestLostConnection(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for name, stdin := range map[string]remoteexec.StdinMode{"without input": remoteexec.StdinIgnore, "with input": remoteexec.StdinPipe} {
		w, dir := s.mustOpen(t, nil), tempDir(t)
		h, err := w.Processes().Spawn(t.Context(), remoteexec.Spec{
			Argv: []string{"sh", "-c", "echo $$ >" + dir + "/pid; echo up; exec sleep 600"}, Cwd: "/", Grace: time.Second, Stdin: stdin,
			Stdout: remoteexec.Output{Mode: remoteexec.OutputPipe}, Stderr: remoteexec.Output{Mode: remoteexec.OutputCollect, MaxBytes: 100}})
		if err != nil {
			t.Fatal(err)
		}
		line := make([]byte, 3)
		if _, err := io.ReadFull(h.Pipe(remoteexec.Stdout), line); err != nil {
			t.Fatal(err)
		}
		w.Cut()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if _, err := h.Wait(ctx); !fault.Is(err, fault.ExecTransportLost) {
			t.Errorf("%s: %v", name, err)
		}
		awaitGone(t, strings.TrimSpace(readFile(t, dir+"/pid")))
	}
}

// awaitGone waits until a process of this machine has ended.
func awaitGone(t *testing.T, pid string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat("/proc/" + pid); err != nil {
			return
		}
	}
	t.Errorf("process %s lives", pid)
}

// A peer that goes silent is lost after the limit, not waited for.
func TestSilentPeer(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := startProxy(t, s.Port)
	write(t, s.Known, strings.Replace(readFile(t, s.Known), fmt.Sprint(s.Port), fmt.Sprint(p.port()), 1))
	w := s.mustOpen(t, map[string]any{"port": int64(p.port()), "deadPeerMs": int64(2000), "keepaliveMs": int64(300), "connectTimeoutMs": int64(3000)})
	h, err := w.Processes().Spawn(t.Context(), remoteexec.Spec{Argv: []string{"sleep", "600"}, Cwd: "/", Grace: time.Second,
		Stdout: remoteexec.Output{Mode: remoteexec.OutputCollect, MaxBytes: 1}, Stderr: remoteexec.Output{Mode: remoteexec.OutputCollect, MaxBytes: 1}})
	if err != nil {
		t.Fatal(err)
	}
	<-h.Started()
	p.mute.Store(true)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := h.Wait(ctx); !fault.Is(err, fault.ExecTransportLost) || !strings.Contains(err.Error(), "no sign of life") {
		t.Errorf("wait: %v", err)
	}
	p.mute.Store(false)
}

func readFile(t testing.TB, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// proxy stands between client and server: it can cut the connection after a
// number of bytes from the client, and go silent.
type proxy struct {
	l      net.Listener
	target int
	mute   atomic.Bool
	// cutAfter, if positive, is how many bytes of the next connection's client are
	// still passed on once armed.
	cutAfter atomic.Int64
	armed    atomic.Bool
	passed   atomic.Int64
}

func startProxy(t testing.TB, target int) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{l: l, target: target}
	t.Cleanup(func() { l.Close() })
	go p.serve()
	return p
}

func (p *proxy) port() int { return p.l.Addr().(*net.TCPAddr).Port }

func (p *proxy) serve() {
	for {
		c, err := p.l.Accept()
		if err != nil {
			return
		}
		up, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", p.target))
		if err != nil {
			c.Close()
			continue
		}
		both := func() { c.Close(); up.Close() }
		go func() { defer both(); p.copy(up, c, true) }()
		go func() { defer both(); p.copy(c, up, false) }()
	}
}

// copy passes bytes on; those of the client count.
func (p *proxy) copy(to, from net.Conn, count bool) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && !p.mute.Load() {
			if count && p.armed.Load() {
				left := p.cutAfter.Load() - p.passed.Load()
				if int64(n) >= left {
					to.Write(buf[:max(0, left)])
					p.armed.Store(false)
					return
				}
				p.passed.Add(int64(n))
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// A connection cut at any step of a write leaves the old content or the new one,
// whole, and says unknown where it cannot decide (case 187, S-13).
func TestWriteCutAtEveryStep(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := startProxy(t, s.Port)
	write(t, s.Known, strings.Replace(readFile(t, s.Known), fmt.Sprint(s.Port), fmt.Sprint(p.port()), 1))
	w := s.mustOpen(t, map[string]any{"port": int64(p.port())})
	dir := tempDir(t)
	content := strings.Repeat("new ", 2000)
	seen := map[string]int{}
	for cut := int64(100); cut < 18000; cut += 900 {
		write(t, dir+"/f", "old")
		p.passed.Store(0)
		p.cutAfter.Store(cut)
		p.armed.Store(true)
		_, err := w.Files().WriteText(t.Context(), remotefs.AtPath(dir+"/f", ""), remotefs.WriteRequest{
			Content: strings.NewReader(content), Size: int64(len(content)), Mode: -1})
		p.armed.Store(false)
		got := readFile(t, dir+"/f")
		var f *fault.Error
		switch {
		case err == nil && got != content:
			t.Errorf("cut after %d: success, and the file holds %.20q", cut, got)
		case err != nil && got != "old" && (!errors.As(err, &f) || f.Retry != fault.RetryUnknown):
			t.Errorf("cut after %d: %v, and the file holds %.20q", cut, err, got)
		case got != "old" && got != content:
			t.Errorf("cut after %d: the file holds %.20q", cut, got)
		}
		if err != nil {
			seen["failed"]++
		} else {
			seen["done"]++
		}
	}
	if seen["failed"] == 0 || seen["done"] == 0 {
		t.Errorf("the cuts hit only one side: %v", seen)
	}
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		left, _ := filepath.Glob(dir + "/.afield-*")
		if left == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("left: %q", left)
		}
	}
}

// A login whose home directory is missing works with absolute paths, and says
// what is missing of others.
func TestHomeMissing(t *testing.T) {
	t.Parallel()
	w := startServer(t, "SetEnv HOME=/nonexistent/home").mustOpen(t, nil)
	dir := tempDir(t)
	write(t, dir+"/f", "here")
	if text, err := w.Files().ReadText(t.Context(), remotefs.AtPath(dir+"/f", "")); err != nil || text.Text != "here" {
		t.Errorf("absolute: %+v, %v", text, err)
	}
	if _, err := w.Files().ReadText(t.Context(), remotefs.AtPath("f", "")); !fault.Is(err, fault.FSNotFound) {
		t.Errorf("relative: %v", err)
	}
	cwd, _ := w.Cwd(t.Context())
	_, _, _, err := run(t, w.Processes(), remoteexec.Spec{Argv: []string{"true"}, Cwd: cwd})
	if !fault.Is(err, fault.ExecCwdMissing) || !strings.Contains(err.Error(), "/nonexistent/home") {
		t.Errorf("exec: %v", err)
	}
}

// A login shell that ends at once leaves the files, by SFTP; of programs it is
// said what the shell printed.
func TestLoginShellThatExits(t *testing.T) {
	t.Parallel()
	user, home := login(t, "/usr/sbin/nologin", "")
	w := startServer(t, "SetEnv HOME="+home).mustOpen(t, map[string]any{"user": user})
	write(t, home+"/f", "here")
	os.Chmod(home+"/f", 0o644)
	if text, err := w.Files().ReadText(t.Context(), remotefs.AtPath(home+"/f", "")); err != nil || text.Text != "here" {
		t.Errorf("read: %+v, %v", text, err)
	}
	_, _, _, err := run(t, w.Processes(), remoteexec.Spec{Argv: []string{"true"}})
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != fault.BackendUnsupported || !strings.Contains(f.Message, "no shell") || f.Hint == "" || strings.Contains(f.Message, "\n") {
		t.Errorf("exec: %v", err)
	}
}

// A host without the SFTP subsystem lacks nothing as long as it has a shell.
func TestNoSFTP(t *testing.T) {
	t.Parallel()
	w := startServer(t, "Subsystem none /bin/false").mustOpen(t, nil)
	dir := tempDir(t)
	if _, err := w.Files().WriteText(t.Context(), remotefs.AtPath(dir+"/f", ""), remotefs.WriteRequest{
		Content: strings.NewReader("x"), Size: 1, Mode: -1}); err != nil {
		t.Error(err)
	}
}

// A server that closes a session or the connection under a program: that is said,
// and is no exit code (RS-7).
func TestServerCloses(t *testing.T) {
	t.Parallel()
	w := startServer(t, "ChannelTimeout session:*=4").mustOpen(t, nil)
	_, _, _, err := run(t, w.Processes(), remoteexec.Spec{Argv: []string{"sleep", "600"}})
	if !fault.Is(err, fault.ExecTransportLost) || !strings.Contains(err.Error(), "closed by the server") {
		t.Errorf("%v", err)
	}
}

// A full disk is an error of its own; the old content stays, and nothing else.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string][]string{"shell": nil, "sftp": {sftpOnly}} {
		t.Run(name, func(t *testing.T) {
			w := startServer(t, lines...).mustOpen(t, nil)
			dir := tempDir(t)
			if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
				if os.Getenv("AFIELD_TEST_REQUIRE") != "" {
					t.Fatalf("mounting is required: %v", err)
				}
				t.Skipf("SKIPPED: needs mounting: %v", err)
			}
			t.Cleanup(func() { syscall.Unmount(dir, 0) })
			write(t, dir+"/f", "old")
			content := strings.Repeat("x", 1<<20)
			_, err := w.Files().WriteText(t.Context(), remotefs.AtPath(dir+"/f", ""), remotefs.WriteRequest{
				Content: strings.NewReader(content), Size: int64(len(content)), Mode: -1})
			if !fault.Is(err, fault.FSIOError) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v", err)
			}
			if name == "shell" && !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("the disk is not named: %v", err)
			}
			if left, _ := os.ReadDir(dir); len(left) != 1 || readFile(t, dir+"/f") != "old" {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// What is reserved says so before anything is dialled.
func TestRemoteProgramIsRefused(t *testing.T) {
	t.Parallel()
	fails(t, map[string]any{"host": "unused.invalid", "remoteProgram": "/opt/afield"}, fault.BackendUnsupported, "remoteProgram")
}
