package box

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// record is what is kept of a box between commands. It holds no secret.
type record struct {
	ID        string    `json:"id"`
	ExpiresAt time.Time `json:"expiresAt"` // zero = not known
}

// state is the folder of records. The record of a row is ROW.json; that of a
// box made for one command is ID.command, locked as long as the command lives.
type state struct{ dir string }

func newState(stateDir string) state {
	if stateDir == "" {
		return state{}
	}
	return state{filepath.Join(stateDir, name)}
}

func (s state) path(file string) string { return filepath.Join(s.dir, file) }

// load gives the record of a row, nil if there is none that counts.
func (s state) load(key string) *record {
	if s.dir == "" {
		return nil
	}
	text, err := os.ReadFile(s.path(key + ".json"))
	var r record
	if err != nil || json.Unmarshal(text, &r) != nil || r.ID == "" {
		return nil
	}
	return &r
}

// save replaces the record of a row in one step.
func (s state) save(key string, r record) error {
	if s.dir == "" {
		return nil
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(s.dir, ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), s.path(key+".json"))
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("keep the id of the box: %w", err)
	}
	return nil
}

// forget drops the records of a box.
func (s state) forget(id string) {
	for key, r := range s.rows() {
		if r.ID == id {
			_ = os.Remove(s.path(key + ".json"))
		}
	}
}

// rows gives the records of all rows by their keys.
func (s state) rows() map[string]record {
	all := map[string]record{}
	if s.dir == "" {
		return all
	}
	names, _ := filepath.Glob(s.path("*.json"))
	for _, n := range names {
		key := strings.TrimSuffix(filepath.Base(n), ".json")
		if r := s.load(key); r != nil {
			all[key] = *r
		}
	}
	return all
}

// lock takes the lock of a file of the folder and gives how to release it. With
// wait false it fails when somebody holds it.
func (s state) lock(file string, wait bool) (func(), error) {
	if s.dir == "" {
		return func() {}, nil
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(s.path(file), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	how := syscall.LOCK_EX
	if !wait {
		how |= syscall.LOCK_NB
	}
	for {
		if err = syscall.Flock(int(f.Fd()), how); !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}

// begin records that this command uses a box that is made for it, and gives how
// to end that.
func (s state) begin(id string) (func(), error) {
	file := id + ".command"
	release, err := s.lock(file, false)
	if err != nil || s.dir == "" {
		return func() {}, err
	}
	return func() {
		_ = os.Remove(s.path(file))
		release()
	}, nil
}

// busy reports whether the command that a box was made for still lives. A
// record without a holder is removed.
func (s state) busy(id string) bool {
	file := id + ".command"
	if s.dir == "" {
		return false
	}
	if _, err := os.Stat(s.path(file)); err != nil {
		return false
	}
	release, err := s.lock(file, false)
	if err != nil {
		return true
	}
	_ = os.Remove(s.path(file))
	release()
	return false
}

// mark gives the word that tells the boxes made from this state directory.
func (s state) mark() (string, error) {
	if s.dir == "" {
		return "none", nil
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return "", err
	}
	file := s.path("mark")
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_, err = f.WriteString(token(5))
		err = errors.Join(err, f.Close())
	}
	if err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	text, err := os.ReadFile(file)
	return string(text), err
}

// token gives 2n hexadecimal digits that nobody can guess.
func token(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
