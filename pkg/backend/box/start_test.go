package box

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/afield-dev/afield/pkg/backend/box/boxtest"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
)

// A failed start looks once at the working directory and names it, whatever the
// service said (finding 64; C56, C57, C58, C64).
func TestStartNamesABadDirectory(t *testing.T) {
	s := newStand(t)
	s.settle(s.spawn(t.Context(), s.sh("echo x > file; mkdir -m 000 closed")))
	for dir, code := range map[string]fault.Code{
		"/Users/x/y":           fault.ExecCwdMissing,
		defaultCwd + "/file":   fault.ExecCwdNotDirectory,
		defaultCwd + "/a b\nc": fault.ExecCwdMissing,
	} {
		s.server.ClearJournal()
		spec := s.spec("pwd")
		spec.Cwd = dir
		_, r, err := s.settle(s.spawn(t.Context(), spec))
		s.fails(err, code)
		if r.Started || !strings.Contains(err.Error(), quoted(dir)) {
			t.Errorf("%q: %v", dir, err)
		}
		if n := len(s.server.Requests("POST /v2/box/")); n != 1 {
			t.Errorf("%q: %d looks", dir, n)
		}
	}
	out, _, _ := s.settle(s.spawn(t.Context(), s.sh("ls /Users 2>&1")))
	if strings.Contains(out, "x") && !strings.Contains(out, "No such") {
		t.Errorf("the host's path was made: %q", out)
	}
}

func quoted(s string) string {
	text, _ := json.Marshal(s)
	return string(text)
}

// Any other refusal passes unchanged, after exactly one look (C61); one that
// fails or stalls changes nothing either (C62).
func TestStartKeepsOtherReasons(t *testing.T) {
	s := newStand(t)
	refusal := boxtest.SessionFault{Started: []string{`{"type":"error","message":"no room left"}`}}
	for name, look := range map[string]*boxtest.Fault{
		"the look answers": nil,
		"the look fails":   {Match: "/exec", Skip: 1, Times: 1, Status: 500},
		"the look is cut":  {Match: "POST", Times: 1, Reset: "after"},
	} {
		s.server.ClearFaults()
		s.session(refusal)
		if look != nil {
			look.Match, look.Skip = "POST", 0
			s.server.Fault(*look)
		}
		s.server.ClearJournal()
		_, _, err := s.settle(s.spawn(t.Context(), s.spec("pwd")))
		s.fails(err, fault.ExecSpawnFailed)
		if err == nil || !strings.Contains(err.Error(), "no room left") {
			t.Errorf("%s: %v", name, err)
		}
		if n := len(s.server.Requests("POST /v2/box/")); n != 1 {
			t.Errorf("%s: %d looks", name, n)
		}
	}
}

// A start that succeeds looks at nothing (C63).
func TestStartCostsNoLook(t *testing.T) {
	s := newStand(t)
	s.settle(s.spawn(t.Context(), s.spec("true")))
	if r := s.server.Requests(""); len(r) != 1 || !strings.Contains(r[0], "exec-session") {
		t.Errorf("requests: %q", r)
	}
}

// Removal unsets; the wrapper carries names and never a value (finding 5; C88).
func TestRemovalWrapper(t *testing.T) {
	s := newStand(t)
	start := func(env remoteexec.Env) (argv, vars []string) {
		s.server.ClearJournal()
		spec := s.spec("/bin/sh", "-c", `echo "${A-gone} ${USER-gone} $B"`)
		spec.Env = env
		out, _, err := s.settle(s.spawn(t.Context(), spec))
		if err != nil {
			t.Fatal(err)
		}
		var f struct{ Argv, Env []string }
		for _, r := range s.server.Journal() {
			if r.FrameType() == "start" {
				_ = json.Unmarshal([]byte(r.Body), &f)
			}
		}
		return append(f.Argv, out), f.Env
	}
	argv, vars := start(remoteexec.Env{Set: map[string]string{"B": "secret"}, Remove: []string{"USER", "A"}})
	want := []string{"env", "-u", "A", "-u", "USER", "nice", "-n", "0", "--", "/bin/sh", "-c", `echo "${A-gone} ${USER-gone} $B"`, "gone gone secret\n"}
	if !slices.Equal(argv, want) || !slices.Equal(vars, []string{"B=secret"}) {
		t.Errorf("%q %q", argv, vars)
	}
	if argv, _ = start(remoteexec.Env{}); argv[0] != "/bin/sh" {
		t.Errorf("without removals: %q", argv)
	}
}

// Reserved names are refused by name, set or removed, unless dropping them is
// allowed; then the result lists them (finding 44; C83).
func TestReservedNames(t *testing.T) {
	s := newStand(t)
	for _, name := range reservedEnv() {
		for _, env := range []remoteexec.Env{{Set: map[string]string{name: "x"}}, {Remove: []string{name}}} {
			spec := s.sh("exit 3")
			spec.Env = env
			_, err := s.world.Processes().Spawn(t.Context(), spec)
			s.fails(err, fault.BackendUnsupported)
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v", name, err)
			}
			spec.AllowEnvDrop = true
			_, r, err := s.settle(s.spawn(t.Context(), spec))
			if err != nil || r.Outcome.ExitCode != 3 || !slices.Equal(r.EnvDropped, []string{name}) {
				t.Errorf("%s: %+v %v", name, r, err)
			}
		}
	}
}

