package boxtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// createBody are the fields of a creation.
type createBody struct {
	SnapshotID string            `json:"snapshot_id"`
	Name       string            `json:"name"`
	Labels     []string          `json:"labels"`
	Size       string            `json:"size"`
	Runtime    string            `json:"runtime"`
	Env        map[string]string `json:"env_vars"`
	Network    json.RawMessage   `json:"network_policy"`
	KeepAlive  bool              `json:"keep_alive"`
	Init       string            `json:"init_command"`
	Ephemeral  bool              `json:"ephemeral"`
	TTL        int64             `json:"ttl"`
}

const maxTTL = 259200

func (s *Server) addLifecycle(mux *http.ServeMux) {
	mux.HandleFunc("POST /v2/box", func(w http.ResponseWriter, r *http.Request) { s.create(w, r, false) })
	mux.HandleFunc("POST /v2/box/from-snapshot", func(w http.ResponseWriter, r *http.Request) { s.create(w, r, true) })
	mux.HandleFunc("GET /v2/box", s.list)
	mux.HandleFunc("DELETE /v2/box", s.deleteMany)
	mux.HandleFunc("GET /v2/box/{id}", s.get)
	mux.HandleFunc("DELETE /v2/box/{id}", s.delete)
	mux.HandleFunc("GET /v2/box/{id}/status", s.status)
	mux.HandleFunc("POST /v2/box/{id}/pause", s.pause)
	mux.HandleFunc("POST /v2/box/{id}/resume", s.resume)
}

// problem says what the service would refuse in a creation.
func (c createBody) problem() string {
	label := regexp.MustCompile(`^[A-Za-z0-9._:-]{1,20}$`)
	runtime := regexp.MustCompile(`^(node|python|golang|ruby|rust)(-alpine)?$`)
	switch {
	case len(c.Labels) > 5 || slices.ContainsFunc(c.Labels, func(l string) bool { return !label.MatchString(l) }):
		return "invalid labels"
	case c.Runtime != "" && !runtime.MatchString(c.Runtime):
		return "invalid runtime"
	case c.Size != "" && !slices.Contains([]string{"small", "medium", "large"}, c.Size):
		return "invalid size"
	case c.Ephemeral && (c.KeepAlive || c.TTL < 0 || c.TTL > maxTTL):
		return "invalid ephemeral settings"
	case c.Init != "" && !c.KeepAlive:
		return "init_command requires keep_alive"
	}
	for name := range c.Env {
		if isBlocked(name) {
			return name + " cannot be set"
		}
	}
	return ""
}

func (s *Server) create(w http.ResponseWriter, r *http.Request, restore bool) {
	var c createBody
	if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
		refuse(w, http.StatusBadRequest, "invalid request body")
		return
	}
	if p := c.problem(); p != "" {
		refuse(w, http.StatusBadRequest, "%s", p)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.Name != "" && s.find(c.Name) != nil {
		refuse(w, http.StatusConflict, "A box with this name already exists")
		return
	}
	from := ""
	if restore {
		snap := s.findSnapshot(c.SnapshotID)
		if snap == nil {
			refuse(w, http.StatusNotFound, "Snapshot not found")
			return
		}
		from = snap.dir
		c.Env = overlay(snap.env, c.Env)
	}
	b, err := s.newBox(c, from)
	if err != nil {
		refuse(w, http.StatusInternalServerError, "%s", err)
		return
	}
	answer(w, http.StatusOK, b.data)
}

func overlay(under, over map[string]string) map[string]string {
	all := map[string]string{}
	for _, m := range []map[string]string{under, over} {
		for k, v := range m {
			all[k] = v
		}
	}
	return all
}

