package e2btest

import (
	"net/http"
	"strings"
	"sync"
	"time"
)

// Rule changes the answer of requests. The first rule that matches and is not
// used up applies.
type Rule struct {
	// Method is that of the log; a trailing * matches any rest.
	Method string
	// Body is text that the request's body must hold; "" = any.
	Body string
	// Skip lets that many matching requests pass first.
	Skip int
	// Times is how often the rule applies; 0 = always.
	Times int

	// Delay holds the request.
	Delay time.Duration
	// Hold, if not nil, holds the request until it is closed or the client has
	// gone.
	Hold chan struct{}
	// Status, if not 0, is answered instead of asking the handler, with Text
	// and Header.
	Status int
	Text   string
	Header map[string]string
	// Cut closes the connection after so many bytes of the answer; 0 = never,
	// -1 = before the first byte. After, if given, is called then.
	Cut int
	// Lose lets the handler act, then closes the connection without an answer.
	Lose bool
	// Before is called ahead of everything else.
	Before func()
	// After is called when the handler has acted, before its answer is seen.
	After func()

	mu   sync.Mutex
	seen int
	used int
}

// Used gives how often the rule has applied.
func (r *Rule) Used() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.used
}

// Rule adds a rule.
func (s *Server) Rule(r *Rule) *Rule {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = append(s.rules, r)
	return r
}

// ReleaseAll removes all rules and lets go what they hold.
func (s *Server) ReleaseAll() {
	s.mu.Lock()
	rules := s.rules
	s.rules = nil
	s.mu.Unlock()
	for _, r := range rules {
		r.release()
	}
}

func (r *Rule) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.Hold != nil {
		select {
		case <-r.Hold:
		default:
			close(r.Hold)
		}
	}
}

// ruleFor gives the rule of a request, or nil. The caller holds s.mu.
func (s *Server) ruleFor(e *Entry) *Rule {
	for _, r := range s.rules {
		if r.take(e) {
			return r
		}
	}
	return nil
}

func (r *Rule) take(e *Entry) bool {
	prefix, any := strings.CutSuffix(r.Method, "*")
	if e.Method != r.Method && !(any && strings.HasPrefix(e.Method, prefix)) {
		return false
	}
	if !strings.Contains(string(e.Body), r.Body) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen++
	if r.seen <= r.Skip || r.Times > 0 && r.used >= r.Times {
		return false
	}
	r.used++
	return true
}

// apply answers a request. A nil rule asks the handler.
func (r *Rule) apply(w http.ResponseWriter, req *http.Request, next http.Handler) {
	if r == nil {
		next.ServeHTTP(w, req)
		return
	}
	if r.Before != nil {
		r.Before()
	}
	if r.Delay > 0 {
		time.Sleep(r.Delay)
	}
	if r.Hold != nil {
		select {
		case <-r.Hold:
		case <-req.Context().Done():
			panic(http.ErrAbortHandler)
		}
	}
	switch {
	case r.Status != 0:
		for k, v := range r.Header {
			w.Header().Set(k, v)
		}
		w.WriteHeader(r.Status)
		w.Write([]byte(r.Text))
	case r.Cut < 0:
		panic(http.ErrAbortHandler)
	case r.Cut > 0:
		next.ServeHTTP(&cutWriter{ResponseWriter: w, left: r.Cut, after: r.After}, req)
	case r.Lose || r.After != nil:
		held := &heldAnswer{header: http.Header{}, status: http.StatusOK}
		next.ServeHTTP(held, req)
		if r.After != nil {
			r.After()
		}
		if r.Lose {
			panic(http.ErrAbortHandler)
		}
		held.send(w)
	default:
		next.ServeHTTP(w, req)
	}
}

// heldAnswer keeps an answer back.
type heldAnswer struct {
	header http.Header
	status int
	body   []byte
}

func (h *heldAnswer) Header() http.Header         { return h.header }
func (h *heldAnswer) WriteHeader(status int)      { h.status = status }
func (h *heldAnswer) Write(p []byte) (int, error) { h.body = append(h.body, p...); return len(p), nil }
func (h *heldAnswer) Flush()                      {}

func (h *heldAnswer) send(w http.ResponseWriter) {
	for k, v := range h.header {
		w.Header()[k] = v
	}
	w.WriteHeader(h.status)
	w.Write(h.body)
}

// cutWriter closes the connection after some bytes.
type cutWriter struct {
	http.ResponseWriter
	left  int
	after func() // nil = nothing
}

func (c *cutWriter) Write(p []byte) (int, error) {
	n := min(len(p), c.left)
	c.ResponseWriter.Write(p[:n])
	c.left -= n
	c.Flush()
	if c.left == 0 {
		if c.after != nil {
			c.after()
		}
		panic(http.ErrAbortHandler)
	}
	return n, nil
}

// Flush passes on what was written.
func (c *cutWriter) Flush() { c.ResponseWriter.(http.Flusher).Flush() }

// rounds holds the requests of a round until all of them are there. A client
// that sends one after the other what belongs together is stuck.
type rounds struct {
	mu    sync.Mutex
	cond  *sync.Cond
	want  []map[string]int
	extra []string
	stop  bool
}

// ExpectRounds holds requests so that they are answered round by round: those
// of a round only when all of it have arrived. A round counts requests by
// method. It proves how many round trips a client waits for, without a clock.
func (s *Server) ExpectRounds(want ...map[string]int) {
	r := &rounds{want: want}
	r.cond = sync.NewCond(&r.mu)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rounds = r
}

// EndRounds lets everything pass again. It gives what was still expected and
// what came beside it.
func (s *Server) EndRounds() (missing []map[string]int, extra []string) {
	s.mu.Lock()
	r := s.rounds
	s.rounds = nil
	s.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stop = true
	r.cond.Broadcast()
	return r.want, r.extra
}

func (r *rounds) enter(method string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.want) == 0 || r.want[0][method] == 0 {
		r.extra = append(r.extra, method)
		return
	}
	now := r.want[0]
	now[method]--
	if now[method] == 0 {
		delete(now, method)
	}
	if len(now) == 0 {
		r.want = r.want[1:]
		r.cond.Broadcast()
		return
	}
	for len(now) > 0 && !r.stop {
		r.cond.Wait()
	}
}
