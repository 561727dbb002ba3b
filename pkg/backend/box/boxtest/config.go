package boxtest

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
)

// addConfig serves what may be changed and looked up in a box's record.
func (s *Server) addConfig(mux *http.ServeMux) {
	mux.HandleFunc("PUT /v2/box/{id}/config/network-policy", s.setNetwork)
	mux.HandleFunc("POST /v2/box/{id}/config/labels", s.addLabel)
	mux.HandleFunc("DELETE /v2/box/{id}/config/labels/{label}", s.removeLabel)
	mux.HandleFunc("GET /v2/box/{id}/startup", s.startup)
	mux.HandleFunc("PUT /v2/box/{id}/startup", s.setStartup)
	mux.HandleFunc("DELETE /v2/box/{id}/startup", s.setStartup)
	mux.HandleFunc("GET /v2/box/{id}/logs", s.logs)
	mux.HandleFunc("GET /v2/box/{id}/runs", s.listRuns)
}

func (s *Server) setNetwork(w http.ResponseWriter, r *http.Request) {
	if b := s.alive(w, r); b != nil {
		policy, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		b.data.Network = policy
		answer(w, http.StatusOK, map[string]string{})
	}
}

func (s *Server) addLabel(w http.ResponseWriter, r *http.Request) {
	b := s.alive(w, r)
	if b == nil {
		return
	}
	var body struct {
		Label string `json:"label"`
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	s.mu.Lock()
	defer s.mu.Unlock()
	labels := append(slices.Clone(b.data.Labels), body.Label)
	if p := (createBody{Labels: labels}).problem(); p != "" {
		refuse(w, http.StatusBadRequest, "%s", p)
		return
	}
	b.data.Labels = labels
	answer(w, http.StatusOK, map[string]any{"labels": labels})
}

func (s *Server) removeLabel(w http.ResponseWriter, r *http.Request) {
	if b := s.alive(w, r); b != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		gone := r.PathValue("label")
		b.data.Labels = slices.DeleteFunc(slices.Clone(b.data.Labels), func(l string) bool { return l == gone })
		answer(w, http.StatusOK, map[string]any{"labels": b.data.Labels})
	}
}

// keepAlive gives a box that may have a command at its start.
func (s *Server) keepAlive(w http.ResponseWriter, r *http.Request) *box {
	b := s.alive(w, r)
	if b != nil && !b.data.KeepAlive {
		refuse(w, http.StatusBadRequest, "only keep-alive boxes have an init command")
		return nil
	}
	return b
}

func (s *Server) startup(w http.ResponseWriter, r *http.Request) {
	if b := s.keepAlive(w, r); b != nil {
		answer(w, http.StatusOK, map[string]string{"init_command": b.data.Init})
	}
}

func (s *Server) setStartup(w http.ResponseWriter, r *http.Request) {
	b := s.keepAlive(w, r)
	if b == nil {
		return
	}
	var body struct {
		Init string `json:"init_command"`
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	s.mu.Lock()
	defer s.mu.Unlock()
	b.data.Init = body.Init
	answer(w, http.StatusOK, map[string]string{})
}

func (s *Server) logs(w http.ResponseWriter, r *http.Request) {
	if b := s.alive(w, r); b != nil {
		answer(w, http.StatusOK, map[string]any{"logs": []map[string]any{
			{"timestamp": b.data.CreatedAt, "level": "info", "source": "system", "message": "box created"}}})
	}
}

func (s *Server) listRuns(w http.ResponseWriter, r *http.Request) {
	if b := s.alive(w, r); b != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		answer(w, http.StatusOK, map[string]any{"runs": b.runs})
	}
}
