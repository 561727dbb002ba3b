package e2btest

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/afield-dev/afield/pkg/backend/e2b/wire"
)

// maxLife is the longest life of a sandbox.
const maxLife = 24 * 60 * 60

// controlPlane serves the REST routes.
func (s *Server) controlPlane() http.Handler {
	mux := http.NewServeMux()
	route := func(pattern string, h http.HandlerFunc) { mux.HandleFunc(pattern, s.authorised(h)) }
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	route("POST /sandboxes", s.handleCreate)
	route("GET /sandboxes", s.handleList)
	route("POST /sandboxes/{id}/connect", s.handleConnect)
	if !s.opts.OldRoutes {
		route("POST /v2/sandboxes", s.handleCreate)
		route("GET /v2/sandboxes", s.handleList)
		route("POST /v2/sandboxes/{id}/connect", s.handleConnect)
	}
	route("GET /sandboxes/{id}", s.known(func(w http.ResponseWriter, _ *http.Request, b *Sandbox) { reply(w, 200, b.detail()) }))
	route("DELETE /sandboxes/{id}", s.known(func(w http.ResponseWriter, _ *http.Request, b *Sandbox) {
		s.remove(b)
		w.WriteHeader(http.StatusNoContent)
	}))
	route("POST /sandboxes/{id}/timeout", s.known(handleTimeout))
	route("POST /sandboxes/{id}/refreshes", s.known(handleRefresh))
	route("POST /sandboxes/{id}/pause", s.known(handlePause))
	route("POST /sandboxes/{id}/snapshots", s.known(s.handleSnapshot))
	return mux
}

// authorised checks the key.
func (s *Server) authorised(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(wire.HeaderAPIKey) != s.opts.Key {
			refuse(w, http.StatusUnauthorized, "Invalid API key")
			return
		}
		next(w, r)
	}
}

// known finds the sandbox of the path. Ids with a client part are cut.
func (s *Server) known(next func(http.ResponseWriter, *http.Request, *Sandbox)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id, _, _ := strings.Cut(r.PathValue("id"), "-")
		b := s.Sandbox(id)
		if b == nil {
			refuse(w, http.StatusNotFound, "Sandbox \""+id+"\" doesn't exist or you don't have access to it")
			return
		}
		next(w, r, b)
	}
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}

// refuse answers with the control plane's numeric code.
func refuse(w http.ResponseWriter, status int, message string) {
	reply(w, status, map[string]any{"code": status, "message": message})
}

// newSandbox is the request of both routes, with every field that is served.
type newSandbox struct {
	wire.NewSandbox
	Timeout *int `json:"timeout"`
}

func (s *Server) handleCreate(w http.ResponseWriter, r *http.Request) {
	v2 := strings.HasPrefix(r.URL.Path, "/v2/")
	var req newSandbox
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		refuse(w, http.StatusBadRequest, "Invalid body: "+err.Error())
		return
	}
	life := 15
	if v2 {
		life = 300
	}
	if req.Timeout != nil {
		life = *req.Timeout
	}
	if life <= 0 || life > maxLife {
		refuse(w, http.StatusBadRequest, "Timeout cannot be less than 1 second or greater than 24 hours")
		return
	}
	if req.TemplateID != "base" && !slices.Contains(s.opts.Templates, req.TemplateID) && !s.isSnapshot(req.TemplateID) {
		refuse(w, http.StatusNotFound, "template '"+req.TemplateID+"' not found")
		return
	}
	b, err := s.create(spec{
		template: req.TemplateID, life: time.Duration(life) * time.Second, secure: v2 || req.Secure,
		autoPause: req.AutoPause, metadata: req.Metadata, env: req.EnvVars,
	})
	if errors.Is(err, errTooMany) {
		refuse(w, http.StatusTooManyRequests, err.Error())
		return
	} else if err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	reply(w, http.StatusCreated, b.address())
}

func (s *Server) isSnapshot(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.snapshots[id]
	return ok
}

