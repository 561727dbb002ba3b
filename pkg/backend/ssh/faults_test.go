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
	"testing"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// Hosts that cannot be reached say why, each with its code.
func TestUnreachable(t *testing.T) {
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

// Any login shell carries arguments and values unchanged, and the noise of its
// profile is not seen (C17, C213 to C215).
func TestLoginShells(t *testing.T) {
	args := []string{"", "a b", "c\nd", `"`, "'", `\`, "*", "`id`", "$(id)", "é€😀", "!x", "~", " ", "\t", "x\n"}
	want := "[" + strings.Join(args, "][") + "]"
	for _, shell := range []string{"bash", "dash", "zsh", "fish", "csh", "tcsh", "mksh", "rbash"} {
		t.Run(shell, func(t *testing.T) {
			path := requireShell(t, shell)
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

// A host that allows nothing but SFTP has files with weak versions, and says of
// processes that it has none.
func TestSFTPOnly(t *testing.T) {
	w := startServer(t, "ForceCommand internal-sftp").mustOpen(t, nil)
	if !w.FileDriver().Facts().WeakVersions {
		t.Error("the weakness of the versions is not said")
	}
	dir, fs := tempDir(t), w.Files()
	at := remotefs.AtPath(dir+"/a/b", "")
	put := func(content string, intent remotefs.Intent, version string) (remotefs.WriteOutcome, error) {
		return fs.WriteText(t.Context(), at, remotefs.WriteRequest{Content: strings.NewReader(content), Size: int64(len(content)),
			Intent: intent, Version: version, Mode: -1})
	}
	out, err := put("one\n", remotefs.IntentCreate, "")
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	if _, err := put("two\n", remotefs.IntentCreate, ""); !fault.Is(err, fault.FSNotObserved) {
		t.Errorf("create again: %v", err)
	}
	if _, err := put("longer\n", remotefs.IntentReplace, out.Version); err != nil {
		t.Errorf("replace: %v", err)
	}
	if _, err := put("x", remotefs.IntentReplace, out.Version); !fault.Is(err, fault.FSStaleVersion) {
		t.Errorf("stale: %v", err)
	}
	if text, err := fs.ReadText(t.Context(), at); err != nil || text.Text != "longer\n" {
		t.Errorf("read: %+v, %v", text, err)
	}
	os.Symlink("a/b", dir+"/l")
	if _, entries, err := fs.ListDir(t.Context(), remotefs.AtPath(dir, "")); err != nil || len(entries) != 2 || entries[1].Target.Key != dir+"/a/b" {
		t.Errorf("list: %+v, %v", entries, err)
	}
	if _, _, _, err := run(t, w.Processes(), remoteexec.Spec{Argv: []string{"true"}}); !fault.Is(err, fault.BackendUnsupported) {
		t.Errorf("exec: %v", err)
	}
	if left, _ := filepath.Glob(dir + "/a/.afield-*"); left != nil {
		t.Errorf("left: %q", left)
	}
}

// A login that runs nothing at all says what to try.
func TestNoShellAndNoSFTP(t *testing.T) {
	s := startServer(t, "ForceCommand echo This account is closed; exit 1", "Subsystem none /bin/false")
	fails(t, s.row(nil), fault.BackendUnsupported, "ssh 127.0.0.1 true")
}

// When the connection is lost, that is what is said, and the program dies (C158,
// C209).
func TestLostConnection(t *testing.T) {
	w := startServer(t).mustOpen(t, nil)
	dir := tempDir(t)
	h, err := w.Processes().Spawn(t.Context(), remoteexec.Spec{
		Argv: []string{"sh", "-c", "echo $$ >" + dir + "/pid; echo up; exec sleep 600"}, Cwd: "/", Grace: time.Second,
		Stdout: remoteexec.Output{Mode: remoteexec.OutputPipe}, Stderr: remoteexec.Output{Mode: remoteexec.OutputCollect, MaxBytes: 100}})
	if err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 3)
	if _, err := io.ReadFull(h.Pipe(remoteexec.Stdout), line); err != nil {
		t.Fatal(err)
	}
	pid, _ := os.ReadFile(dir + "/pid")
	w.Cut()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := h.Wait(ctx); !fault.Is(err, fault.ExecTransportLost) {
		t.Errorf("wait: %v", err)
	}
	for ctx.Err() == nil {
		if _, err := os.Stat("/proc/" + strings.TrimSpace(string(pid))); err != nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("process %s lives", pid)
}

// A peer that goes silent is lost after the limit, not waited for.
func TestSilentPeer(t *testing.T) {
	s := startServer(t)
	p := startProxy(t, s.Port)
	write(t, s.Known, strings.Replace(readFile(t, s.Known), fmt.Sprint(s.Port), fmt.Sprint(p.port()), 1))
	w := s.mustOpen(t, map[string]any{"port": int64(p.port()), "deadPeerMs": int64(600), "keepaliveMs": int64(100), "connectTimeoutMs": int64(3000)})
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
