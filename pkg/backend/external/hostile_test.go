package external

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/provider"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// The test binary is the hostile provider, and a caller that is killed.
func TestMain(m *testing.M) {
	switch {
	case os.Getenv("AFIELD_PROVIDER") == "1":
		hostile(os.Args[1])
	case os.Getenv("EXTERNAL_TEST_CALLER") != "":
		w, err := Open(context.Background(), request("forks"))
		fmt.Println(w != nil, err)
		hang()
	default:
		os.Exit(m.Run())
	}
}

// hostile does one of the things that a provider must not do.
func hostile(what string) {
	out := os.Stdout
	switch what {
	case "exits":
		fmt.Fprintln(os.Stderr, "last words")
		os.Exit(3)
	case "killed":
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "prints":
		out.Write(bytes.Repeat([]byte("noise\n"), 200000))
		hang()
	case "silent":
		hang()
	case "greeting": // case 105, before the start line
		fmt.Fprintln(out, "hello")
	}
	provider.Announce(out, os.Getenv("AFIELD_NONCE"))
	switch what {
	case "prints after": // case 105, after it
		fmt.Fprintln(out, "hello, I am a log line")
		hang()
	case "huge":
		out.Write([]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 1, 0, 0, 0})
		hang()
	case "no hello":
		hang()
	}
	say := func(f provider.Frame) { out.Write(provider.AppendFrame(nil, f)) }
	hello := provider.Hello{Protocol: 1, Plugin: "p", Version: "1.0.0", Window: provider.DefaultWindow, MaxStreams: 256,
		Providers: []provider.HelloProvider{{Name: "p", Services: []string{"fs"}, Level: "contract"}}}
	if what == "protocol 2" { // case 111
		hello.Protocol = 2
	}
	body, _ := json.Marshal(hello)
	if what != "before hello" {
		say(provider.Frame{Kind: provider.KindHello, Body: body})
	}
	switch what {
	case "before hello":
		say(provider.Frame{Kind: provider.KindLog, Body: []byte(`{"level":"info","msg":"x"}`)})
		hang()
	case "stderr": // case 107
		os.Stderr.Write(bytes.Repeat([]byte("0123456789abcde\n"), 10<<16))
	case "deaf": // case 109
		go func() {
			for {
				time.Sleep(time.Hour)
			}
		}()
	}
	answer(what, say)
}

// answer opens the world and misbehaves in the first call after that.
func answer(what string, say func(provider.Frame)) {
	for {
		f, err := provider.ReadFrame(os.Stdin)
		if err != nil {
			if what == "deaf" {
				hang()
			}
			return
		}
		if what == "dies in content" && f.Kind == provider.KindData && !f.FIN || what == "dies behind content" && f.FIN {
			os.Exit(5)
		}
		if f.Kind != provider.KindCall {
			if f.Kind == provider.KindCancel && f.Stream == 1 {
				say(provider.Frame{Stream: 1, Kind: provider.KindEnd, Body: []byte("{}")})
			}
			continue
		}
		var call struct {
			Method string `json:"m"`
		}
		json.Unmarshal(f.Body, &call)
		if call.Method == "world.open" {
			say(provider.Frame{Stream: f.Stream, Kind: provider.KindEvent, Body: []byte(`{"e":"opened","cwd":"/","platform":"linux/amd64","pathStyle":"posix","facts":{}}`)})
			if what == "forks" {
				fork()
			}
			continue
		}
		misbehave(what, f.Stream, say)
	}
}