// handleList answers with one page; the newest route also has paused ones.
func (s *Server) handleList(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	states := []string{"running"}
	if strings.HasPrefix(r.URL.Path, "/v2/") {
		states = []string{"running", "paused"}
		if v := q.Get("state"); v != "" {
			states = strings.Split(v, ",")
		}
	}
	labels, err := labelFilter(q.Get("metadata"))
	if err != nil {
		refuse(w, http.StatusBadRequest, "Invalid metadata filter")
		return
	}
	all := []wire.SandboxDetail{}
	for _, b := range s.Sandboxes() {
		if d := b.detail(); slices.Contains(states, d.State) && matches(d.Metadata, labels) {
			d.EnvdAccessToken = ""
			all = append(all, d)
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].StartedAt.After(all[j].StartedAt) })
	limit, offset := 100, 0
	if n, err := strconv.Atoi(q.Get("limit")); err == nil && n > 0 {
		limit = min(n, 100)
	}
	if n, err := strconv.Atoi(q.Get("nextToken")); err == nil && n > 0 {
		offset = min(n, len(all))
	}
	if rest := all[offset:]; len(rest) > limit {
		w.Header().Set(wire.HeaderNextToken, strconv.Itoa(offset+limit))
		all = rest[:limit]
	} else {
		all = rest
	}
	reply(w, http.StatusOK, all)
}

// labelFilter undoes the escaping of a filter: keys and values are escaped one
// by one, and once more as a query.
func labelFilter(text string) (map[string]string, error) {
	pairs, err := url.ParseQuery(text)
	if err != nil {
		return nil, err
	}
	want := map[string]string{}
	for k := range pairs {
		key, err := url.QueryUnescape(k)
		if err != nil {
			return nil, err
		}
		if want[key], err = url.QueryUnescape(pairs.Get(k)); err != nil {
			return nil, err
		}
	}
	return want, nil
}

func matches(have, want map[string]string) bool {
	for k, v := range want {
		if got, ok := have[k]; !ok || got != v {
			return false
		}
	}
	return true
}

func (s *Server) handleConnect(w http.ResponseWriter, r *http.Request) {
	s.known(func(w http.ResponseWriter, r *http.Request, b *Sandbox) {
		var req struct {
			Timeout *int `json:"timeout"`
		}
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil && err != io.EOF {
			refuse(w, http.StatusBadRequest, "Invalid body: "+err.Error())
			return
		}
		life := 300 * time.Second
		if req.Timeout != nil {
			life = time.Duration(*req.Timeout) * time.Second
		}
		status := http.StatusOK
		if b.State() == "paused" {
			b.Resume(life)
			status = http.StatusCreated
		} else {
			b.extend(life)
		}
		reply(w, status, b.address())
	})(w, r)
}

func handleTimeout(w http.ResponseWriter, r *http.Request, b *Sandbox) {
	var req struct {
		Timeout *int `json:"timeout"`
	}
	if json.NewDecoder(r.Body).Decode(&req) != nil || req.Timeout == nil || *req.Timeout < 0 || *req.Timeout > maxLife {
		refuse(w, http.StatusBadRequest, "Invalid timeout")
		return
	}
	b.setLife(time.Duration(*req.Timeout) * time.Second)
	w.WriteHeader(http.StatusNoContent)
}

func handleRefresh(w http.ResponseWriter, r *http.Request, b *Sandbox) {
	var req struct {
		Duration int `json:"duration"`
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil && err != io.EOF || req.Duration < 0 || req.Duration > 3600 {
		refuse(w, http.StatusBadRequest, "Invalid duration")
		return
	}
	b.extend(time.Duration(max(req.Duration, 15)) * time.Second)
	w.WriteHeader(http.StatusNoContent)
}

func handlePause(w http.ResponseWriter, _ *http.Request, b *Sandbox) {
	if !b.Pause() {
		refuse(w, http.StatusConflict, "sandbox is already paused")
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (s *Server) handleSnapshot(w http.ResponseWriter, r *http.Request, _ *Sandbox) {
	var req struct {
		Name string `json:"name"`
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil && err != io.EOF {
		refuse(w, http.StatusBadRequest, "Invalid body")
		return
	}
	snap := wire.Snapshot{SnapshotID: "snap" + word(16), Names: []string{}}
	if req.Name != "" {
		snap.Names = append(snap.Names, req.Name)
	}
	s.mu.Lock()
	s.snapshots[snap.SnapshotID] = req.Name
	s.mu.Unlock()
	reply(w, http.StatusCreated, snap)
}
