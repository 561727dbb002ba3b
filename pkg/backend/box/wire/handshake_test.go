package wire_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/afield-dev/afield/pkg/backend/box/boxtest"
	"github.com/afield-dev/afield/pkg/backend/box/wire"
)

var sleeper = wire.Start{Argv: []string{"sleep", "300"}, Cwd: boxtest.Workspace}

// A start confirmation without a usable process id, an exit, or an error is a
// failed start; the socket is closed (C202, RS-5).
func TestHandshakeRefused(t *testing.T) {
	s := newStand(t, boxtest.Options{})
	id := s.box()
	for _, c := range []struct {
		frames string
		text   string
	}{
		{`{"type":"started"}`, "usable process id"},
		{`{"type":"started","pid":0}`, "usable process id"},
		{`{"type":"started","pid":-3}`, "usable process id"},
		{`{"type":"started","pid":"412"}`, "usable process id"},
		{`{"type":"started","pid":1.5}`, "usable process id"},
		{`{"type":"exit","code":0}`, "before it started"},
		{`{"type":"error","message":"no box_test for you"}`, "no *** for you"},
	} {
		s.Fault(boxtest.Fault{Match: "exec-session", Times: 1, Session: &boxtest.SessionFault{
			Started: []string{"junk", `{"type":"hello"}`, c.frames}}})
		_, err := s.Open(t.Context(), id, sleeper)
		if err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", c.frames, err)
		}
	}
	closed(t, s)
}

// closed holds that every socket is closed soon.
func closed(t *testing.T, s *stand) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); s.Sessions() != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d sockets are open", s.Sessions())
		}
	}
}

