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