// Nothing of the host's environment crosses, the account key least of all (C72,
// C73, C86).
func TestNothingOfTheHostCrosses(t *testing.T) {
	s := newServer(t, boxtest.Options{})
	t.Setenv("BOX_HOST_SENTINEL", "sentinel")
	t.Setenv("SSH_AUTH_SOCK", "/sentinel")
	t.Setenv("UPSTASH_BOX_API_KEY", "sentinel")
	st := &stand{T: t, server: s, world: open(t, s, map[string]any{"create": true})}
	out, _, err := st.settle(st.spawn(t.Context(), st.spec("env")))
	if err != nil || strings.Contains(out, "sentinel") || strings.Contains(out, s.Key()) || strings.Contains(out, os.Getenv("PATH")+"\n") {
		t.Errorf("%q %v", out, err)
	}
}

// Input is copied before it is acknowledged (finding 1; C99), stays
// unacknowledged until the session takes it, and arrives once (finding 32; C100).
func TestInputWaitsForTheSession(t *testing.T) {
	s := newStand(t)
	s.session(boxtest.SessionFault{Hold: true})
	spec := s.spec("cat")
	spec.Stdin = remoteexec.StdinPipe
	h := s.spawn(t.Context(), spec)
	buf := []byte("first\n")
	wrote := make(chan error, 1)
	go func() {
		_, err := h.Stdin().Write(buf)
		wrote <- err
	}()
	s.until("the held session", func() bool { return s.server.Sessions() == 1 })
	select {
	case err := <-wrote:
		t.Fatalf("acknowledged before the handshake: %v", err)
	default:
	}
	s.server.Release()
	s.within("the write", func() {
		if err := <-wrote; err != nil {
			t.Error(err)
		}
	})
	copy(buf, "XXXXX\n")
	h.Stdin().Close()
	if out, _, err := s.settle(h); out != "first\n" || err != nil {
		t.Errorf("%q %v", out, err)
	}
	s.frames("start", "stdin", "stdin_close")
}

// A refused handshake completes pending writes and closes with its error
// (finding 32; C101).
func TestRefusedHandshakeFailsPendingInput(t *testing.T) {
	s := newStand(t)
	s.server.Fault(boxtest.Fault{Match: "exec-session", Delay: 50_000_000, Status: 403, Body: `{"error":"forbidden"}`})
	spec := s.spec("cat")
	spec.Stdin = remoteexec.StdinPipe
	h := s.spawn(t.Context(), spec)
	s.within("the write", func() {
		_, err := h.Stdin().Write([]byte("x"))
		s.fails(err, fault.BackendAuthFailed)
	})
	_, _, err := s.settle(h)
	s.fails(err, fault.BackendAuthFailed)
}

// Once termination was asked for, the stop is the first thing sent and no input
// follows: for batch data, for input queued in the handshake, and for input
// after it (findings 33, 45, 50, 66; C104, C105, C106, C205).
func TestStopComesFirst(t *testing.T) {
	s := newStand(t)
	for _, mode := range []string{"data", "queued", "later"} {
		s.server.ClearJournal()
		s.session(boxtest.SessionFault{Hold: mode != "later"})
		spec := s.spec("sh", "-c", "trap '' TERM; echo up; sleep 60")
		spec.Stdin, spec.StdinData = remoteexec.StdinPipe, nil
		if mode == "data" {
			spec.Stdin, spec.StdinData = remoteexec.StdinData, []byte("never\n")
		}
		h := s.spawn(t.Context(), spec)
		s.until("the session", func() bool { return s.server.Sessions() == 1 })
		if mode == "later" {
			<-h.Started()
		} else {
			s.sent("start")
		}
		wrote := make(chan struct{})
		if mode == "queued" {
			go func() { defer close(wrote); _, _ = h.Stdin().Write([]byte("never\n")) }()
		}
		h.Terminate()
		h.Terminate()
		if mode == "later" {
			s.sent("terminate")
			if _, err := h.Stdin().Write([]byte("never\n")); err != nil {
				t.Logf("the write is refused: %v", err)
			}
		}
		s.server.Release()
		s.settle(h)
		if mode == "queued" {
			s.within("the queued write", func() { <-wrote })
		}
		s.frames("start", "terminate")
		s.gone(h)
	}
}

func (s *stand) gone(h remoteexec.Handle) {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	if ok, err := h.WaitForExit(ctx); !ok || err != nil {
		s.Errorf("the tree is not gone: %v %v", ok, err)
	}
}

