package wire_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/afield-dev/afield/pkg/backend/box/boxtest"
	"github.com/afield-dev/afield/pkg/backend/box/wire"
)

func TestNewChecksTheAddress(t *testing.T) {
	for address, good := range map[string]bool{
		"": true, "https://box.example.com/": true, "http://127.0.0.1:9": true, "http://localhost": true, "http://[::1]:1": true,
		"http://box.example.com": false, "ftp://x": false, "box.example.com": false, "https://": false, "://": false,
	} {
		_, err := wire.New(wire.Config{BaseURL: address})
		if (err == nil) != good {
			t.Errorf("%q: %v", address, err)
		}
	}
	if _, err := wire.New(wire.Config{BaseURL: "http://box.example.com", AllowInsecure: true}); err != nil {
		t.Error(err)
	}
}

// A GET is repeated three times on what may pass, a POST only when the server
// has not looked at it (upstash-box.md 2).
func TestRetry(t *testing.T) {
	ms := func(n ...int) (all []time.Duration) {
		for _, one := range n {
			all = append(all, time.Duration(one)*time.Millisecond)
		}
		return all
	}
	get := func(s *stand, id string) error { _, err := s.Get(t.Context(), id); return err }
	post := func(s *stand, id string) error {
		_, err := s.Exec(t.Context(), id, []string{"true"}, "")
		return err
	}
	date := time.Now().Add(20 * time.Second).UTC().Format(http.TimeFormat)
	cases := []struct {
		name  string
		do    func(*stand, string) error
		fault boxtest.Fault
		ok    bool
		waits []time.Duration
	}{
		{"GET 503 twice", get, boxtest.Fault{Times: 2, Status: 503}, true, ms(250, 1000)},
		{"GET 502 for ever", get, boxtest.Fault{Status: 502, Body: "<html>"}, false, ms(250, 1000, 3000)},
		{"GET 504", get, boxtest.Fault{Times: 1, Status: 504}, true, ms(250)},
		{"GET 500", get, boxtest.Fault{Times: 1, Status: 500}, false, nil},
		{"GET 401", get, boxtest.Fault{Times: 1, Status: 401}, false, nil},
		// net/http itself repeats what a kept connection lost before any answer.
		{"GET reset before", get, boxtest.Fault{Times: 1, Reset: "before"}, true, nil},
		{"GET reset in the middle", get, boxtest.Fault{Times: 1, Reset: "middle"}, true, ms(250)},
		{"GET 429 with seconds", get, boxtest.Fault{Times: 1, Status: 429, Header: map[string]string{"Retry-After": "7"}}, true, ms(7000)},
		{"GET 429 absurd", get, boxtest.Fault{Times: 1, Status: 429, Header: map[string]string{"Retry-After": "99999999"}}, true, ms(30000)},
		{"GET 429 nonsense", get, boxtest.Fault{Times: 1, Status: 429, Header: map[string]string{"Retry-After": "soon"}}, true, ms(250)},
		{"GET 429 with a date", get, boxtest.Fault{Times: 1, Status: 429, Header: map[string]string{"Retry-After": date}}, true, nil},
		{"POST 429", post, boxtest.Fault{Match: "/exec", Times: 1, Status: 429}, true, ms(250)},
		{"POST 503", post, boxtest.Fault{Match: "/exec", Times: 1, Status: 503}, false, nil},
		{"POST reset after", post, boxtest.Fault{Match: "/exec", Times: 1, Reset: "after"}, false, nil},
	}
	s := newStand(t, boxtest.Options{})
	id := s.box()
	for _, c := range cases {
		s.waits = nil
		s.ClearFaults()
		if c.fault.Match == "" {
			c.fault.Match = "GET /v2/box/" + id
		}
		s.Fault(c.fault)
		err := c.do(s, id)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
		if strings.HasSuffix(c.name, "date") {
			if len(s.waits) != 1 || s.waits[0] < 10*time.Second || s.waits[0] > 20*time.Second {
				t.Errorf("%s: waited %v", c.name, s.waits)
			}
		} else if !slices.Equal(s.waits, c.waits) {
			t.Errorf("%s: waited %v, want %v", c.name, s.waits, c.waits)
		}
	}
}

