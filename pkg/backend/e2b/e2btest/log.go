package e2btest

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Entry is one request that arrived.
type Entry struct {
	Plane  string // "api" or "envd"
	Method string // "POST /v2/sandboxes", "GET /files", or an RPC's short name: "Stat"
	Path   string // query parameter of the file API
	Header http.Header
	// Body is that of a unary or Start request: what the platform logs.
	Body  []byte
	Start time.Time
	// End is when the answer was complete; zero while it is not.
	End time.Time
}

// Log gives the requests so far in order of arrival.
func (s *Server) Log() []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Entry, len(s.log))
	for i, e := range s.log {
		out[i] = *e
	}
	return out
}

// Sequence gives how many of the requests waited for one another: the longest
// chain of which each began after the one before had its answer.
func Sequence(log []Entry) int {
	log = slices.Clone(log)
	slices.SortFunc(log, func(a, b Entry) int { return a.End.Compare(b.End) })
	n, last := 0, time.Time{}
	for _, e := range log {
		if !e.End.IsZero() && e.Start.After(last) {
			n, last = n+1, e.End
		}
	}
	return n
}

// ResetLog forgets the requests so far.
func (s *Server) ResetLog() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = nil
}

// Requests gives the methods of the requests so far.
func (s *Server) Requests() []string {
	var names []string
	for _, e := range s.Log() {
		names = append(names, e.Method)
	}
	return names
}

// methodOf names a request: an RPC by its last part, another by verb and path
// with ids left out.
func methodOf(r *http.Request) string {
	if rest, ok := strings.CutPrefix(r.URL.Path, "/process.Process/"); ok {
		return rest
	}
	if rest, ok := strings.CutPrefix(r.URL.Path, "/filesystem.Filesystem/"); ok {
		return rest
	}
	parts := strings.Split(r.URL.Path, "/")
	for i, p := range parts {
		if i > 0 && parts[i-1] == "sandboxes" && p != "" {
			parts[i] = "ID"
		}
	}
	return r.Method + " " + strings.Join(parts, "/")
}

// watched logs each request, holds it in its round, and applies the rules.
func (s *Server) watched(plane string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e := &Entry{Plane: plane, Method: methodOf(r), Path: r.URL.Query().Get("path"), Header: r.Header.Clone(), Start: time.Now()}
		if logged(r) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			e.Body = body
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		s.mu.Lock()
		s.log = append(s.log, e)
		rule, held := s.ruleFor(e), s.rounds
		s.mu.Unlock()
		if held != nil {
			held.enter(e.Method)
		}
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			e.End = time.Now()
		}()
		rule.apply(w, r, next)
	})
}

// logged reports whether the platform keeps a request's content: that of unary
// calls and of Start, not that of uploads and input streams.
func logged(r *http.Request) bool {
	return !strings.HasPrefix(r.URL.Path, "/files") && !strings.HasSuffix(r.URL.Path, "/StreamInput")
}