// One limit covers the handshake; frames that mean nothing do not extend it
// (C201, RS-4).
func TestHandshakeLimit(t *testing.T) {
	s := newStand(t, boxtest.Options{})
	id := s.box()
	hasty, err := wire.New(wire.Config{BaseURL: s.URL(), Key: s.Key(), StartLimit: 150 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer hasty.Close()
	noise := make([]string, 1000)
	for i := range noise {
		noise[i] = `{"type":"noise"}`
	}
	for _, f := range []boxtest.Fault{
		{Session: &boxtest.SessionFault{Silent: true}},
		{Session: &boxtest.SessionFault{Started: noise}},
		{Hang: true},
	} {
		f.Match, f.Times = "exec-session", 1
		s.Fault(f)
		_, err := hasty.Open(t.Context(), id, sleeper)
		var e *wire.Error
		if !errors.As(err, &e) || !e.Slow {
			t.Errorf("%+v: %v", f, err)
		}
	}
	closed(t, s)
}

// The caller's end counts until the start frame is sent (RS-2, RS-3); Close
// counts always.
func TestHandshakeIsGivenUp(t *testing.T) {
	s := newStand(t, boxtest.Options{})
	id := s.box()
	s.Fault(boxtest.Fault{Match: "exec-session", Times: 1, Hang: true})
	reason := errors.New("changed my mind")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(30*time.Millisecond, func() { cancel(reason) })
	if _, err := s.Open(ctx, id, sleeper); !errors.Is(err, reason) {
		t.Error(err)
	}
	s.Fault(boxtest.Fault{Match: "exec-session", Session: &boxtest.SessionFault{Silent: true}})
	time.AfterFunc(30*time.Millisecond, s.Client.Close)
	if _, err := s.Open(t.Context(), id, sleeper); err == nil || !strings.Contains(err.Error(), "is closed") {
		t.Error(err)
	}
	closed(t, s)
}

// A refused upgrade is an HTTP answer like any other.
func TestUpgradeRefused(t *testing.T) {
	s := newStand(t, boxtest.Options{})
	id := s.box()
	for _, status := range []int{401, 404, 429, 503} {
		s.Fault(boxtest.Fault{Match: "exec-session", Times: 1, Status: status, Body: `{"error":"because"}`})
		if _, err := s.Open(t.Context(), id, sleeper); wire.StatusOf(err) != status || err.Error() != "because" {
			t.Errorf("%d: %v", status, err)
		}
	}
}

// How a session may end, and what is made of it (C158, C159, C210).
func TestSessionEnds(t *testing.T) {
	s := newStand(t, boxtest.Options{})
	id := s.box()
	quick := wire.Start{Argv: []string{"sh", "-c", "echo hi; exit 7"}, Cwd: boxtest.Workspace}
	hi := base64.StdEncoding.EncodeToString([]byte("hi\n"))
	for _, c := range []struct {
		name  string
		fault boxtest.SessionFault
		want  error
		code  int
		out   string
	}{
		{"cut before the exit", boxtest.SessionFault{CutAt: "exit"}, wire.ErrLost, 0, "hi\n"},
		{"error frame", boxtest.SessionFault{Inject: []string{`{"type":"error","message":"gone"}`}}, wire.ErrLost, 0, ""},
		{"bad base64", boxtest.SessionFault{Inject: []string{`{"type":"stdout","data":"*"}`}}, wire.ErrCorrupt, 0, ""},
		{"exit without a code", boxtest.SessionFault{Inject: []string{`{"type":"exit"}`}}, wire.ErrCorrupt, 0, ""},
		{"code -1", boxtest.SessionFault{Inject: []string{`{"type":"exit","code":-1}`}}, wire.ErrCorrupt, 0, ""},
		{"code 256", boxtest.SessionFault{Inject: []string{`{"type":"exit","code":256}`}}, wire.ErrCorrupt, 0, ""},
		{"junk and unknown frames", boxtest.SessionFault{Inject: []string{"junk", `{"type":"x"}`, `[]`, `{"type":"started","pid":9}`}}, nil, 7, "hi\n"},
		{"output after the exit", boxtest.SessionFault{AfterExit: []string{`{"type":"stdout","data":"` + hi + `"}`}}, nil, 7, "hi\n"},
		{"slow frames", boxtest.SessionFault{Delay: 30 * time.Millisecond}, nil, 7, "hi\n"},
	} {
		s.Fault(boxtest.Fault{Match: "exec-session", Times: 1, Session: &c.fault})
		session := s.open(id, quick)
		var o outputs
		code, err := session.Serve(o.take)
		if !errors.Is(err, c.want) || code != c.code || o.out.String() != c.out {
			t.Errorf("%s: code %d, %v, out %q", c.name, code, err, o.out.String())
		}
		session.Close()
	}
}

// A quiet connection whose far side never answered a ping is kept; one that did
// and then falls silent is given up (upstash-box.md 6.1).
func TestPing(t *testing.T) {
	s := newStand(t, boxtest.Options{})
	id := s.box()
	c, err := wire.New(wire.Config{BaseURL: s.URL(), Key: s.Key(), PingEvery: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s.Fault(boxtest.Fault{Match: "exec-session", Times: 1, Session: &boxtest.SessionFault{NoPong: true}})
	for range 2 { // without and with answers
		session, err := c.Open(t.Context(), id, wire.Start{Argv: []string{"sh", "-c", "sleep 0.3; exit 4"}, Cwd: boxtest.Workspace})
		if err != nil {
			t.Fatal(err)
		}
		if code, err := session.Serve(func(wire.Stream, []byte) {}); code != 4 || err != nil {
			t.Error(code, err)
		}
		session.Close()
	}
}

// The frames of our client are, field by field, those of the published
// transcripts (upstash-box.md 6.5).
func TestTranscripts(t *testing.T) {
	s := newStand(t, boxtest.Options{})
	id := s.box()
	session := s.open(id, wire.Start{Argv: []string{"sort"}, Cwd: "/workspace/home", Env: []string{"LC_ALL=C"}})
	if _, err := session.Write([]byte("b\na\n")); err != nil {
		t.Fatal(err)
	}
	if err := session.CloseStdin(); err != nil {
		t.Fatal(err)
	}
	var o outputs
	if code, err := session.Serve(o.take); code != 0 || err != nil || o.out.String() != "a\nb\n" {
		t.Fatal(code, err, o.out.String())
	}
	sent(t, s, `{"type":"start","argv":["sort"],"cwd":"/workspace/home","env":["LC_ALL=C"]}`,
		`{"type":"stdin","data":"YgphCg=="}`, `{"type":"stdin_close"}`)

	s.ClearJournal()
	session = s.open(id, wire.Start{Argv: []string{"/bin/sh"}, TTY: true, Rows: 24, Cols: 80, Cwd: "/workspace/home", Env: []string{"TERM=xterm-256color"}})
	for _, do := range []func() error{
		func() error { return session.Resize(40, 120) },
		func() error { return session.Signal("INT") },
		func() error { return session.Terminate(2 * time.Second) },
		func() error { return session.Terminate(5 * time.Second) },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := session.Serve(o.take); err != nil {
		t.Fatal(err)
	}
	sent(t, s, `{"type":"start","argv":["/bin/sh"],"tty":true,"rows":24,"cols":80,"cwd":"/workspace/home","env":["TERM=xterm-256color"]}`,
		`{"type":"resize","rows":40,"cols":120}`, `{"type":"signal","signal":"INT"}`, `{"type":"terminate","graceMs":2000}`)
}

// sent compares the client's frames with texts, as JSON.
func sent(t *testing.T, s *stand, want ...string) {
	t.Helper()
	var got []string
	for _, r := range s.Journal() {
		if r.Kind == "client" {
			got = append(got, r.Body)
		}
	}
	if len(got) != len(want) {
		t.Fatalf("sent %q, want %q", got, want)
	}
	for i := range want {
		var a, b any
		if json.Unmarshal([]byte(got[i]), &a) != nil || json.Unmarshal([]byte(want[i]), &b) != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("frame %d is %s, want %s", i, got[i], want[i])
		}
	}
}

// Our client works against a server that was written from the list of frames
// alone (upstash-box.md 14 B 2).
func TestMinimalServer(t *testing.T) {
	root, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := boxtest.NodeModules(root)
	if err != nil {
		if os.Getenv("AFIELD_TEST_REQUIRE") != "" {
			t.Fatal(err)
		}
		t.Skip("SKIPPED: ", err)
	}
	text, err := os.ReadFile("../boxtest/testdata/minimal.mjs")
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "minimal.mjs")
	if err := os.WriteFile(script, text, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", script)
	cmd.Env = append(os.Environ(), "UPSTASH_BOX_API_KEY=box_test")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { in.Close(); _ = cmd.Wait() }()
	line := make([]byte, 100)
	n, err := out.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	c, err := wire.New(wire.Config{BaseURL: strings.TrimSpace(string(line[:n])), Key: "box_test"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	minimal(t, c)
}

func minimal(t *testing.T, c *wire.Client) {
	start := func(argv ...string) *wire.Session {
		s, err := c.Open(t.Context(), "any", wire.Start{Argv: argv, Cwd: "/tmp", Env: []string{"A=b c"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s
	}
	var o outputs
	if code, err := start("sh", "-c", `printf '%s' "$A"; echo err >&2; exit 42`).Serve(o.take); code != 42 || err != nil || o.out.String() != "b c" || o.err.String() != "err\n" {
		t.Error(code, err, o.out.String(), o.err.String())
	}
	o = outputs{}
	cat := start("cat")
	content := bytes.Repeat([]byte{0, 1, 2, 255}, 100_000)
	go func() { _, _ = cat.Write(content); _ = cat.CloseStdin() }()
	if code, err := cat.Serve(o.take); code != 0 || err != nil || !bytes.Equal(o.out.Bytes(), content) {
		t.Error(code, err, o.out.Len())
	}
	sleep := start("sleep", "300")
	if err := sleep.Terminate(time.Second); err != nil {
		t.Error(err)
	}
	if code, err := sleep.Serve(o.take); code != 143 || err != nil {
		t.Error(code, err)
	}
}
