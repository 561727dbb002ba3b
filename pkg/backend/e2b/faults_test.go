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

// What can be wrong with a row, an account or a sandbox has its code, and a
// next step.
func TestBadInput(t *testing.T) {
	withKey := func(req backend.OpenRequest, key string) backend.OpenRequest {
		req.Secret = func(context.Context, string) (string, error) { return key, nil }
		return req
	}
	for name, c := range map[string]struct {
		opts e2btest.Options
		row  map[string]any
		key  string
		rule *e2btest.Rule
		code fault.Code
	}{
		"no key":             {row: map[string]any{"create": true}, key: "-", code: fault.ProfileSecretMissing},
		"malformed key":      {row: map[string]any{"create": true}, key: "sk-123", code: fault.ProfileInvalid},
		"wrong key":          {row: map[string]any{"create": true}, key: "e2b_00", code: fault.BackendAuthFailed},
		"no sandbox form":    {row: map[string]any{}, code: fault.ProfileInvalid},
		"unknown template":   {row: map[string]any{"create": true, "template": "nope"}, code: fault.ProfileInvalid},
		"unknown sandbox":    {row: map[string]any{"sandbox": "i000"}, code: fault.BackendWorldGone},
		"quota":              {row: map[string]any{"create": true}, rule: &e2btest.Rule{Method: "POST /v2/sandboxes", Status: 429, Text: `{"code":429,"message":"too many"}`}, code: fault.BackendQuota},
		"rate limit":         {row: map[string]any{"create": true}, rule: &e2btest.Rule{Method: "POST /v2/sandboxes", Status: 429, Header: map[string]string{"Retry-After": "3"}}, code: fault.BackendRateLimited},
		"service fails":      {row: map[string]any{"create": true}, rule: &e2btest.Rule{Method: "POST /v2/sandboxes", Status: 500}, code: fault.BackendProtocol},
		"service is down":    {row: map[string]any{"create": true}, rule: &e2btest.Rule{Method: "POST /v2/sandboxes", Status: 503}, code: fault.BackendUnreachable},
		"changing its state": {row: map[string]any{"sandbox": "i000"}, rule: &e2btest.Rule{Method: "POST /v2/sandboxes/ID/connect", Status: 409}, code: fault.BackendConflict},
		"a daemon too old":   {opts: e2btest.Options{EnvdVersion: "0.5.1"}, row: map[string]any{"create": true}, code: fault.BackendUnsupported},
		"an unknown user":    {row: map[string]any{"create": true, "user": "nobody-here"}, code: fault.BackendAuthFailed},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t, c.opts)
			if c.rule != nil {
				s.Rule(c.rule)
			}
			c.row["cwd"] = filepath.Join(s.root, "ws")
			req := s.request(c.row)
			if c.key != "" {
				req = withKey(req, strings.TrimPrefix(c.key, "-"))
			}
			w, err := e2b.Open(t.Context(), req)
			if err == nil {
				t.Cleanup(func() { w.Close(context.Background()) })
				_, _, err = w.Files().Stat(t.Context(), remotefs.AtPath(".", ""))
			}
			var e *fault.Error
			if !errors.As(err, &e) || e.Code != c.code {
				t.Fatalf("error %v, code %s, want %s", err, fault.CodeOf(err), c.code)
			}
			if e.Hint == "" && c.code != fault.BackendProtocol {
				t.Errorf("%v has no next step", err)
			}
			if strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), testKey) {
				t.Errorf("message %q", err)
			}
			if s.Count() != 0 {
				t.Errorf("%d sandboxes are left", s.Count())
			}
		})
	}
}

// A service that cannot be reached.
func TestUnreachable(t *testing.T) {
	s := newService(t, e2btest.Options{})
	w, err := e2b.Open(t.Context(), s.request(map[string]any{"sandbox": "i1", "apiUrl": "http://127.0.0.1:1"}))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.Files().Stat(t.Context(), remotefs.AtPath("/", "")); !fault.Is(err, fault.BackendUnreachable) {
		t.Errorf("error %v", err)
	}
}

