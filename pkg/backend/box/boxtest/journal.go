package boxtest

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// Record is one request or one frame of a session, in the order of arrival. The
// key is never part of it.
type Record struct {
	// Kind is "request", or "client" or "server" for a frame by its sender.
	Kind string `json:"kind"`
	// Line is "METHOD path?query" of a request.
	Line string `json:"line,omitempty"`
	// Body is that of a request, or the text of a frame, cut after 64 KiB; of
	// output only the beginning is kept.
	Body string `json:"body,omitempty"`
	// Box is the id of the box that a frame belongs to.
	Box string `json:"box,omitempty"`
}

// FrameType gives the type of a frame.
func (r Record) FrameType() string {
	if rest, ok := strings.CutPrefix(r.Body, `{"type":"`); ok {
		name, _, _ := strings.Cut(rest, `"`)
		return name
	}
	var f struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal([]byte(r.Body), &f)
	return f.Type
}

const maxRecorded = 64 << 10

func (s *Server) note(r *http.Request, body []byte) {
	s.record(Record{Kind: "request", Line: r.Method + " " + r.URL.RequestURI(), Body: cutText(body)})
}

func (s *Server) record(r Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.journal = append(s.journal, r)
}

func cutText(b []byte) string { return string(b[:min(len(b), maxRecorded)]) }

// Journal gives what has been written down since the last ClearJournal.
func (s *Server) Journal() []Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Record(nil), s.journal...)
}

// ClearJournal forgets what was written down.
func (s *Server) ClearJournal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.journal = nil
}

// Requests gives the lines of all requests that contain part.
func (s *Server) Requests(part string) []string {
	var lines []string
	for _, r := range s.Journal() {
		if r.Kind == "request" && strings.Contains(r.Line, part) {
			lines = append(lines, r.Line)
		}
	}
	return lines
}

// Frames gives the types of the frames that kind ("client" or "server") sent.
func (s *Server) Frames(kind string) []string {
	var types []string
	for _, r := range s.Journal() {
		if r.Kind == kind {
			types = append(types, r.FrameType())
		}
	}
	return types
}

// addControl serves the same to programs: GET /control/journal, DELETE
// /control/journal, POST /control/fault, DELETE /control/fault, POST
// /control/advance?for=1h, POST /control/cut, GET /control/boxes.
func (s *Server) addControl(mux *http.ServeMux) {
	ok := func(w http.ResponseWriter) { w.WriteHeader(http.StatusNoContent) }
	mux.HandleFunc("GET /control/journal", func(w http.ResponseWriter, _ *http.Request) { answer(w, 200, s.Journal()) })
	mux.HandleFunc("DELETE /control/journal", func(w http.ResponseWriter, _ *http.Request) { s.ClearJournal(); ok(w) })
	mux.HandleFunc("GET /control/boxes", func(w http.ResponseWriter, _ *http.Request) { answer(w, 200, s.Boxes()) })
	mux.HandleFunc("DELETE /control/fault", func(w http.ResponseWriter, _ *http.Request) { s.ClearFaults(); ok(w) })
	mux.HandleFunc("POST /control/fault", func(w http.ResponseWriter, r *http.Request) {
		var f Fault
		if err := json.NewDecoder(r.Body).Decode(&f); err != nil {
			refuse(w, http.StatusBadRequest, "%s", err)
			return
		}
		s.Fault(f)
		ok(w)
	})
	mux.HandleFunc("POST /control/cut", func(w http.ResponseWriter, _ *http.Request) { s.CutSessions(); ok(w) })
	mux.HandleFunc("POST /control/advance", func(w http.ResponseWriter, r *http.Request) {
		d, err := time.ParseDuration(r.URL.Query().Get("for"))
		if err != nil {
			refuse(w, http.StatusBadRequest, "%s", err)
			return
		}
		s.Advance(d)
		ok(w)
	})
}
