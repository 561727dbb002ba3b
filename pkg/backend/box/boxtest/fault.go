package boxtest

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// Fault is a failure of the service. The zero value of a field leaves that
// aspect alone. A fault strikes the requests whose "METHOD path" contains Match,
// after it has let Skip of them pass, Times times (0 = always).
type Fault struct {
	Match string `json:"match"`
	Skip  int    `json:"skip"`
	Times int    `json:"times"`

	// Status answers this, with Body and Header, instead of serving.
	Status int               `json:"status"`
	Body   string            `json:"body"`
	Header map[string]string `json:"header"`
	// Delay waits before serving.
	Delay time.Duration `json:"delay"`
	// Hang never answers; the request ends when the client leaves.
	Hang bool `json:"hang"`
	// Reset cuts the connection: "before" anything is done, "after" it was done
	// and before the answer, "middle" of the answer.
	Reset string `json:"reset"`
	// Session changes an exec session.
	Session *SessionFault `json:"session"`
}

// SessionFault is a failure of an exec session after its upgrade.
type SessionFault struct {
	// Started replaces the answer "started" by these texts; nothing is started
	// then, and the frames of the client are only written down.
	Started []string `json:"started"`
	// Silent never answers anything and starts nothing.
	Silent bool `json:"silent"`
	// Hold keeps "started" back until Server.Release is called.
	Hold bool `json:"hold"`
	// Inject sends these texts right after "started".
	Inject []string `json:"inject"`
	// CutAt drops the socket instead of passing the frame of this type on; To
	// says whose frame ("client" or "server"; "" = server), After how many of
	// them pass before.
	CutAt string `json:"cutAt"`
	From  string `json:"from"`
	After int    `json:"after"`
	// Stall stops passing the server's frames on from the one of this type on,
	// and keeps the socket open.
	Stall string `json:"stall"`
	// Drop throws the client's frames of this type away.
	Drop string `json:"drop"`
	// Delay waits before each frame of the server.
	Delay time.Duration `json:"delay"`
	// After the exit frame these texts are sent.
	AfterExit []string `json:"afterExit"`
	// NoPong leaves the client's pings unanswered.
	NoPong bool `json:"noPong"`
}

// Fault adds a failure. Faults are tried in the order of their addition; the
// first that matches strikes.
func (s *Server) Fault(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &f)
}

// ClearFaults ends all failures.
func (s *Server) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// strikes gives the fault for a request, or nil; the lock is held.
func (s *Server) strikes(what string) *Fault {
	for _, f := range s.faults {
		if !strings.Contains(what, f.Match) || f.Times < 0 {
			continue
		}
		if f.Skip > 0 {
			f.Skip--
			return nil
		}
		if f.Times > 0 {
			if f.Times--; f.Times == 0 {
				f.Times = -1
			}
		}
		return f
	}
	return nil
}

type bodyKey struct{}

// bodyOf gives the body of a request again.
func bodyOf(r *http.Request) []byte {
	body, _ := r.Context().Value(bodyKey{}).([]byte)
	return body
}

type faultKey struct{}

// faulty writes a request down and lets a fault strike it.
func (s *Server) faulty(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		r = r.WithContext(context.WithValue(r.Context(), bodyKey{}, body))
		s.note(r, body)
		s.mu.Lock()
		f := s.strikes(r.Method + " " + r.URL.RequestURI())
		s.mu.Unlock()
		if f == nil {
			next.ServeHTTP(w, r)
			return
		}
		s.strike(f, next, w, r)
	})
}

func (s *Server) strike(f *Fault, next http.Handler, w http.ResponseWriter, r *http.Request) {
	if f.Delay > 0 {
		select {
		case <-time.After(f.Delay):
		case <-r.Context().Done():
			return
		}
	}
	switch {
	case f.Hang:
		<-r.Context().Done()
	case f.Reset == "before":
		cut(w)
	case f.Reset == "after":
		next.ServeHTTP(&recorder{header: http.Header{}}, r)
		cut(w)
	case f.Reset == "middle":
		rec := &recorder{header: http.Header{}}
		next.ServeHTTP(rec, r)
		w.Header().Set("Content-Length", "100000")
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write(rec.body.Bytes()[:rec.body.Len()/2])
		_ = http.NewResponseController(w).Flush()
		cut(w)
	case f.Status != 0:
		for k, v := range f.Header {
			w.Header().Set(k, v)
		}
		w.WriteHeader(f.Status)
		_, _ = io.WriteString(w, f.Body)
	default:
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), faultKey{}, f.Session)))
	}
}

// cut resets the connection of a request.
func cut(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// recorder takes an answer that nobody will see.
type recorder struct {
	header http.Header
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }
func (r *recorder) WriteHeader(int)             {}
