package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"strings"
	"testing"
)

// frames joins messages as the daemon sends them.
func frames(parts ...string) *Stream {
	var b []byte
	for _, p := range parts {
		flags := byte(0)
		if rest, ok := strings.CutPrefix(p, "end:"); ok {
			flags, p = FlagEnd, rest
		}
		b = AppendEnvelope(b, flags, []byte(p))
	}
	return &Stream{method: "Start", body: io.NopCloser(bytes.NewReader(b)), r: EnvelopeReader{R: bytes.NewReader(b)}}
}

// The messages of e2b.md 17, as a daemon sent them.
func TestGoldenFrames(t *testing.T) {
	s := frames(
		`{"event":{"start":{"pid":5976}}}`,
		`{"event":{"data":{"stdout":"YQBi/w=="}}}`,
		`{"event": {"data": {"stderr": "eA=="}}}`,
		`{"event":{"keepalive":{}}}`,
		`{"event":{"end":{"exitCode":7,"exited":true,"status":"exit status 7","error":"exit status 7"}}}`,
		`end:{}`)
	ev, err := s.NextEvent()
	if err != nil || ev.Start == nil || ev.Start.PID != 5976 {
		t.Fatalf("start: %+v %v", ev, err)
	}
	if ev, err = s.NextEvent(); err != nil || string(ev.Data.Stdout) != "a\x00b\xff" {
		t.Fatalf("data: %+v %v", ev, err)
	}
	if ev, err = s.NextEvent(); err != nil || string(ev.Data.Stderr) != "x" {
		t.Fatalf("spaced data: %+v %v", ev, err)
	}
	if ev, err = s.NextEvent(); err != nil || ev.Keepalive == nil {
		t.Fatalf("keepalive: %+v %v", ev, err)
	}
	if ev, err = s.NextEvent(); err != nil || ev.End == nil || ev.End.ExitCode != 7 || !ev.End.Exited {
		t.Fatalf("end: %+v %v", ev, err)
	}
	if _, err = s.NextEvent(); err != io.EOF {
		t.Fatalf("end of stream: %v", err)
	}
	if got := AppendEnvelope(nil, FlagEnd, []byte("{}")); !bytes.Equal(got, []byte{2, 0, 0, 0, 2, '{', '}'}) {
		t.Errorf("end frame: % x", got)
	}
}

// A refusal in the end message carries its code and text.
func TestStreamEndsWithError(t *testing.T) {
	s := frames(`end:{"error":{"code":"invalid_argument","message":"cwd '/nope' does not exist"}}`)
	_, err := s.NextEvent()
	if CodeOf(err) != CodeInvalidArgument || !strings.Contains(err.Error(), "cwd '/nope' does not exist") {
		t.Fatal(err)
	}
}

// A stream that stops inside a message, or between two without an end message,
// was cut; it never counts as finished.
func TestCutStream(t *testing.T) {
	whole := AppendEnvelope(nil, 0, []byte(`{"event":{"start":{"pid":5}}}`))
	for n := range whole {
		s := &Stream{r: EnvelopeReader{R: bytes.NewReader(whole[:n])}}
		if _, err := s.NextEvent(); err != ErrCut {
			t.Fatalf("after %d bytes: %v", n, err)
		}
	}
	s := frames(`{"event":{"start":{"pid":5}}}`)
	s.NextEvent()
	if _, err := s.NextEvent(); err != ErrCut {
		t.Fatal(err)
	}
}

// Numeric codes, proxies' bodies and empty bodies are told by the status
// (quirk 21).
func TestErrorBodies(t *testing.T) {
	for _, c := range []struct {
		status     int
		body, code string
		edge       bool
	}{
		{404, `{"code":"not_found","message":"no"}`, CodeNotFound, false},
		{401, `{"code":401,"message":"no"}`, CodeUnauthenticated, true},
		{502, ``, CodeUnavailable, true},
		{502, `{"sandboxId":"x","message":"The sandbox was not found","code":502}`, CodeUnavailable, true},
		{400, `missing header`, CodeInternal, true},
		{403, ``, CodePermissionDenied, true},
		{404, `404 page not found`, CodeUnimplemented, true},
		{429, ``, CodeUnavailable, true},
		{418, ``, CodeUnknown, true},
	} {
		e := newError("Stat", c.status, []byte(c.body), "")
		if e.Code != c.code || e.Edge != c.edge || e.Status != c.status || e.RetryAfter != -1 {
			t.Errorf("%d %q: %+v", c.status, c.body, e)
		}
	}
	if e := newError("Stat", 429, nil, "7"); e.RetryAfter != 7 {
		t.Errorf("Retry-After: %d", e.RetryAfter)
	}
}

func TestJSONForms(t *testing.T) {
	var e EntryInfo
	text := `{"name":"f","type":"FILE_TYPE_FILE","size":"807","mode":493,"permissions":"ugtrwxr-xr-x","modifiedTime":"2026-01-02T03:04:05.123456789Z"}`
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		t.Fatal(err)
	}
	if e.Size != 807 || e.Type != TypeFile || e.ModTime().Nanosecond() != 123456789 || e.SpecialBits() != 0o7000 {
		t.Errorf("%+v", e)
	}
	var sig Signal
	for text, want := range map[string]Signal{`"SIGNAL_SIGTERM"`: SignalTerm, `9`: SignalKill, `"SIGNAL_UNSPECIFIED"`: 0} {
		if err := json.Unmarshal([]byte(text), &sig); err != nil || sig != want {
			t.Errorf("%s: %d %v", text, sig, err)
		}
	}
	out, _ := json.Marshal(SendSignalRequest{Process: ByPID(7), Signal: SignalKill})
	if string(out) != `{"process":{"pid":7},"signal":"SIGNAL_SIGKILL"}` {
		t.Errorf("%s", out)
	}
}

// The short way of decoding output agrees with the general one.
func FuzzDataEvent(f *testing.F) {
	f.Add([]byte("a\x00b\xff"), "stdout")
	f.Add([]byte{}, "pty")
	f.Fuzz(func(t *testing.T, data []byte, name string) {
		payload := `{"event":{"data":{"` + name + `":"` + base64.StdEncoding.EncodeToString(data) + `"}}}`
		fast, ok := (&Stream{}).dataEvent([]byte(payload))
		var slow StartResponse
		if err := json.Unmarshal([]byte(payload), &slow); err != nil || !ok {
			return
		}
		for _, pair := range [][2][]byte{
			{fast.Data.Stdout, slow.Event.Data.Stdout}, {fast.Data.Stderr, slow.Event.Data.Stderr}, {fast.Data.PTY, slow.Event.Data.PTY},
		} {
			if !bytes.Equal(pair[0], pair[1]) {
				t.Fatalf("%s: %q and %q", payload, pair[0], pair[1])
			}
		}
	})
}
