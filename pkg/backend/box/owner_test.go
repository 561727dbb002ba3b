package box

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/backend/box/boxtest"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// use does something in the world and gives the failure.
func use(t *testing.T, w *World) error {
	t.Helper()
	_, _, err := w.Files().Stat(t.Context(), remotefs.AtPath("x", ""))
	return err
}

// closeWorld closes a world and gives the failure.
func closeWorld(w *World) error { return w.Close(context.Background()) }

// A box for one command is made at its first use with a life limit and our
// label, and is deleted once at the end (C322, OW-1). Its directory is made.
func TestPerCommandBox(t *testing.T) {
	t.Parallel()
	s := newServer(t, boxtest.Options{})
	w, err := Open(t.Context(), request(t, s, map[string]any{"perCommand": true, "cwd": defaultCwd + "/made", "labels": []any{"mine"}}))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Boxes()) != 0 {
		t.Error("a box is made before it is used")
	}
	for range 2 {
		if err := use(t, w); err != nil {
			t.Fatal(err)
		}
	}
	b := s.Boxes()[0]
	if !b.Ephemeral || b.ExpiresAt == 0 || b.Labels[0] != "afield" || b.Labels[2] != "mine" || len(s.Boxes()) != 1 {
		t.Errorf("%+v", b)
	}
	if n := len(s.Requests("/exec")); n != 3 {
		t.Errorf("%d commands, want one for the directory and two looks", n)
	}
	for range 2 {
		if err := closeWorld(w); err != nil {
			t.Error(err)
		}
	}
	if s.Live() != 0 || len(s.Requests("DELETE")) != 1 {
		t.Errorf("%d boxes live, deletions %q", s.Live(), s.Requests("DELETE"))
	}
	_, err = w.Processes().LookPath(t.Context(), "sh", remoteexec.Env{})
	if !fault.Is(err, fault.ExecDisposing) {
		t.Errorf("after the end: %v", err)
	}
}

// A shared box is made once for commands of one row, stays, and is followed by
// another when it is gone.
func TestSharedBox(t *testing.T) {
	t.Parallel()
	s := newServer(t, boxtest.Options{})
	req := request(t, s, map[string]any{"create": true})
	each := func(cwd string) error {
		r := req
		r.Cwd = cwd
		w, err := Open(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = closeWorld(w) }()
		return use(t, w)
	}
	for _, cwd := range []string{"", "/tmp", "sub"} {
		if err := each(cwd); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.Boxes()) != 1 || s.Live() != 1 {
		t.Fatalf("%d boxes", len(s.Boxes()))
	}
	s.Advance(2 * 3600 * 1e9)
	if err := each(""); !fault.Is(err, fault.BackendWorldGone) {
		t.Errorf("an expired box: %v", err)
	}
	if err := each(""); err != nil || s.Live() != 1 {
		t.Errorf("afterwards: %v, %d live", err, s.Live())
	}
}

// An adopted box is never deleted, may be named, and costs no request of its
// own.
func TestAdoptedBox(t *testing.T) {
	s := newStand(t)
	if err := use(t, s.world); err != nil {
		t.Fatal(err)
	}
	if r := s.server.Requests(""); len(r) != 1 {
		t.Errorf("requests: %q", r)
	}
	named := open(t, s.server, map[string]any{"create": true, "name": "by-name"})
	if err := use(t, named); err != nil {
		t.Fatal(err)
	}
	w := open(t, s.server, map[string]any{"sandbox": "by-name"})
	if err := use(t, w); err != nil {
		t.Error(err)
	}
	if err := closeWorld(w); err != nil || s.server.Live() != 2 {
		t.Errorf("%v, %d live", err, s.server.Live())
	}
}

// A box that does not exist is not a file that does not exist; the answer is
// kept (upstash-box.md 2).
func TestGoneBox(t *testing.T) {
	s := newStand(t)
	if err := s.world.link.client.Delete(t.Context(), s.box); err != nil {
		t.Fatal(err)
	}
	s.server.ClearJournal()
	for range 3 {
		s.fails(use(t, s.world), fault.BackendWorldGone)
	}
	if n := len(s.server.Requests("/status")); n != 1 {
		t.Errorf("%d looks at the state", n)
	}
	unknown := open(t, s.server, map[string]any{"sandbox": "no-such-box"})
	s.fails(use(t, unknown), fault.BackendWorldGone)
	_, err := unknown.Files().ReadText(t.Context(), remotefs.AtPath("x", ""))
	s.fails(err, fault.BackendWorldGone)
	h := s.spawn(t.Context(), s.spec("true"))
	_, _, err = s.settle(h)
	s.fails(err, fault.BackendWorldGone)
}

