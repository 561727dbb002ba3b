package e2b_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/backend/e2b"
	"github.com/afield-dev/afield/pkg/backend/e2b/e2btest"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// A sandbox that the row names is used and left alone, and after the first
// command no request goes to the control plane (design.md 4.16, 4.22).
func TestAdoptedSandbox(t *testing.T) {
	s := newService(t, e2btest.Options{})
	b := s.Start(time.Hour)
	for i := range 2 {
		s.ResetLog()
		w := s.open(t, map[string]any{"sandbox": b.ID, "cwd": b.Home})
		if _, _, err := w.Files().Stat(t.Context(), remotefs.AtPath(".", "")); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := planeCount(s, "api"); n != 1-i {
			t.Errorf("command %d made %d control-plane requests: %v", i+1, n, s.Requests())
		}
	}
	if s.Sandbox(b.ID) == nil {
		t.Error("the adopted sandbox was deleted")
	}
}

func planeCount(s *service, plane string) int {
	n := 0
	for _, e := range s.Log() {
		if e.Plane == plane {
			n++
		}
	}
	return n
}

// The record of a sandbox holds its token: it is private, and one that others
// can read is not used.
func TestRecordIsPrivate(t *testing.T) {
	s := newService(t, e2btest.Options{})
	b := s.Start(time.Hour)
	row := map[string]any{"sandbox": b.ID, "cwd": b.Home}
	use := func() {
		w := s.open(t, row)
		if _, _, err := w.Files().Stat(t.Context(), remotefs.AtPath(".", "")); err != nil {
			t.Fatal(err)
		}
	}
	use()
	files, err := filepath.Glob(filepath.Join(s.state, "e2b", "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v %v", files, err)
	}
	raw, err := os.ReadFile(files[0])
	if err != nil || strings.Contains(string(raw), testKey) || !strings.Contains(string(raw), b.Token) {
		t.Errorf("the record must hold the token and not the key: %v", err)
	}
	for path, want := range map[string]os.FileMode{files[0]: 0o600, filepath.Dir(files[0]): 0o700} {
		if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != want {
			t.Errorf("%s: %v %v", path, fi.Mode(), err)
		}
	}
	if err := os.Chmod(files[0], 0o644); err != nil {
		t.Fatal(err)
	}
	s.ResetLog()
	use()
	if planeCount(s, "api") != 1 {
		t.Errorf("a record that others can read was used: %v", s.Requests())
	}
}

// create: true makes one sandbox at first use, with its directory, and later
// commands share it; it outlives them.
func TestSharedSandbox(t *testing.T) {
	s := newService(t, e2btest.Options{})
	cwd := filepath.Join(s.root, "shared")
	row := map[string]any{"create": true, "cwd": cwd}
	var ids []string
	for range 3 {
		w := s.open(t, row)
		if _, err := w.Files().WriteText(t.Context(), remotefs.AtPath("f", ""), remotefs.WriteRequest{Content: strings.NewReader("x"), Size: 1, Mode: -1}); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, w.Identity())
		if err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if s.Count() != 1 || ids[0] != ids[1] || ids[1] != ids[2] {
		t.Errorf("%d sandboxes, identities %v", s.Count(), ids)
	}
}

