package ssh

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
)

// state is the folder of small files that spare a later command a question. They
// hold no secret, lie in files that only their owner can read, and are looked at
// with distrust: what they say is proven on the way, or they are not used.
type state struct{ dir string }

func newState(stateDir string) state {
	if stateDir == "" {
		return state{}
	}
	return state{filepath.Join(stateDir, "ssh")}
}

// path is the file of a kind and a key of any form.
func (s state) path(kind, key string) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(s.dir, kind+"-"+hex.EncodeToString(sum[:16])+".json")
}

// load reads what was kept into v. It reports false if there is nothing, or if
// others than its owner could have written it.
func (s state) load(kind, key string, v any) bool {
	if s.dir == "" {
		return false
	}
	f, err := os.Open(s.path(kind, key))
	if err != nil {
		return false
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() || fi.Mode().Perm()&0o077 != 0 {
		return false
	}
	return json.NewDecoder(f).Decode(v) == nil
}

// save replaces what was kept, in one step. That it cannot be kept is no failure
// of anything.
func (s state) save(kind, key string, v any) {
	if s.dir == "" {
		return
	}
	raw, err := json.Marshal(v)
	if err != nil || os.MkdirAll(s.dir, 0o700) != nil {
		return
	}
	f, err := os.CreateTemp(s.dir, ".new-*") // 0600
	if err != nil {
		return
	}
	_, err = f.Write(raw)
	if errors.Join(err, f.Close()) != nil || os.Rename(f.Name(), s.path(kind, key)) != nil {
		os.Remove(f.Name())
	}
}

// drop forgets.
func (s state) drop(kind, key string) {
	if s.dir != "" {
		os.Remove(s.path(kind, key))
	}
}