// A transport that fails inside a write or a close ends that operation; nothing
// hangs (findings 36, 40, 43; C107).
func TestTransportFailsInsideAWrite(t *testing.T) {
	s := newStand(t)
	for _, kind := range []string{"stdin", "stdin_close"} {
		s.session(boxtest.SessionFault{CutAt: kind, From: "client"})
		spec := s.spec("cat")
		spec.Stdin = remoteexec.StdinPipe
		h := s.spawn(t.Context(), spec)
		s.within("the input", func() {
			_, err := h.Stdin().Write([]byte("x"))
			for err == nil && kind == "stdin" {
				_, err = h.Stdin().Write([]byte("x"))
			}
			_ = h.Stdin().Close()
		})
		_, _, err := s.settle(h)
		s.fails(err, fault.ExecTransportLost)
	}
	s.empty()
}

// A connection that ends without an exit report is an error and never a code;
// what came so far stays readable, and a raw stream ends with it (findings 18,
// 34; C158, C209). After the report a dropped connection changes nothing (C159).
func TestLostConnection(t *testing.T) {
	s := newStand(t)
	s.session(boxtest.SessionFault{CutAt: "stdout", After: 1})
	spec := s.sh("echo first; sleep 0.2; echo second; sleep 60")
	spec.Stderr = remoteexec.Output{Mode: remoteexec.OutputPipe}
	h := s.spawn(t.Context(), spec)
	out, r, err := s.settle(h)
	s.fails(err, fault.ExecTransportLost)
	var e *fault.Error
	if out != "first\n" || r.Outcome != (remoteexec.Outcome{}) || !errors.As(err, &e) || e.Retry != fault.RetryUnknown {
		t.Errorf("%q %+v %v", out, r, err)
	}
	_, perr := io.ReadAll(h.Pipe(remoteexec.Stderr))
	s.fails(perr, fault.ExecTransportLost)
	s.empty()

	s.session(boxtest.SessionFault{AfterExit: []string{`{"type":"error","message":"bye"}`, `{"type":"exit","code":-1}`}})
	if _, r, err := s.settle(s.spawn(t.Context(), s.sh("exit 9"))); err != nil || r.Outcome.ExitCode != 9 {
		t.Errorf("%+v %v", r, err)
	}
}

// Codes of 128+n are codes; nothing claims a signal on a box (findings 20, 41,
// 61; C150, C151).
func TestNoSignalIsInvented(t *testing.T) {
	s := newStand(t)
	if s.world.Processes().Facts().Signals {
		t.Error("the backend claims to report signals")
	}
	for script, code := range map[string]int{"kill -TERM $$": 143, "kill -KILL $$": 137, "exit 130": 130, "exit 143": 143} {
		_, r, err := s.settle(s.spawn(t.Context(), s.sh(script)))
		if err != nil || r.Outcome != (remoteexec.Outcome{ExitCode: code}) {
			t.Errorf("%s: %+v %v", script, r.Outcome, err)
		}
	}
}

// Frames that cannot be understood and matter are corrupt, others are ignored
// (C210).
func TestCorruptSession(t *testing.T) {
	s := newStand(t)
	for _, frame := range []string{`{"type":"stdout","data":"*"}`, `{"type":"exit","code":-1}`, `{"type":"exit"}`} {
		s.session(boxtest.SessionFault{Inject: []string{"junk", `{"type":"new"}`, frame}})
		_, _, err := s.settle(s.spawn(t.Context(), s.spec("sleep", "60")))
		s.fails(err, fault.ExecTransportCorrupt)
	}
	s.empty()
}

// The start confirmation must carry a usable process id (C199, C202).
func TestStartWithoutAProcessID(t *testing.T) {
	s := newStand(t)
	for _, frame := range []string{`{"type":"started"}`, `{"type":"started","pid":0}`, `{"type":"started","pid":-3}`, `{"type":"started","pid":1}`} {
		s.session(boxtest.SessionFault{Started: []string{frame}})
		h := s.spawn(t.Context(), s.spec("true"))
		if _, r, err := s.settle(h); err == nil || r.Started || h.PID() != 0 {
			t.Errorf("%s: %+v, pid %d, %v", frame, r, h.PID(), err)
		}
	}
	s.until("closed sockets", func() bool { return s.server.Sessions() == 0 })
}

// What is not UTF-8 cannot be carried and is refused, never changed.
func TestOnlyTextIsCarried(t *testing.T) {
	s := newStand(t)
	for _, spec := range []remoteexec.Spec{s.spec("echo", "a\xff"), s.spec("a\xff"), s.spec("true"), s.spec("true")} {
		switch {
		case len(spec.Argv) > 1 || spec.Argv[0] != "true":
		case spec.Env.Set == nil && reflect.DeepEqual(spec.Argv, []string{"true"}):
			spec.Env.Set = map[string]string{"A": "\xff"}
		}
		_, _, err := s.settle(s.spawn(t.Context(), spec))
		s.fails(err, fault.BackendUnsupported)
	}
	if n := len(s.server.Journal()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	spec := s.spec("base64", "-w0")
	spec.Stdin, spec.StdinData = remoteexec.StdinData, all
	if out, _, err := s.settle(s.spawn(t.Context(), spec)); err != nil || out != base64.StdEncoding.EncodeToString(all) {
		t.Errorf("input is not exact: %v", err)
	}
}