// A set-up that fails deletes the box, reports its own failure, and tries the
// deletion again at the end (findings 7, 17, 24; C324, C325).
func TestFailedSetupDeletesTheBox(t *testing.T) {
	t.Parallel()
	s := newServer(t, boxtest.Options{})
	s.Fault(boxtest.Fault{Match: "DELETE", Times: 3, Status: 500, Body: `{"error":"Box not found"}`})
	w, err := Open(t.Context(), request(t, s, map[string]any{"perCommand": true, "cwd": "/proc/none"}))
	if err != nil {
		t.Fatal(err)
	}
	if err := use(t, w); !fault.Is(err, fault.ExecCwdMissing) || !strings.Contains(err.Error(), "/proc/none") {
		t.Errorf("set-up: %v", err)
	}
	if s.Live() != 1 {
		t.Fatal("the deletion was to fail at first")
	}
	if err := closeWorld(w); err != nil || s.Live() != 0 {
		t.Errorf("close: %v, %d live", err, s.Live())
	}
}

// Gone already counts as deleted, by the status; words do not count (finding 62;
// C326).
func TestDeletionGoesByTheStatus(t *testing.T) {
	t.Parallel()
	for status, fine := range map[int]bool{404: true, 500: false} {
		s := newServer(t, boxtest.Options{})
		w, err := Open(t.Context(), request(t, s, map[string]any{"perCommand": true}))
		if err != nil {
			t.Fatal(err)
		}
		if err := use(t, w); err != nil {
			t.Fatal(err)
		}
		s.Fault(boxtest.Fault{Match: "DELETE", Status: status, Body: `{"error":"not found"}`})
		if err := closeWorld(w); (err == nil) != fine {
			t.Errorf("%d: %v", status, err)
		}
		s.ClearFaults()
		_ = closeWorld(w)
	}
}

// Creation that fails, never ends, or is given up leaves no box (upstash-box.md
// 3.4; C327).
func TestFailedCreationLeavesNoBox(t *testing.T) {
	t.Parallel()
	s := newServer(t, boxtest.Options{})
	s.Fault(boxtest.Fault{Match: "creation fails"})
	w, err := Open(t.Context(), request(t, s, map[string]any{"perCommand": true}))
	if err != nil {
		t.Fatal(err)
	}
	if err := use(t, w); !fault.Is(err, fault.BackendUnreachable) || !strings.Contains(err.Error(), "creation") {
		t.Errorf("creation: %v", err)
	}
	if s.Live() != 0 {
		t.Error("the box stands")
	}
	s.ClearFaults()
	s.Fault(boxtest.Fault{Match: "creation hangs"})
	ctx, cancel := context.WithCancelCause(t.Context())
	waits := make(chan error, 1)
	go func() {
		_, _, err := w.Files().Stat(ctx, remotefs.AtPath("x", ""))
		waits <- err
	}()
	st := &stand{T: t, server: s, world: w}
	st.until("a box under way", func() bool { return s.Live() == 1 })
	cancel(errReason) // ends the wait and not the creation (finding 38; C330)
	if err := <-waits; !errors.Is(err, errReason) {
		t.Errorf("a cancelled wait: %v", err)
	}
	if s.Live() != 1 {
		t.Error("the cancelled wait ended the creation")
	}
	second := make(chan error, 1)
	go func() { second <- use(t, w) }()
	st.within("close", func() {
		if err := closeWorld(w); err != nil {
			t.Error(err)
		}
	})
	if err := <-second; err == nil || s.Live() != 0 {
		t.Errorf("shutdown during creation: %v, %d live", err, s.Live())
	}
}

// The answer to a creation that was lost leaves no box nobody knows of.
func TestLostCreationIsFound(t *testing.T) {
	t.Parallel()
	s := newServer(t, boxtest.Options{})
	s.Fault(boxtest.Fault{Match: "POST /v2/box", Times: 1, Reset: "after"})
	w, err := Open(t.Context(), request(t, s, map[string]any{"perCommand": true}))
	if err != nil {
		t.Fatal(err)
	}
	if err := use(t, w); err != nil || len(s.Boxes()) != 1 {
		t.Errorf("%v, %d boxes", err, len(s.Boxes()))
	}
	if err := closeWorld(w); err != nil || s.Live() != 0 {
		t.Errorf("%v, %d live", err, s.Live())
	}
}