func misbehave(what string, stream uint32, say func(provider.Frame)) {
	big := make([]byte, provider.MaxData)
	switch what {
	case "credit": // case 118
		for {
			say(provider.Frame{Stream: stream, Kind: provider.KindData, Port: 1, Body: big})
		}
	case "logs":
		for {
			say(provider.Frame{Kind: provider.KindLog, Body: []byte(`{"level":"info","msg":"` + strings.Repeat("x", 1000) + `"}`)})
		}
	case "events":
		for {
			say(provider.Frame{Stream: stream, Kind: provider.KindEvent, Body: []byte(`{"e":"x"}`)})
		}
	case "pings":
		for {
			say(provider.Frame{Kind: provider.KindPing, Body: make([]byte, 8)})
		}
	case "big pings":
		for {
			say(provider.Frame{Kind: provider.KindPing, Body: make([]byte, 1<<20)})
		}
	case "window":
		for {
			say(provider.Frame{Stream: stream, Kind: provider.KindWindow, Port: 0, Body: []byte{0x7f, 0xff, 0xff, 0xff}})
		}
	case "unknown":
		for {
			say(provider.Frame{Kind: 200, Body: make([]byte, 1<<20)})
		}
	case "crash":
		os.Exit(4)
	case "end twice":
		say(provider.Frame{Stream: stream, Kind: provider.KindEnd, Body: []byte("{}")})
		say(provider.Frame{Stream: stream, Kind: provider.KindEnd, Body: []byte("{}")})
	case "bad json":
		say(provider.Frame{Stream: stream, Kind: provider.KindEnd, Body: []byte("{")})
	case "never", "dies in content", "dies behind content":
	default:
		say(provider.Frame{Stream: stream, Kind: provider.KindEnd, Body: []byte(`{"target":{"key":"/x","displayPath":"/x","processPath":"/x","url":"file:///x"},"info":null}`)})
	}
}

// fork leaves children in the group, one of which does not end when asked.
func fork() {
	for _, script := range []string{"sleep 300", `trap "" TERM HUP; while :; do sleep 300; done`} {
		c := exec.Command("sh", "-c", script)
		if c.Start() == nil {
			fmt.Fprintln(os.Stderr, "child", c.Process.Pid)
			os.WriteFile(filepath.Join(os.Getenv("TMPDIR"), strconv.Itoa(c.Process.Pid)+".pid"), nil, 0o600)
		}
	}
}

func request(what string) backend.OpenRequest {
	exe, _ := os.Executable()
	return backend.OpenRequest{
		Config:  map[string]any{"argv": []any{exe, what}, "startTimeoutMs": int64(2000), "env": []any{"GORACE"}},
		Environ: append(os.Environ(), "GORACE=atexit_sleep_ms=0"), HostDir: os.TempDir(), Log: slog.New(slog.DiscardHandler),
	}
}

// peak gives the most memory that f lets us use, in bytes.
func peak(f func()) uint64 {
	var most atomic.Uint64
	stop, done := make(chan struct{}), make(chan struct{})
	runtime.GC()
	go func() {
		defer close(done)
		var m runtime.MemStats
		for {
			runtime.ReadMemStats(&m)
			most.Store(max(most.Load(), m.HeapAlloc))
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	f()
	close(stop)
	<-done
	return most.Load()
}

// Cases 106 and 111, and what comes before a world: a typed error with the facts.
func TestHostileStart(t *testing.T) {
	t.Parallel()
	for what, want := range map[string]struct {
		code  fault.Code
		words string
	}{
		"exits": {fault.PluginStartFailed, "exit status 3); its last words: last words"}, "killed": {fault.PluginStartFailed, "signal: killed"},
		"prints": {fault.PluginStartFailed, `it printed "noise`}, "silent": {fault.PluginStartFailed, "within its limit"},
		"prints after": {fault.PluginProtocol, `"hello, I am`}, "huge": {fault.PluginProtocol, "over the limit"}, "no hello": {fault.PluginStartFailed, ""},
		"before hello": {fault.PluginProtocol, "before HELLO"}, "protocol 2": {fault.PluginProtocol, "protocol 2, we speak 1"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			_, err := Open(context.Background(), request(what))
			if fault.CodeOf(err) != want.code || !strings.Contains(fmt.Sprint(err), want.words) {
				t.Errorf("%s %v", fault.CodeOf(err), err)
			}
		})
	}
}

// A provider that floods, lies, crashes or never answers can neither hang nor
// bloat us: the call ends with an error, and all of them together use less than
// 64 MiB of memory.
func TestHostileCall(t *testing.T) {
	used := peak(func() {
		t.Run("call", func(t *testing.T) {
			for what, want := range map[string]fault.Code{
				"credit": fault.PluginProtocol, "logs": fault.FSAborted, "events": fault.PluginProtocol, "pings": fault.FSAborted, "big pings": fault.PluginProtocol,
				"window": fault.PluginProtocol, "unknown": fault.FSAborted, "crash": fault.PluginCrashed, "bad json": fault.PluginProtocol,
				"never": fault.FSAborted, "greeting": "", "stderr": "",
			} {
				t.Run(what, func(t *testing.T) {
					t.Parallel()
					hostileCall(t, what, want)
				})
			}
		})
	})
	if used > 64<<20 {
		t.Errorf("%d bytes of memory were used", used)
	}
}

// hostileCall makes one call, with a deadline, and wants its error. One that the
// deadline has ended may also end by the connection's loss.
func hostileCall(t *testing.T, what string, want fault.Code) {
	r := request(what)
	r.Config["startTimeoutMs"] = int64(60_000) // it starts well, however busy the machine is
	w, err := Open(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close(context.Background())
	ctx, cancel := context.WithTimeoutCause(context.Background(), 500*time.Millisecond, fault.ErrDeadline)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, _, err := w.Files().Stat(ctx, remotefs.AtPath("/x", "/"))
		ended <- err
	}()
	select {
	case err := <-ended:
		if got := fault.CodeOf(err); got != want && (want != fault.FSAborted || got == "") {
			t.Errorf("%s: %v", got, err)
		}
	case <-time.After(60 * time.Second):
		t.Error("the call hangs")
	}
}

// Case 110: a provider that dies in a write, before the end of the content or
// behind it: the outcome is unknown, and the error says so.
func TestCase110CrashInAWrite(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"dies in content", "dies behind content"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w, err := Open(context.Background(), request(what))
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close(context.Background())
			_, err = w.Files().WriteText(context.Background(), remotefs.AtPath("/x", "/"), remotefs.WriteRequest{Content: strings.NewReader("content"), Size: 7, Mode: -1})
			var f *fault.Error
			if !errors.As(err, &f) || f.Code != fault.PluginCrashed || f.Retry != fault.RetryUnknown {
				t.Errorf("%v", err)
			}
		})
	}
}

