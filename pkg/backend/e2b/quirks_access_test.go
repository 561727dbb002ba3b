package e2b_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/afield-dev/afield/pkg/backend/e2b/e2btest"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// text is a request to write a text.
func text(content string, intent remotefs.Intent) remotefs.WriteRequest {
	return remotefs.WriteRequest{Content: strings.NewReader(content), Size: int64(len(content)), Mode: -1, Intent: intent}
}

// Quirk 8: a client that does not read holds up the program, so one client reads
// each program, and what is not read here stays there: nothing is lost, and our
// memory does not grow.
func TestQuirkStalledReader(t *testing.T) {
	t.Parallel()
	s := newService(t, e2btest.Options{})
	w, dir := s.inSandbox(t, s.Start(time.Hour))
	const size = 16 << 20
	h, err := w.Processes().Spawn(t.Context(), remoteexec.Spec{
		Argv: []string{"/bin/sh", "-c", `head -c 16777216 /dev/zero; touch written`}, Cwd: dir, Grace: time.Second,
		Stdout: remoteexec.Output{Mode: remoteexec.OutputPipe}, Stderr: remoteexec.Output{Mode: remoteexec.OutputCollect, MaxBytes: 100},
	})
	if err != nil {
		t.Fatal(err)
	}
	out := h.Pipe(remoteexec.Stdout)
	if _, err := io.ReadFull(out, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	// Another program of the same sandbox is not held up.
	if _, got, err := run(t, w.Processes(), dir, "ls"); err != nil || got != "" {
		t.Errorf("the program has written all of it: %q %v", got, err)
	}
	n, err := io.Copy(io.Discard, out)
	if err != nil || n != size-1 {
		t.Errorf("%d bytes, %v", n, err)
	}
	out.Close()
	if r, err := h.Wait(t.Context()); err != nil || r.Outcome != (remoteexec.Outcome{}) {
		t.Errorf("%+v %v", r, err)
	}
	if slices.Contains(s.Requests(), "Connect") {
		t.Errorf("a second client was attached: %v", s.Requests())
	}
}

// Quirk 21: an error before the RPC layer has a number for its code, or no body
// at all; the status decides.
func TestQuirkErrorsWithoutCodes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		text   string
		code   fault.Code
	}{
		"a number":      {401, `{"code":401,"message":"unauthorized access"}`, fault.BackendAuthFailed},
		"nothing":       {403, "", fault.BackendAuthFailed},
		"no JSON":       {503, "<html>busy</html>", fault.BackendUnreachable},
		"not an object": {429, `"slow down"`, fault.BackendQuota},
		"a huge page":   {500, strings.Repeat("x", 1<<20), fault.FSIOError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t, e2btest.Options{})
			w, _ := s.inSandbox(t, s.Start(time.Hour))
			s.Rule(&e2btest.Rule{Method: "Stat", Status: c.status, Text: c.text})
			_, _, err := w.Files().Stat(t.Context(), remotefs.AtPath("f", ""))
			if !fault.Is(err, c.code) {
				t.Errorf("%v, want %s", err, c.code)
			}
			if err != nil && (len(err.Error()) > 1000 || strings.Contains(err.Error(), "\n")) {
				t.Errorf("message of %d bytes", len(err.Error()))
			}
		})
	}
}

// Quirk 24: a sandbox without a token is open to anybody who knows its id, so a
// secured one is always asked for, on the older route too, and its token is
// needed.
func TestQuirkSecuredSandbox(t *testing.T) {
	t.Parallel()
	for _, old := range []bool{false, true} {
		s := newService(t, e2btest.Options{OldRoutes: old})
		w := s.open(t, map[string]any{"create": true, "cwd": s.root + "/ws"})
		if _, _, err := w.Files().Stat(t.Context(), remotefs.AtPath(".", "")); err != nil {
			t.Fatal(err)
		}
		for _, e := range s.Log() {
			if e.Method == "POST /sandboxes" && !strings.Contains(string(e.Body), `"secure":true`) {
				t.Errorf("asked for %s", e.Body)
			}
		}
		h := http.Header{}
		h.Set("E2b-Sandbox-Id", w.ID())
		h.Set("E2b-Sandbox-Port", "49983")
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.SandboxURL()+"/files?path=/etc/hostname", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header = h
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusUnauthorized {
			t.Errorf("without the token: %s", res.Status)
		}
	}
}