// What could not be connected was not sent, and is repeated even as a POST.
func TestDialFailure(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := "http://" + l.Addr().String()
	l.Close()
	tries := 0
	c, err := wire.New(wire.Config{BaseURL: address, Key: "k", Sleep: func(context.Context, time.Duration) error { tries++; return nil }})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Create(t.Context(), wire.CreateFields{})
	var e *wire.Error
	if !errors.As(err, &e) || e.Sent || e.Unknown() || tries != 3 {
		t.Errorf("%+v after %d repetitions", e, tries)
	}
}

// A reply that was lost leaves the outcome unknown, and so does the service's
// cut of a long command (upstash-box.md 2).
func TestUnknownOutcome(t *testing.T) {
	s := newStand(t, boxtest.Options{Cutoff: 50 * time.Millisecond})
	id := s.box()
	_, err := s.Exec(t.Context(), id, []string{"sh", "-c", "sleep 0.3; touch late"}, "")
	var e *wire.Error
	if !errors.As(err, &e) || e.Status != 500 || !e.Unknown() || e.Text != "Failed to execute command" {
		t.Errorf("%+v", err)
	}
	s.Fault(boxtest.Fault{Match: "/exec", Times: 1, Reset: "after"})
	if _, err = s.Exec(t.Context(), id, []string{"true"}, ""); !errors.As(err, &e) || e.Status != 0 || !e.Unknown() {
		t.Errorf("%+v", err)
	}
	s.Fault(boxtest.Fault{Match: "/exec", Times: 1, Status: 400, Body: `{"error":"bad"}`})
	if _, err = s.Exec(t.Context(), id, []string{"true"}, ""); !errors.As(err, &e) || e.Unknown() || e.Text != "bad" {
		t.Errorf("%+v", err)
	}
}

// Error bodies of every kind give one readable line without the key.
func TestErrorText(t *testing.T) {
	s := newStand(t, boxtest.Options{Key: "box_secret"})
	id := s.box()
	for body, want := range map[string]string{
		`{"error":"plain words"}`:          "plain words",
		`{"message":"other words"}`:        "other words",
		`{"error":"key box_secret leaks"}`: "key *** leaks",
		`{"error":{"deep":1}}`:             "Request failed with status 400",
		`<html>no</html>`:                  "Request failed with status 400",
		``:                                 "Request failed with status 400",
		`{"error":"two\nlines\u0007"}`:     "two lines ",
	} {
		s.Fault(boxtest.Fault{Match: "GET", Times: 1, Status: 400, Body: body})
		_, err := s.Get(t.Context(), id)
		if err == nil || err.Error() != want {
			t.Errorf("%q: %v", body, err)
		}
	}
	for _, body := range []string{`{"id":`, `[]`, `{"id":7}`} {
		s.Fault(boxtest.Fault{Match: "GET", Times: 1, Status: 200, Body: body})
		_, err := s.Get(t.Context(), id)
		var e *wire.Error
		if !errors.As(err, &e) || !e.Corrupt {
			t.Errorf("%q: %v", body, err)
		}
	}
}

// The key goes to the origin that was named and to no other.
func TestRedirectToAnotherOrigin(t *testing.T) {
	asked := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer other.Close()
	first := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer first.Close()
	c, err := wire.New(wire.Config{BaseURL: first.URL, Key: "k", Sleep: func(context.Context, time.Duration) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Get(t.Context(), "b"); err == nil || asked {
		t.Errorf("%v, asked %v", err, asked)
	}
}

// A request takes no longer than its caller and its limit allow.
func TestRequestEnds(t *testing.T) {
	s := newStand(t, boxtest.Options{})
	id := s.box()
	s.Fault(boxtest.Fault{Match: "/exec", Hang: true})
	reason := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(20*time.Millisecond, func() { cancel(reason) })
	if _, err := s.Exec(ctx, id, []string{"true"}, ""); !errors.Is(err, reason) {
		t.Error(err)
	}
	slow, err := wire.New(wire.Config{BaseURL: s.URL(), Key: s.Key(), RequestTimeout: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	_, err = slow.Exec(t.Context(), id, []string{"true"}, "")
	var e *wire.Error
	if !errors.As(err, &e) || !e.Slow || !e.Unknown() {
		t.Errorf("%+v", err)
	}
}

func TestIDsAreChecked(t *testing.T) {
	s := newStand(t, boxtest.Options{})
	for _, id := range []string{"", ".", "..", "a/b", "a b", "x?y", "%2e"} {
		if _, err := s.Get(t.Context(), id); err == nil {
			t.Errorf("%q is taken", id)
		}
	}
	if n := len(s.Journal()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}