// Case 109: a provider that ignores the end of its input is killed, and nothing
// of its group is left; also what a well-behaved one has left behind.
func TestStopLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"deaf", "forks"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w, err := Open(context.Background(), request(what))
			if err != nil {
				t.Fatal(err)
			}
			pid := w.process.cmd.Process.Pid
			w.Close(context.Background())
			awaitGone(t, pid)
		})
	}
}

// awaitGone waits until a process group has no member that runs.
func awaitGone(t *testing.T, group int) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		var left []string
		stats, _ := filepath.Glob("/proc/[0-9]*/stat")
		for _, path := range stats {
			content, _ := os.ReadFile(path)
			_, rest, _ := strings.Cut(string(content), ") ")
			if f := strings.Fields(rest); len(f) > 2 && f[0] != "Z" && f[2] == strconv.Itoa(group) {
				left = append(left, path)
			}
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("still there: %v", left)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Case 108: when we are killed, the provider and its children end.
func TestKilledCallerLeavesNothing(t *testing.T) {
	t.Parallel()
	exe, _ := os.Executable()
	dir := t.TempDir()
	c := exec.Command(exe)
	c.Env = append(os.Environ(), "EXTERNAL_TEST_CALLER=1", "TMPDIR="+dir)
	out, err := c.StdoutPipe()
	if err != nil || c.Start() != nil {
		t.Fatal(err)
	}
	line := make([]byte, 64)
	if n, err := out.Read(line); err != nil || !strings.HasPrefix(string(line[:n]), "true") {
		t.Fatalf("%q %v", line[:n], err)
	}
	var pids []string
	for deadline := time.Now().Add(30 * time.Second); len(pids) < 2 && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		pids, _ = filepath.Glob(filepath.Join(dir, "*.pid"))
	}
	if len(pids) < 2 {
		t.Fatal("the provider has no children")
	}
	pid, _ := strconv.Atoi(strings.TrimSuffix(filepath.Base(pids[0]), ".pid"))
	group, err := syscall.Getpgid(pid)
	if err != nil || group == syscall.Getpgrp() {
		t.Fatalf("group %d %v", group, err)
	}
	c.Process.Kill()
	c.Wait()
	awaitGone(t, group)
}

// Case 112: a chain of providers that start each other ends.
func TestDepth(t *testing.T) {
	req := request("greeting")
	for depth, code := range map[string]fault.Code{"3": "", "4": fault.PluginStartFailed, "9": fault.PluginStartFailed} {
		req.Environ = append(os.Environ(), "AFIELD_DEPTH="+depth)
		w, err := Open(context.Background(), req)
		if fault.CodeOf(err) != code {
			t.Errorf("%s: %v", depth, err)
		}
		if err == nil {
			w.Close(context.Background())
		}
	}
}

// hang waits for ever.
func hang() {
	for {
		time.Sleep(time.Hour)
	}
}