// A name that is taken is a conflict, unless the row says to use the box.
func TestNameThatIsTaken(t *testing.T) {
	t.Parallel()
	s := newServer(t, boxtest.Options{})
	row := map[string]any{"create": true, "name": "taken"}
	if err := use(t, open(t, s, row)); err != nil {
		t.Fatal(err)
	}
	if err := use(t, open(t, s, row)); !fault.Is(err, fault.BackendConflict) {
		t.Errorf("%v", err)
	}
	row["reuse"] = true
	if err := use(t, open(t, s, row)); err != nil || s.Live() != 1 {
		t.Errorf("%v, %d live", err, s.Live())
	}
}

// What is wrong with the account is said as such, at once, without the key.
func TestAccountFailures(t *testing.T) {
	s := newStand(t)
	for status, code := range map[int]fault.Code{
		http.StatusUnauthorized: fault.BackendAuthFailed, http.StatusForbidden: fault.BackendAuthFailed,
		http.StatusPaymentRequired: fault.BackendQuota, http.StatusConflict: fault.BackendConflict,
		http.StatusBadRequest: fault.BackendProtocol, http.StatusInternalServerError: fault.BackendUnreachable,
		http.StatusRequestEntityTooLarge: fault.FSTooLarge,
	} {
		s.server.ClearFaults()
		s.server.Fault(boxtest.Fault{Match: "POST", Status: status, Body: `{"error":"` + s.server.Key() + `"}`})
		err := use(t, s.world)
		s.fails(err, code)
		if err == nil || strings.Contains(err.Error(), s.server.Key()) {
			t.Errorf("%d: %v", status, err)
		}
	}
	s.server.ClearFaults()
	s.server.Fault(boxtest.Fault{Match: "POST", Status: 200, Body: `{"exit_code":"zero"}`})
	s.fails(use(t, s.world), fault.BackendProtocol)
}

// A paused box is resumed by its use; a first request that fails because of it
// is sent once more (upstash-box.md 3.5).
func TestPausedBoxIsResumed(t *testing.T) {
	t.Parallel()
	s := newServer(t, boxtest.Options{})
	w := open(t, s, map[string]any{"create": true, "ephemeral": false})
	if err := use(t, w); err != nil {
		t.Fatal(err)
	}
	id := s.Boxes()[0].ID
	for _, session := range []bool{false, true} {
		if err := w.link.client.Pause(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		match := "POST /v2/box/" + id + "/exec"
		if session {
			match = "exec-session"
		}
		s.Fault(boxtest.Fault{Match: match, Times: 1, Status: 503, Body: `{"error":"stale state"}`})
		s.ClearJournal()
		var err error
		if session {
			st := &stand{T: t, server: s, world: w}
			_, _, err = st.settle(st.spawn(t.Context(), st.spec("true")))
		} else {
			err = use(t, w)
		}
		if err != nil || len(s.Requests("/resume")) != 1 {
			t.Errorf("session %v: %v, %q", session, err, s.Requests(""))
		}
	}
}

// What the row must not say is refused before any request (C328, finding 16).
func TestRowChecks(t *testing.T) {
	bad := func(c map[string]any) {
		t.Helper()
		if key, problem := checkRow(c); key == "" || problem == "" {
			t.Errorf("%v is taken", c)
		}
	}
	bad(map[string]any{"sandbox": "x", "create": true})
	bad(map[string]any{"create": true, "perCommand": true})
	bad(map[string]any{"create": true, "reuse": true})
	bad(map[string]any{"create": true, "keepAlive": true, "ephemeral": true})
	for key, values := range map[string][]any{
		"cwd": {"relative", ""}, "baseUrl": {"ftp://x"}, "sandbox": {"a/b", "", "x y"},
		"labels": {[]any{"a", "b", "c", "d"}, []any{"not a label"}, []any{strings.Repeat("x", 21)}},
		"env":    {map[string]any{"PATH": "/x"}},
	} {
		f, _ := schema().Field(key)
		for _, v := range values {
			if f.Check(v) == "" {
				t.Errorf("%s: %v is taken", key, v)
			}
		}
	}
	if f, _ := schema().Field("requestTimeoutMs"); f.Min != 1 || f.Max != 2147483647 {
		t.Errorf("requestTimeoutMs is %v to %v", f.Min, f.Max)
	}
}

// No key, and a row without a form, are named with the next step.
func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	s := newServer(t, boxtest.Options{})
	req := request(t, s, map[string]any{"create": true})
	req.Secret = func(context.Context, string) (string, error) { return "", nil }
	_, err := Open(t.Context(), req)
	var e *fault.Error
	if !errors.As(err, &e) || e.Code != fault.ProfileSecretMissing || !strings.Contains(e.Hint, "UPSTASH_BOX_API_KEY") {
		t.Errorf("%v", err)
	}
	if _, err := Open(t.Context(), request(t, s, nil)); !fault.Is(err, fault.ProfileInvalid) {
		t.Errorf("%v", err)
	}
	insecure := request(t, s, map[string]any{"create": true, "baseUrl": "http://box.example.com"})
	if _, err := Open(t.Context(), insecure); !fault.Is(err, fault.ProfileInvalid) {
		t.Errorf("%v", err)
	}
	if len(s.Journal()) != 0 {
		t.Error("requests were sent")
	}
}

