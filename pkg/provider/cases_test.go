package provider_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/provider"
	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// dialled gives the caller's end of a connection to the local world in dir, and
// our end of the socket, to cut it. World "w" is open.
func dialled(t *testing.T, dir string) (*provider.Conn, net.Conn) {
	t.Helper()
	near, far := socketPair(t)
	s := &provider.Server{
		Hello: provider.Hello{Plugin: "p", Version: "1", Providers: []provider.HelloProvider{{Name: "p", Services: []string{"fs", "exec"}, Level: "contract"}}},
		Open: func(ctx context.Context, p provider.OpenParams) (backend.World, provider.Opened, error) {
			return openLocal(ctx, dir)
		},
	}
	served := provider.NewConn(far, provider.Options{Hello: s.Hello, Serve: s.Handler()})
	conn := provider.NewConn(near, provider.Options{Hello: provider.Hello{Name: "afield", Version: "1"}})
	t.Cleanup(func() { conn.Close(); served.Close() })
	if _, err := provider.OpenWorld(context.Background(), conn, provider.OpenParams{World: "w"}, "x"); err != nil {
		t.Fatal(err)
	}
	return conn, near
}

func piped(argv ...string) remoteexec.Spec {
	return remoteexec.Spec{
		Argv: argv, Cwd: "/", Grace: time.Second, Stdin: remoteexec.StdinPipe,
		Stdout: remoteexec.Output{Mode: remoteexec.OutputPipe}, Stderr: remoteexec.Output{MaxBytes: 1 << 16},
	}
}

// Case 115: a consumer that does not read stops the program, and memory stays
// small; after that the rest arrives.
func TestCase115AStuckConsumerStopsTheProgram(t *testing.T) {
	dir := t.TempDir()
	w := overProtocol(t, dir)
	counter := filepath.Join(dir, "n")
	h, err := w.Processes().Spawn(context.Background(), piped("sh", "-c", `while head -c 65536 /dev/zero; do i=$((i+1)); echo $i > "$1"; done`, "sh", counter))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Terminate()
	out := h.Pipe(remoteexec.Stdout)
	if _, err := io.ReadFull(out, make([]byte, 1024)); err != nil {
		t.Fatal(err)
	}
	count := func() int {
		content, _ := os.ReadFile(counter)
		n, _ := strconv.Atoi(strings.TrimSpace(string(content)))
		return n
	}
	n, same := 0, 0
	for deadline := time.Now().Add(30 * time.Second); same < 30; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the program is never stopped")
		}
		if now := count(); now == n && n > 0 {
			same++
		} else {
			n, same = now, 0
		}
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	if n*65536 > 4<<20 || m.HeapAlloc > 16<<20 {
		t.Errorf("the program wrote %d bytes ahead, %d bytes of memory are used", n*65536, m.HeapAlloc)
	}
	if _, err := io.CopyN(io.Discard, out, int64(n+100)*65536); err != nil {
		t.Error(err)
	}
}

// Case 119: half a header, then silence: the call ends by its own limit.
func TestCase119HalfAHeader(t *testing.T) {
	t.Parallel()
	near, far := socketPair(t)
	defer far.Close()
	body, _ := json.Marshal(provider.Hello{Protocol: 1, Plugin: "p", Version: "1", Window: provider.DefaultWindow, MaxStreams: 16})
	far.Write(append(provider.AppendFrame(nil, provider.Frame{Kind: provider.KindHello, Body: body}), 0, 0, 0, 1, 0, 0))
	conn := provider.NewConn(near, provider.Options{Hello: provider.Hello{Version: "1"}})
	defer conn.Close()
	s, err := conn.Call("describe", struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if err := s.Result(ctx, nil); err == nil {
		t.Error("a result came of nothing")
	}
}

// Case 120: content that does not end as announced publishes nothing.
func TestCase120UnfinishedWritesPublishNothing(t *testing.T) {
	dir := t.TempDir()
	for name, end := range map[string]func(s *provider.Stream, cut net.Conn){
		"one byte early": func(s *provider.Stream, _ net.Conn) { send(s, "1234", true) },
		"one byte late":  func(s *provider.Stream, _ net.Conn) { send(s, "123456", true) },
		"cancelled":      func(s *provider.Stream, _ net.Conn) { send(s, "12345", false); s.Cancel() },
		"cut":            func(s *provider.Stream, cut net.Conn) { send(s, "12345", false); cut.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			conn, cut := dialled(t, dir)
			path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
			s, err := conn.Call("fs.write", map[string]any{"world": "w", "at": map[string]string{"path": path}, "bytes": 5, "nonce": "0011223344556677"})
			if err != nil {
				t.Fatal(err)
			}
			end(s, cut)
			if err := s.Result(context.Background(), nil); err == nil {
				t.Error("the write succeeded")
			}
			conn.Close()
			left, _ := os.ReadDir(dir)
			for _, e := range left {
				if e.Name() != ".state" {
					t.Errorf("%s is there", e.Name())
				}
			}
		})
	}
}