// Commands that begin at the same time share one sandbox too.
func TestSharedSandboxIsMadeOnce(t *testing.T) {
	s := newService(t, e2btest.Options{})
	row := map[string]any{"create": true, "cwd": filepath.Join(s.root, "once")}
	errs := make(chan error, 5)
	for range cap(errs) {
		go func() {
			w, err := e2b.Open(context.Background(), s.request(row))
			if err == nil {
				err = w.Close(context.Background())
			}
			errs <- err
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if s.Count() != 1 {
		t.Errorf("%d sandboxes", s.Count())
	}
}

// A shared sandbox that somebody has ended is an error at first, which says so,
// and the next command makes a new one.
func TestSharedSandboxThatIsGone(t *testing.T) {
	s := newService(t, e2btest.Options{})
	row := map[string]any{"create": true, "cwd": filepath.Join(s.root, "gone")}
	s.open(t, row).Close(t.Context())
	for _, b := range s.Sandboxes() {
		b.Expire()
	}
	w := s.open(t, row)
	_, _, err := w.Files().Stat(t.Context(), remotefs.AtPath(".", ""))
	if !fault.Is(err, fault.BackendWorldGone) {
		t.Fatalf("error %v", err)
	}
	w.Close(t.Context())
	w = s.open(t, row)
	if _, info, err := w.Files().Stat(t.Context(), remotefs.AtPath(".", "")); err != nil || info == nil {
		t.Fatalf("a new one: %v %v", info, err)
	}
}

// perCommand: true makes a sandbox for the command and deletes it at its end.
func TestSandboxOfACommand(t *testing.T) {
	s := newService(t, e2btest.Options{})
	row := map[string]any{"perCommand": true, "cwd": filepath.Join(s.root, "own")}
	w := s.open(t, row)
	if s.Count() != 1 {
		t.Fatalf("%d sandboxes", s.Count())
	}
	if err := errors.Join(w.Close(t.Context()), w.Close(t.Context())); err != nil || s.Count() != 0 {
		t.Errorf("%v, %d sandboxes are left", err, s.Count())
	}
}

// The deletion is tried again, and reported when it cannot be done (OW-5); gone
// already counts as deleted, by its status alone (OW-6).
func TestDeletionIsRetried(t *testing.T) {
	for name, c := range map[string]struct {
		rule *e2btest.Rule
		fail bool
		left int
	}{
		"twice refused": {&e2btest.Rule{Method: "DELETE /sandboxes/ID", Status: 500, Text: "404 not found", Times: 2}, false, 0},
		"refused":       {&e2btest.Rule{Method: "DELETE /sandboxes/ID", Status: 500, Text: `{"code":500,"message":"no such sandbox"}`}, true, 1},
		"gone already":  {&e2btest.Rule{Method: "DELETE /sandboxes/ID", Status: 404, Text: "boom"}, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t, e2btest.Options{})
			w := s.open(t, map[string]any{"perCommand": true, "cwd": filepath.Join(s.root, "d")})
			s.Rule(c.rule)
			err := w.Close(t.Context())
			if (err != nil) != c.fail || s.Count() != c.left {
				t.Errorf("%v, %d sandboxes are left", err, s.Count())
			}
			if c.fail && !strings.Contains(err.Error(), "could not be deleted") {
				t.Errorf("%v", err)
			}
		})
	}
}

// A setup that fails deletes what was made and reports its own failure first
// (OW-4, OW-5).
func TestFailedSetup(t *testing.T) {
	for _, form := range []string{"perCommand", "create"} {
		t.Run(form, func(t *testing.T) {
			s := newService(t, e2btest.Options{})
			s.Rule(&e2btest.Rule{Method: "Start", Status: 500, Text: `{"code":"internal","message":"no fork"}`})
			_, err := e2b.Open(t.Context(), s.request(map[string]any{form: true, "cwd": filepath.Join(s.root, "x")}))
			if err == nil || s.Count() != 0 {
				t.Errorf("%v, %d sandboxes are left", err, s.Count())
			}
		})
	}
}

// A command that is interrupted while its sandbox is being made waits for the
// answer and deletes it (OW-8, C51): nobody else would know of it.
func TestInterruptedCreation(t *testing.T) {
	s := newService(t, e2btest.Options{})
	ctx, cancel := context.WithCancelCause(t.Context())
	s.Rule(&e2btest.Rule{Method: "POST /v2/sandboxes", After: func() { cancel(fault.ErrInterrupted) }})
	_, err := e2b.Open(ctx, s.request(map[string]any{"perCommand": true, "cwd": filepath.Join(s.root, "x")}))
	if !errors.Is(err, fault.ErrInterrupted) || s.Count() != 0 {
		t.Errorf("%v, %d sandboxes are left", err, s.Count())
	}
}

// Servers without the newest routes are served by the older ones, and the
// sandbox is secured there too (quirk 24).
func TestOlderRoutes(t *testing.T) {
	s := newService(t, e2btest.Options{OldRoutes: true})
	w := s.open(t, map[string]any{"perCommand": true, "cwd": filepath.Join(s.root, "x")})
	if _, info, err := w.Files().Stat(t.Context(), remotefs.AtPath(".", "")); err != nil || info == nil {
		t.Fatalf("%v %v", info, err)
	}
	for _, e := range s.Log() {
		if e.Plane == "envd" && e.Header.Get("X-Access-Token") == "" {
			t.Errorf("%s went without a token", e.Method)
		}
	}
}

// A sandbox that is paused meanwhile is resumed by asking the control plane
// once.
func TestPausedSandboxIsResumed(t *testing.T) {
	s := newService(t, e2btest.Options{})
	b := s.Start(time.Hour)
	w := s.open(t, map[string]any{"sandbox": b.ID, "cwd": b.Home})
	stat := func() error { _, _, err := w.Files().Stat(t.Context(), remotefs.AtPath(".", "")); return err }
	if err := stat(); err != nil {
		t.Fatal(err)
	}
	w.Close(t.Context())
	b.Pause()
	w = s.open(t, map[string]any{"sandbox": b.ID, "cwd": b.Home})
	if err := stat(); err != nil || b.State() != "running" {
		t.Errorf("%v, state %s", err, b.State())
	}
}

