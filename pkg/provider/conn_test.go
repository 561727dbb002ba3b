package provider

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/afield-dev/afield/pkg/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair joins a caller and a serving side over a real socket.
func pair(t *testing.T, serve Handler) *Conn {
	t.Helper()
	near, far := sockets(t)
	server := NewConn(far, Options{Hello: Hello{Plugin: "test", Version: "1"}, Serve: serve})
	client := NewConn(near, Options{Hello: Hello{Name: "afield", Version: "1"}})
	t.Cleanup(func() {
		client.Close()
		server.Close()
	})
	return client
}

func sockets(t *testing.T) (near, far net.Conn) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if near, err = net.Dial("unix", path); err != nil {
		t.Fatal(err)
	}
	if far, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return near, far
}

// watchdog bounds a test that could hang.
func watchdog(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func echo(s *Stream) {
	w := s.Writer(PortFirst)
	n, err := io.Copy(w, s.Reader(PortInput))
	w.Close()
	if err != nil {
		s.Fail(err)
		return
	}
	s.Finish(map[string]any{"bytes": n})
}

// Content goes both ways at once, whole, through windows much smaller than it.
func TestContentFlowsBothWays(t *testing.T) {
	ctx := watchdog(t)
	c := pair(t, echo)
	s, err := c.Call("echo", nil)
	if err != nil {
		t.Fatal(err)
	}
	sent := sha256.New()
	go func() {
		w := s.Writer(PortInput)
		chunk := bytes.Repeat([]byte("0123456789abcdef"), 10000)
		for range 200 {
			sent.Write(chunk)
			w.Write(chunk)
		}
		w.Close()
	}()
	got := sha256.New()
	n, err := io.Copy(got, s.Reader(PortFirst))
	if err != nil {
		t.Fatal(err)
	}
	var result struct{ Bytes int64 }
	if err := s.Result(ctx, &result); err != nil {
		t.Fatal(err)
	}
	if n != 32000000 || result.Bytes != n || !bytes.Equal(got.Sum(nil), sent.Sum(nil)) {
		t.Errorf("%d bytes came back, the server saw %d, digests equal: %v", n, result.Bytes, bytes.Equal(got.Sum(nil), sent.Sum(nil)))
	}
}

// Case 116: CANCEL gets through while content is outstanding and its consumer
// does not read.
func TestCase116CancelPassesAStuckConsumer(t *testing.T) {
	c := pair(t, func(s *Stream) {
		_, err := io.Copy(s.Writer(PortFirst), neverEnding{s.Context()})
		s.Fail(fault.Wrap(err, fault.FSAborted, "read", "", "read aborted"))
	})
	s, err := c.Call("flood", nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(watchdog(t))
	cancel()
	if err := s.Result(ctx, nil); !fault.Is(err, fault.FSAborted) {
		t.Errorf("error %v, want FS_ABORTED", err)
	}
}

type neverEnding struct{ ctx context.Context }

func (n neverEnding) Read(p []byte) (int, error) { return len(p), n.ctx.Err() }

// Case 117: of 64 streams one is stuck, and the other 63 finish.
func TestCase117OneStuckStreamHoldsUpNobody(t *testing.T) {
	ctx := watchdog(t)
	c := pair(t, func(s *Stream) {
		if _, err := s.Writer(PortFirst).Write(make([]byte, 1<<20)); err != nil {
			s.Fail(err)
			return
		}
		s.Finish(struct{}{})
	})
	stuck, err := c.Call("megabyte", nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 63 {
		s, err := c.Call("megabyte", nil)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, io.LimitReader(s.Reader(PortFirst), 1<<20)); err != nil || n != 1<<20 {
			t.Fatalf("%d bytes, %v", n, err)
		}
		if err := s.Result(ctx, nil); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-stuck.Ended():
		t.Error("the stuck stream ended")
	default:
	}
	stuck.Reader(PortFirst).Close()
	if err := stuck.Result(ctx, nil); err == nil {
		t.Error("the writer of a refused port did not get a broken pipe")
	}
}

// Events come in order, and an error keeps its code, path, hint and retry class.
func TestEventsAndErrorsArrive(t *testing.T) {
	ctx := watchdog(t)
	c := pair(t, func(s *Stream) {
		s.Emit("started", map[string]any{"pid": 7})
		s.Emit("exit", map[string]any{"exitCode": 0})
		s.Fail(fault.New(fault.ExecTransportLost, "spawn", "/x", "lost").WithHint("look").WithRetry(fault.RetryUnknown))
	})
	s, err := c.Call("exec.spawn", nil)
	if err != nil {
		t.Fatal(err)
	}
	err = s.Result(ctx, nil)
	var e *fault.Error
	if !errors.As(err, &e) || e.Code != fault.ExecTransportLost || e.Path != "/x" || e.Hint != "look" || e.Retry != fault.RetryUnknown {
		t.Errorf("error %+v", err)
	}
	var names []string
	for ev := range s.Events() {
		names = append(names, ev.Name)
	}
	if len(names) != 2 || names[0] != "started" || names[1] != "exit" {
		t.Errorf("events %v", names)
	}
}

// Every code of the closed list that travels comes back as itself.
func TestCodesSurviveTheWire(t *testing.T) {
	for _, code := range fault.Codes() {
		w := encodeError(fault.New(code, "op", "", "text"))
		if got := fault.CodeOf(w.decode()); w.Code != "internal" && got != code {
			t.Errorf("%s travels as %s and comes back as %s", code, w.Code, got)
		}
	}
}

// hostile is a peer that writes what it likes.
type hostile struct {
	t    *testing.T
	conn net.Conn
}

func (h hostile) frame(f Frame) {
	if _, err := h.conn.Write(AppendFrame(nil, f)); err != nil {
		h.t.Fatal(err)
	}
}

func (h hostile) hello() {
	body, _ := json.Marshal(Hello{Protocol: 1, Plugin: "hostile", Window: DefaultWindow})
	h.frame(Frame{Kind: KindHello, Body: body})
}

// Case 114 and case 118: what breaks the protocol ends the connection with a
// protocol error; an unknown kind above the critical range is ignored.
func TestCase114BrokenFramesEndTheConnection(t *testing.T) {
	big := binary.BigEndian.AppendUint32(nil, MaxBody+1)
	cases := []struct {
		name string
		send func(hostile)
		ok   bool
	}{
		{"frame over the limit", func(h hostile) { h.conn.Write(append(big, 0, 0, 0, 0, 6, 0, 0, 0)) }, false},
		{"unknown kind 31", func(h hostile) { h.frame(Frame{Kind: 31}) }, false},
		{"unknown kind 200", func(h hostile) {
			h.frame(Frame{Kind: 200, Stream: 1})
			h.frame(Frame{Stream: 1, Kind: KindEnd, Body: []byte("{}")})
		}, true},
		{"END of a stream that never was", func(h hostile) { h.frame(Frame{Stream: 3, Kind: KindEnd, Body: []byte("{}")}) }, false},
		{"even stream", func(h hostile) { h.frame(Frame{Stream: 2, Kind: KindData}) }, false},
		{"DATA after FIN", func(h hostile) {
			h.frame(Frame{Stream: 1, Kind: KindData, Port: 1, FIN: true})
			h.frame(Frame{Stream: 1, Kind: KindData, Port: 1, Body: []byte("x")})
		}, false},
		{"second END", func(h hostile) {
			h.frame(Frame{Stream: 1, Kind: KindEnd, Body: []byte("{}")})
			h.frame(Frame{Stream: 1, Kind: KindEnd, Body: []byte("{}")})
		}, false},
		{"credit exceeded", func(h hostile) {
			for range 5 {
				h.frame(Frame{Stream: 1, Kind: KindData, Port: 1, Body: make([]byte, MaxData)})
			}
		}, false},
		{"text on standard output", func(h hostile) { h.conn.Write([]byte("Debugger listening on ws://")) }, false},
		{"half a header", func(h hostile) { h.conn.Write(big[:3]); h.conn.(*net.UnixConn).CloseWrite() }, false},
		{"CALL from the serving side", func(h hostile) { h.frame(Frame{Stream: 5, Kind: KindCall, Body: []byte(`{"m":"x"}`)}) }, false},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			ctx := watchdog(t)
			near, far := sockets(t)
			h := hostile{t, far}
			defer far.Close()
			c := NewConn(near, Options{Hello: Hello{Name: "afield"}})
			defer c.Close()
			h.hello()
			if _, err := c.Greeted(ctx); err != nil {
				t.Fatal(err)
			}
			s, err := c.Call("x", nil)
			if err != nil {
				t.Fatal(err)
			}
			tc.send(h)
			go io.Copy(io.Discard, far)
			if tc.ok {
				if err := s.Result(ctx, nil); err != nil {
					t.Error(err)
				}
				return
			}
			select {
			case <-c.Closed():
			case <-ctx.Done():
				t.Fatal("the connection goes on")
			}
			if !fault.Is(c.Err(), fault.PluginProtocol) {
				t.Errorf("error %v, want PLUGIN_PROTOCOL", c.Err())
			}
		})
	}
}