func send(s *provider.Stream, content string, fin bool) {
	w := s.Writer(provider.PortInput)
	io.WriteString(w, content)
	if fin {
		w.Close()
	}
}

// Case 121: all bytes from 1 to 255 in arguments, values and names.
func TestCase121AllBytes(t *testing.T) {
	dir := t.TempDir()
	w := overProtocol(t, dir)
	var all []byte
	for b := 1; b < 256; b++ {
		all = append(all, byte(b))
	}
	s := piped("sh", "-c", `printf %s "$1$V"`, "sh", string(all))
	s.Env.Set = map[string]string{"V": string(all)}
	h, err := w.Processes().Spawn(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(h.Pipe(remoteexec.Stdout))
	if err != nil || !bytes.Equal(got, append(bytes.Clone(all), all...)) {
		t.Errorf("%q %v", got, err)
	}
	name := dir + "/" + string(bytes.ReplaceAll(all, []byte("/"), nil))
	out, err := w.Files().WriteText(context.Background(), remotefs.AtPath(name, "/"), remotefs.WriteRequest{Content: strings.NewReader("x"), Size: 1, Mode: -1})
	if err != nil || out.Target.Key != name {
		t.Fatalf("%q %v", out.Target.Key, err)
	}
	if content, err := os.ReadFile(name); err != nil || string(content) != "x" {
		t.Errorf("%q %v", content, err)
	}
}

// Cases 122 and 124: a reader that has enough gives the program a broken pipe,
// and a status of 143 is not a death by TERM.
func TestCases122And124EndsAreFacts(t *testing.T) {
	w := overProtocol(t, t.TempDir())
	run := func(stop bool, argv ...string) remoteexec.Outcome {
		h, err := w.Processes().Spawn(context.Background(), piped(argv...))
		if err != nil {
			t.Fatal(err)
		}
		if stop {
			io.ReadFull(h.Pipe(remoteexec.Stdout), make([]byte, 2))
			h.Pipe(remoteexec.Stdout).Close()
		}
		report, err := h.Wait(context.Background())
		if err != nil {
			t.Error(err)
		}
		return report.Outcome
	}
	for want, o := range map[string]remoteexec.Outcome{
		"{0 SIGPIPE}": run(true, "yes"), "{143 }": run(false, "sh", "-c", "exit 143"), "{0 SIGTERM}": run(false, "sh", "-c", "kill -s TERM $$"),
	} {
		if got := fmt.Sprint(o); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// Case 123: the end of input reaches the program, and one that closes its input
// early neither hangs nor fails the rest.
func TestCase123EndOfInput(t *testing.T) {
	w := overProtocol(t, t.TempDir())
	h, err := w.Processes().Spawn(context.Background(), piped("cat"))
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(h.Stdin(), "x")
	h.Stdin().Close()
	if got, err := io.ReadAll(h.Pipe(remoteexec.Stdout)); string(got) != "x" || err != nil {
		t.Errorf("%q %v", got, err)
	}
	h, err = w.Processes().Spawn(context.Background(), piped("sh", "-c", "exec <&-; echo closed; read x 2>/dev/null; exit 5"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(h.Pipe(remoteexec.Stdout)); string(got) != "closed\n" || err != nil {
		t.Errorf("%q %v", got, err)
	}
	for deadline := time.Now().Add(30 * time.Second); err == nil; {
		if time.Now().After(deadline) {
			t.Fatal("writing goes on for ever")
		}
		_, err = h.Stdin().Write(make([]byte, 65536))
	}
	report, err := h.Wait(context.Background())
	if err != nil || report.Outcome.ExitCode != 5 || fault.CodeOf(err) != "" {
		t.Errorf("%+v %v", report, err)
	}
}