// boxes opens the lifetime of a row.
func (s *service) boxes(t *testing.T, row map[string]any) backend.Sandboxes {
	t.Helper()
	p := e2b.Provider()
	boxes, err := p.Sandboxes(t.Context(), s.request(row))
	if err != nil {
		t.Fatal(err)
	}
	return boxes
}

// The typed operations, in the life of one sandbox.
func TestSandboxOperations(t *testing.T) {
	s := newService(t, e2btest.Options{Templates: []string{"go"}})
	boxes := s.boxes(t, map[string]any{"cwd": filepath.Join(s.root, "x")})
	ctx := t.Context()
	b, err := boxes.Create(ctx, backend.SandboxSpec{Template: "go", Life: time.Minute, Labels: map[string]string{"who": "a&b=c"}, OnExpiry: "pause"})
	if err != nil {
		t.Fatal(err)
	}
	if b.State != "running" || !b.Owned || b.Labels["who"] != "a&b=c" || time.Until(b.ExpiresAt) > time.Minute {
		t.Errorf("created %+v", b)
	}
	longer, err := boxes.Extend(ctx, b.ID, time.Hour)
	if err != nil || time.Until(longer.ExpiresAt) < 50*time.Minute {
		t.Errorf("extended %+v %v", longer, err)
	}
	if same, err := boxes.Extend(ctx, b.ID, time.Minute); err != nil || !same.ExpiresAt.Equal(longer.ExpiresAt) {
		t.Errorf("a shorter time moved the end: %+v %v", same, err)
	}
	for range 2 {
		if p, err := boxes.Pause(ctx, b.ID); err != nil || p.State != "paused" || !p.ExpiresAt.IsZero() {
			t.Errorf("paused %+v %v", p, err)
		}
	}
	if _, err := boxes.Extend(ctx, b.ID, time.Hour); !fault.Is(err, fault.BackendConflict) {
		t.Errorf("extending a paused one: %v", err)
	}
	if found, err := boxes.List(ctx, backend.SandboxFilter{State: "paused", Labels: map[string]string{"who": "a&b=c"}}); err != nil || len(found) != 1 {
		t.Errorf("listed %+v %v", found, err)
	}
	if r, err := boxes.Resume(ctx, b.ID, time.Minute); err != nil || r.State != "running" {
		t.Errorf("resumed %+v %v", r, err)
	}
	if snap, err := boxes.Snapshot(ctx, b.ID, "s"); err != nil || snap.ID == "" || len(snap.Names) != 1 {
		t.Errorf("snapshot %+v %v", snap, err)
	}
	for _, want := range []bool{true, false} {
		if killed, err := boxes.Kill(ctx, b.ID); err != nil || killed != want {
			t.Errorf("killed %v %v, want %v", killed, err, want)
		}
	}
	if _, err := boxes.Info(ctx, b.ID); !fault.Is(err, fault.BackendWorldGone) {
		t.Errorf("info of a dead one: %v", err)
	}
}

// All pages of a listing are read.
func TestListingOfManyPages(t *testing.T) {
	s := newService(t, e2btest.Options{})
	for range 205 {
		s.Start(time.Hour)
	}
	all, err := s.boxes(t, nil).List(t.Context(), backend.SandboxFilter{})
	if err != nil || len(all) != 205 {
		t.Errorf("%d sandboxes, %v", len(all), err)
	}
	some, err := s.boxes(t, nil).List(t.Context(), backend.SandboxFilter{Limit: 7})
	if err != nil || len(some) != 7 {
		t.Errorf("%d sandboxes, %v", len(some), err)
	}
}

// Strays are what a dead command and a forgotten row have left; what is in use,
// what was made by hand and what others made is none.
func TestStrays(t *testing.T) {
	s := newService(t, e2btest.Options{})
	row := map[string]any{"cwd": filepath.Join(s.root, "x")}
	boxes := s.boxes(t, row)
	if _, err := boxes.Create(t.Context(), backend.SandboxSpec{}); err != nil {
		t.Fatal(err)
	}
	s.Start(time.Hour)
	shared := map[string]any{"create": true, "cwd": filepath.Join(s.root, "y")}
	s.open(t, shared)
	s.open(t, map[string]any{"perCommand": true, "cwd": filepath.Join(s.root, "z")})
	if strays, err := boxes.Strays(t.Context()); err != nil || len(strays) != 0 {
		t.Fatalf("%+v %v", strays, err)
	}
	records, err := filepath.Glob(filepath.Join(s.state, "e2b", "*.json"))
	if err != nil || len(records) == 0 {
		t.Fatal(records, err)
	}
	for _, r := range records {
		os.Remove(r)
	}
	strays, err := boxes.Strays(t.Context())
	if err != nil || len(strays) != 1 || strays[0].Labels["afield"] != "shared" {
		t.Errorf("%+v %v", strays, err)
	}
}