// A connection that ends fails its calls, and nobody waits for ever.
func TestLostConnectionFailsCalls(t *testing.T) {
	ctx := watchdog(t)
	near, far := sockets(t)
	c := NewConn(near, Options{Hello: Hello{Name: "afield"}})
	defer c.Close()
	hostile{t, far}.hello()
	s, err := c.Call("x", nil)
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan error, 1)
	go func() {
		_, err := s.Reader(PortFirst).Read(make([]byte, 1))
		read <- err
	}()
	far.Close()
	if err := s.Result(ctx, nil); !fault.Is(err, fault.PluginCrashed) {
		t.Errorf("error %v, want PLUGIN_CRASHED", err)
	}
	if err := <-read; err == nil || errors.Is(err, io.EOF) {
		t.Errorf("a lost connection reads as %v, an end", err)
	}
	if _, err := c.Call("y", nil); err == nil {
		t.Error("a call on a lost connection succeeds")
	}
}

// Case 125: no bytes of a peer crash the reader or make it allocate more than a
// frame.
func FuzzReadFrame(f *testing.F) {
	f.Add(AppendFrame(nil, Frame{Stream: 1, Kind: KindCall, Body: []byte(`{"m":"fs.read","p":{}}`)}))
	f.Add(AppendFrame(nil, Frame{Stream: 1, Kind: KindData, Port: 1, FIN: true, Body: []byte("x")}))
	f.Add([]byte("hello, I am not a frame"))
	f.Add([]byte{0, 0x10, 0, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		for {
			frame, err := ReadFrame(r)
			if err != nil {
				return
			}
			if len(frame.Body) > MaxBody {
				t.Fatalf("a body of %d bytes", len(frame.Body))
			}
			again, err := ReadFrame(bytes.NewReader(AppendFrame(nil, frame)))
			if err != nil || !bytes.Equal(again.Body, frame.Body) || again.Stream != frame.Stream || again.FIN != frame.FIN {
				t.Fatalf("%v written and read again is %v, %v", frame, again, err)
			}
		}
	})
}

// Both sides stay alive under random bytes behind a good beginning.
func FuzzConn(f *testing.F) {
	hello, _ := json.Marshal(Hello{Protocol: 1, Window: DefaultWindow})
	good := AppendFrame(nil, Frame{Kind: KindHello, Body: hello})
	f.Add(append(good, AppendFrame(nil, Frame{Stream: 1, Kind: KindCall, Body: []byte(`{"m":"echo"}`)})...))
	f.Add(append(good, AppendFrame(nil, Frame{Stream: 1, Kind: KindEnd, Body: []byte(`{"error":{"code":"x"}}`)})...))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, serve := range []Handler{nil, echo} {
			c := NewConn(&recording{Reader: bytes.NewReader(b)}, Options{Serve: serve})
			<-c.Closed()
			c.Close()
		}
	})
}

// recording reads recorded bytes and forgets what is written.
type recording struct{ *bytes.Reader }

func (*recording) Write(p []byte) (int, error) { return len(p), nil }
func (*recording) Close() error                { return nil }