// The life of boxes by hand.
func TestSandboxes(t *testing.T) {
	t.Parallel()
	s := newServer(t, boxtest.Options{})
	req := request(t, s, map[string]any{"ephemeral": false})
	sb, err := openSandboxes(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	one, err := sb.Create(t.Context(), backend.SandboxSpec{Template: "python", Labels: map[string]string{"team": "x"}, Env: map[string]string{"A": "b"}})
	if err != nil || one.State != "running" || !one.Owned || one.Labels["team"] != "x" {
		t.Fatalf("%+v %v", one, err)
	}
	if paused, err := sb.Pause(t.Context(), one.ID); err != nil || paused.State != "paused" {
		t.Errorf("%+v %v", paused, err)
	}
	if running, err := sb.Resume(t.Context(), one.ID, 0); err != nil || running.State != "running" {
		t.Errorf("%+v %v", running, err)
	}
	snap, err := sb.Snapshot(t.Context(), one.ID, "")
	if err != nil {
		t.Fatal(err)
	}
	copied, err := sb.Create(t.Context(), backend.SandboxSpec{Template: snap.ID})
	if err != nil {
		t.Fatal(err)
	}
	list, err := sb.List(t.Context(), backend.SandboxFilter{})
	if err != nil || len(list) != 2 {
		t.Errorf("%v %v", list, err)
	}
	if list, err = sb.List(t.Context(), backend.SandboxFilter{Labels: map[string]string{"team": "x"}}); err != nil || len(list) != 1 {
		t.Errorf("%v %v", list, err)
	}
	if _, err := sb.Extend(t.Context(), one.ID, 1); !fault.Is(err, fault.BackendUnsupported) {
		t.Error(err)
	}
	if ok, err := sb.Kill(t.Context(), copied.ID); !ok || err != nil {
		t.Error(ok, err)
	}
	if ok, err := sb.Kill(t.Context(), copied.ID); ok || err != nil {
		t.Error(ok, err)
	}
	if _, err := sb.Info(t.Context(), copied.ID); !fault.Is(err, fault.BackendWorldGone) {
		t.Error(err)
	}
	for _, spec := range []backend.SandboxSpec{{OnExpiry: "pause"}, {Life: 1e9}, {Env: map[string]string{"PATH": "x"}},
		{Template: "a/b"}, {Labels: map[string]string{"a b": ""}}} {
		if _, err := sb.Create(t.Context(), spec); err == nil {
			t.Errorf("%+v is taken", spec)
		}
	}
}

// Strays are boxes of commands that have ended and of rows that have another;
// those of other state directories and of Create are nobody's business.
func TestStrays(t *testing.T) {
	t.Parallel()
	s := newServer(t, boxtest.Options{})
	req := request(t, s, map[string]any{"perCommand": true})
	sb, err := openSandboxes(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	w, err := Open(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if err := use(t, w); err != nil {
		t.Fatal(err)
	}
	if err := use(t, open(t, s, map[string]any{"create": true})); err != nil {
		t.Fatal(err)
	}
	if _, err := sb.Create(t.Context(), backend.SandboxSpec{}); err != nil {
		t.Fatal(err)
	}
	if strays, err := sb.Strays(t.Context()); err != nil || len(strays) != 0 {
		t.Errorf("while the command lives: %v %v", strays, err)
	}
	w.link.owner.release() // as when the command is killed
	strays, err := sb.Strays(t.Context())
	if err != nil || len(strays) != 1 || strays[0].ID != s.Boxes()[0].ID {
		t.Errorf("%v %v", strays, err)
	}
	w.link.owner.release = func() {}
	_ = closeWorld(w)
}
