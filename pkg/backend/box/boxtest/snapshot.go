package boxtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

type snapshot struct {
	ID        string            `json:"id"`
	Name      string            `json:"name"`
	BoxID     string            `json:"box_id"`
	SizeBytes int64             `json:"size_bytes"`
	Status    string            `json:"status"`
	CreatedAt float64           `json:"created_at"`
	dir       string            `json:"-"`
	env       map[string]string `json:"-"`
}

func (s *Server) addSnapshots(mux *http.ServeMux) {
	mux.HandleFunc("POST /v2/box/{id}/snapshots", s.takeSnapshot)
	mux.HandleFunc("GET /v2/box/{id}/snapshots", s.listSnapshots)
	mux.HandleFunc("DELETE /v2/box/{id}/snapshots/{snapshot}", s.deleteSnapshot)
	mux.HandleFunc("GET /v2/box/snapshots", s.listSnapshots)
	mux.HandleFunc("DELETE /v2/box/snapshots", s.deleteSnapshots)
}

func (s *Server) findSnapshot(id string) *snapshot {
	for _, one := range s.snapshots {
		if one.ID == id {
			return one
		}
	}
	return nil
}

// takeSnapshot copies the files of a box. The first answer says "creating", the
// next poll "ready".
func (s *Server) takeSnapshot(w http.ResponseWriter, r *http.Request) {
	b := s.alive(w, r)
	if b == nil {
		return
	}
	var body struct {
		Name string `json:"name"`
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.number++
	snap := &snapshot{ID: fmt.Sprintf("snap-%d", s.number), Name: body.Name, BoxID: b.data.ID, Status: "creating",
		CreatedAt: float64(s.now().Unix()), dir: filepath.Join(s.scratch, fmt.Sprintf("snapshot%d", s.number)), env: b.data.Env}
	if err := os.Mkdir(snap.dir, 0o700); err != nil {
		refuse(w, http.StatusInternalServerError, "%s", err)
		return
	}
	for _, name := range []string{"home", "boxuser"} {
		if out, err := exec.Command("cp", "-a", filepath.Join(b.dir, name), snap.dir).CombinedOutput(); err != nil {
			refuse(w, http.StatusInternalServerError, "%s", out)
			return
		}
	}
	s.snapshots = append(s.snapshots, snap)
	answer(w, http.StatusOK, snap)
	snap.Status = "ready"
}

func (s *Server) listSnapshots(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*snapshot
	for _, one := range s.snapshots {
		if id == "" || one.BoxID == id {
			list = append(list, one)
		}
	}
	answer(w, http.StatusOK, map[string]any{"snapshots": list})
}

func (s *Server) deleteSnapshot(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.findSnapshot(r.PathValue("snapshot")) == nil {
		refuse(w, http.StatusNotFound, "Snapshot not found")
		return
	}
	s.dropSnapshots([]string{r.PathValue("snapshot")})
	answer(w, http.StatusOK, map[string]string{})
}

// deleteSnapshots takes none for all.
func (s *Server) deleteSnapshots(w http.ResponseWriter, r *http.Request) {
	var body struct {
		IDs []string `json:"ids"`
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(body.IDs) == 0 {
		for _, one := range s.snapshots {
			body.IDs = append(body.IDs, one.ID)
		}
	}
	answer(w, http.StatusOK, map[string]int{"deleted": s.dropSnapshots(body.IDs)})
}

func (s *Server) dropSnapshots(ids []string) int {
	before := len(s.snapshots)
	s.snapshots = slices.DeleteFunc(s.snapshots, func(one *snapshot) bool {
		if !slices.Contains(ids, one.ID) {
			return false
		}
		_ = os.RemoveAll(one.dir)
		return true
	})
	return before - len(s.snapshots)
}
