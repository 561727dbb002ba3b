package e2b

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// record is what is kept of a sandbox between commands, so that a command needs
// no request to the control plane. It holds the sandbox's token and so lies in
// a file that only its owner can read.
type record struct {
	ID      string    `json:"id"`
	Domain  string    `json:"domain,omitempty"`
	Version string    `json:"envdVersion"`
	Token   string    `json:"token,omitempty"`
	EndAt   time.Time `json:"endAt"` // zero = unknown
	// Setup is what was learned and made inside; nil before it was done.
	Setup *setup `json:"setup,omitempty"`
}

// setup is what a sandbox has been prepared with, and the facts of its user.
type setup struct {
	Root  string   `json:"root"` // private folder, 0700
	Home  string   `json:"home"`
	Path  string   `json:"path"`
	Scrub []string `json:"scrub,omitempty"` // names of EN-1 in its environment
}

// state is the folder of records.
type state struct{ dir string }

func newState(stateDir string) state {
	if stateDir == "" {
		return state{}
	}
	return state{filepath.Join(stateDir, name)}
}

func (s state) path(key string) string { return filepath.Join(s.dir, key+".json") }

// load gives the record of a key, nil if there is none or if others than its
// owner could have read or written it.
func (s state) load(key string) *record {
	if s.dir == "" {
		return nil
	}
	f, err := os.Open(s.path(key))
	if err != nil {
		return nil
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() || fi.Mode().Perm()&0o077 != 0 {
		return nil
	}
	var r record
	if json.NewDecoder(f).Decode(&r) != nil || r.ID == "" {
		return nil
	}
	return &r
}

// save replaces the record of a key in one step.
func (s state) save(key string, r *record) error {
	if s.dir == "" {
		return nil
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("cannot keep the address of the sandbox: %w", err)
	}
	f, err := os.CreateTemp(s.dir, ".new-*") // 0600
	if err != nil {
		return fmt.Errorf("cannot keep the address of the sandbox: %w", err)
	}
	_, err = f.Write(raw)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), s.path(key))
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("cannot keep the address of the sandbox: %w", err)
	}
	return nil
}

// drop forgets the record of a key.
func (s state) drop(key string) {
	if s.dir != "" {
		os.Remove(s.path(key))
	}
}

// ids gives the sandboxes of which there are records.
func (s state) ids() []string {
	if s.dir == "" {
		return nil
	}
	names, err := filepath.Glob(filepath.Join(s.dir, "*.json"))
	if err != nil {
		return nil
	}
	var ids []string
	for _, n := range names {
		base := filepath.Base(n)
		if r := s.load(base[:len(base)-len(".json")]); r != nil {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// owner gives an id of this state directory, made once; it marks the sandboxes
// that were made from here.
func (s state) owner() (string, error) {
	if s.dir == "" {
		return "none", nil
	}
	file := filepath.Join(s.dir, "owner")
	if raw, err := os.ReadFile(file); err == nil && len(raw) > 0 {
		return string(raw), nil
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return "", err
	}
	id := token()
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		raw, err := os.ReadFile(file)
		return string(raw), err
	} else if err != nil {
		return "", err
	}
	_, err = f.WriteString(id)
	return id, errors.Join(err, f.Close())
}

func sorted(words []string) []string {
	slices.Sort(words)
	return words
}