// A sandbox that dies in the middle of reading, writing and running.
func TestSandboxDies(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", 1<<16)
	write := func(w *e2b.World) error {
		_, err := w.Files().WriteText(context.Background(), remotefs.AtPath("big", ""),
			remotefs.WriteRequest{Content: strings.NewReader(big), Size: int64(len(big)), Mode: -1})
		return err
	}
	for name, c := range map[string]struct {
		method string
		call   func(w *e2b.World) error
	}{
		"while reading": {"GET /files", func(w *e2b.World) error {
			_, err := w.Files().ReadText(context.Background(), remotefs.AtPath("big", ""))
			return err
		}},
		"while staging":    {"POST /files", write},
		"while publishing": {"Move", write},
		"while listing": {"ListDir", func(w *e2b.World) error {
			_, _, err := w.Files().ListDir(context.Background(), remotefs.AtPath(".", ""))
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t, e2btest.Options{})
			b := s.Start(time.Hour)
			w, _ := s.inSandbox(t, b)
			if err := write(w); err != nil {
				t.Fatal(err)
			}
			s.Rule(&e2btest.Rule{Method: c.method, Times: 1, Before: b.Expire, Cut: -1})
			if err := c.call(w); !fault.Is(err, fault.BackendWorldGone) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// A connection that breaks around the publishing step is settled by looking:
// once published it is success, and never done a second time (case 187, S-13).
func TestLostAnswerOfPublishing(t *testing.T) {
	for name, c := range map[string]struct {
		intent remotefs.Intent
		rule   *e2btest.Rule
		done   bool
	}{
		"moved":      {remotefs.IntentNone, &e2btest.Rule{Method: "Move", Times: 1, Lose: true}, true},
		"not moved":  {remotefs.IntentNone, &e2btest.Rule{Method: "Move", Times: 1, Cut: -1}, false},
		"linked":     {remotefs.IntentCreate, &e2btest.Rule{Method: "Start", Body: "link", Times: 1, Lose: true}, true},
		"not linked": {remotefs.IntentCreate, &e2btest.Rule{Method: "Start", Body: "link", Times: 1, Cut: -1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t, e2btest.Options{})
			b := s.Start(time.Hour)
			w, dir := s.inSandbox(t, b)
			if _, err := w.Files().WriteText(t.Context(), remotefs.AtPath("first", ""), remotefs.WriteRequest{Content: strings.NewReader(""), Size: 0, Mode: -1}); err != nil {
				t.Fatal(err)
			}
			s.Rule(c.rule)
			out, err := w.Files().WriteText(t.Context(), remotefs.AtPath("f", ""),
				remotefs.WriteRequest{Content: strings.NewReader("x"), Size: 1, Mode: -1, Intent: c.intent})
			_, statErr := os.Stat(filepath.Join(dir, "f"))
			if c.rule.Used() != 1 || (err == nil) != c.done || (statErr == nil) != c.done {
				t.Fatalf("error %v, file %v, rule used %d times", err, statErr, c.rule.Used())
			}
			if c.done {
				if _, info, err := w.Files().Stat(t.Context(), remotefs.AtPath("f", "")); err != nil || info.Version != out.Version {
					t.Errorf("version %q, then %+v %v", out.Version, info, err)
				}
			}
			left, err := filepath.Glob(filepath.Join(b.Home, ".afield", "st", "*"))
			if err != nil || len(left) != 0 {
				t.Errorf("left behind: %v %v", left, err)
			}
		})
	}
}

// Case 30: whatever realpath answers but one absolute path is refused.
func TestRealpathAnswers(t *testing.T) {
	s := newService(t, e2btest.Options{})
	b := s.Start(time.Hour)
	w, dir := s.inSandbox(t, b)
	if err := os.Symlink("nowhere", filepath.Join(dir, "d")); err != nil {
		t.Fatal(err)
	}
	target, err := w.Files().Resolve(t.Context(), "d", "")
	if err != nil || target.Key != filepath.Join(dir, "nowhere") {
		t.Fatalf("%+v %v", target, err)
	}
	for _, answer := range []string{"", "L3g=", "L3gAL3kA", "Ly/fAA==", "d29ya3NwYWNlL2ZpbGUA"} {
		frames := `{"event":{"start":{"pid":77}}}|{"event":{"data":{"stdout":"` + answer + `"}}}|{"event":{"end":{"exited":true,"status":"exit status 0"}}}`
		rule := s.Rule(&e2btest.Rule{Method: "Start", Body: "realpath", Times: 1, Status: 200, Text: e2btest.Frames(strings.Split(frames, "|")...)})
		if _, err := w.Files().Resolve(t.Context(), "d", ""); !fault.Is(err, fault.FSIOError) || rule.Used() != 1 {
			t.Errorf("%q: %v", answer, err)
		}
	}
}

// Case 148: a failed download of the prior content fails the write, and nothing
// has changed. Case 185: so does an answer of the publishing step that is not
// one of its own.
func TestFailuresBeforePublishing(t *testing.T) {
	s := newService(t, e2btest.Options{})
	b := s.Start(time.Hour)
	w, dir := s.inSandbox(t, b)
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("prior"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.Rule(&e2btest.Rule{Method: "GET /files", Times: 1, Status: 500, Text: `{"code":500,"message":"disk"}`})
	req := remotefs.WriteRequest{Content: strings.NewReader("x"), Size: 1, Mode: -1, BasisMax: 100}
	if _, err := w.Files().WriteText(t.Context(), remotefs.AtPath("f", ""), req); !fault.Is(err, fault.FSIOError) {
		t.Errorf("error %v", err)
	}
	if text, _ := os.ReadFile(filepath.Join(dir, "f")); string(text) != "prior" {
		t.Errorf("the file holds %q", text)
	}
	frames := e2btest.Frames(`{"event":{"start":{"pid":77}}}`, `{"event":{"data":{"stdout":"aGVsbG8="}}}`, `{"event":{"end":{"exited":true,"status":"exit status 0"}}}`)
	s.Rule(&e2btest.Rule{Method: "Start", Body: "link", Times: 1, Status: 200, Text: frames})
	req = remotefs.WriteRequest{Content: strings.NewReader("x"), Size: 1, Mode: -1, Intent: remotefs.IntentCreate}
	if _, err := w.Files().WriteText(t.Context(), remotefs.AtPath("new", ""), req); !fault.Is(err, fault.FSIOError) {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); err == nil {
		t.Error("something was published")
	}
	if left, _ := filepath.Glob(filepath.Join(b.Home, ".afield", "st", "*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Without extended attributes in the sandbox versions rest on the other facts
// and guards still work.
func TestWithoutMetadata(t *testing.T) {
	s := newService(t, e2btest.Options{NoMetadata: true})
	w, _ := s.inSandbox(t, s.Start(time.Hour))
	put := func(text, version string) (remotefs.WriteOutcome, error) {
		req := remotefs.WriteRequest{Content: strings.NewReader(text), Size: int64(len(text)), Mode: -1}
		if version != "" {
			req.Intent, req.Version = remotefs.IntentReplace, version
		}
		return w.Files().WriteText(t.Context(), remotefs.AtPath("f", ""), req)
	}
	first, err := put("one", "")
	if err != nil {
		t.Fatal(err)
	}
	second, err := put("two", first.Version)
	if err != nil || second.Version == first.Version {
		t.Fatal(second, err)
	}
	if _, err := put("late", first.Version); !fault.Is(err, fault.FSStaleVersion) {
		t.Errorf("error %v", err)
	}
}