// newBox makes a box; the lock is held.
func (s *Server) newBox(c createBody, from string) (*box, error) {
	s.number++
	id := fmt.Sprintf("calm-otter-%d", 10000+s.number)
	b := &box{server: s, dir: filepath.Join(s.scratch, fmt.Sprint(s.number)), polls: s.opts.Polls}
	if err := os.Mkdir(b.dir, 0o711); err != nil {
		return nil, err
	}
	if err := b.prepare(from); err != nil {
		return nil, err
	}
	now := float64(s.now().Unix())
	b.data = record{ID: id, CustomerID: "customer", Name: c.Name, Labels: c.Labels, Size: or(c.Size, "small"),
		Runtime: or(c.Runtime, "node"), Status: "idle", KeepAlive: c.KeepAlive, Ephemeral: c.Ephemeral,
		CreatedAt: now, UpdatedAt: now, Network: c.Network, Init: c.Init, Env: c.Env}
	if c.Ephemeral {
		ttl := c.TTL
		if ttl == 0 {
			ttl = maxTTL
		}
		b.data.ExpiresAt = now + float64(ttl)
	}
	if b.polls > 0 || s.strikes("creation fails") != nil || s.stuck() {
		b.data.Status = "creating"
	}
	s.boxes = append(s.boxes, b)
	return b, nil
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// advance moves a creation on by one poll; the lock is held.
func (s *Server) advance(b *box) {
	if b.data.Status != "creating" || s.stuck() {
		return
	}
	if s.strikes("creation fails") != nil {
		b.data.Status = "error"
		return
	}
	if b.polls--; b.polls <= 0 {
		b.data.Status = "idle"
	}
}

func (s *Server) stuck() bool { return s.strikes("creation hangs") != nil }

func (s *Server) get(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.find(r.PathValue("id"))
	if b == nil {
		refuse(w, http.StatusNotFound, "Box not found")
		return
	}
	s.advance(b)
	answer(w, http.StatusOK, b.data)
}

func (s *Server) status(w http.ResponseWriter, r *http.Request) {
	if b := s.alive(w, r); b != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		answer(w, http.StatusOK, map[string]string{"status": b.data.Status})
	}
}

// list leaves deleted boxes out unless they are asked for.
func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	label, deleted := r.URL.Query().Get("label"), r.URL.Query().Get("status") == "deleted"
	s.mu.Lock()
	defer s.mu.Unlock()
	all := []record{}
	for _, b := range s.boxes {
		if (b.data.Status == "deleted") == deleted && (label == "" || slices.Contains(b.data.Labels, label)) {
			all = append(all, b.data)
		}
	}
	answer(w, http.StatusOK, all)
}

func (s *Server) delete(w http.ResponseWriter, r *http.Request) {
	if b := s.alive(w, r); b != nil {
		s.destroy(b)
		answer(w, http.StatusOK, map[string]string{})
	}
}

func (s *Server) destroy(b *box) {
	s.mu.Lock()
	b.data.Status = "deleted"
	s.mu.Unlock()
	b.halt()
}

func (s *Server) deleteMany(w http.ResponseWriter, r *http.Request) {
	var body struct {
		IDs []string `json:"ids"`
	}
	if json.NewDecoder(r.Body).Decode(&body) != nil || len(body.IDs) == 0 {
		refuse(w, http.StatusBadRequest, "ids are required")
		return
	}
	for _, id := range body.IDs {
		s.mu.Lock()
		b := s.find(id)
		s.mu.Unlock()
		if b != nil {
			s.destroy(b)
		}
	}
	answer(w, http.StatusOK, map[string]string{})
}

func (s *Server) pause(w http.ResponseWriter, r *http.Request) {
	b := s.alive(w, r)
	switch {
	case b == nil:
	case b.data.KeepAlive || b.data.Ephemeral:
		refuse(w, http.StatusBadRequest, "this box cannot be paused")
	default:
		s.mu.Lock()
		b.data.Status = "paused"
		s.mu.Unlock()
		b.halt()
		w.WriteHeader(http.StatusOK)
	}
}

func (s *Server) resume(w http.ResponseWriter, r *http.Request) {
	if b := s.alive(w, r); b != nil {
		s.mu.Lock()
		b.data.Status = "idle"
		s.mu.Unlock()
		w.WriteHeader(http.StatusOK)
	}
}

// Box is what a test sees of a box.
type Box struct {
	ID, Name, Status string
	Labels           []string
	Ephemeral        bool
	ExpiresAt        float64
	// Home is the directory on this machine that the box sees as its workspace.
	Home string
}

// Boxes gives all boxes that were ever made, deleted ones too.
func (s *Server) Boxes() []Box {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Box
	for _, b := range s.boxes {
		all = append(all, Box{ID: b.data.ID, Name: b.data.Name, Status: b.data.Status, Labels: b.data.Labels,
			Ephemeral: b.data.Ephemeral, ExpiresAt: b.data.ExpiresAt, Home: filepath.Join(b.dir, "home")})
	}
	return all
}

// Live counts the boxes that are not deleted.
func (s *Server) Live() int {
	n := 0
	for _, b := range s.Boxes() {
		if b.Status != "deleted" {
			n++
		}
	}
	return n
}
