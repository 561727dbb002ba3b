package keeper

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
)

// Setup is what a keeper is told when it is started. It comes over a pipe, since
// there are secrets in it.
type Setup struct {
	ID       string            `json:"id"`
	Socket   string            `json:"socket"`
	Log      string            `json:"log"`
	Provider string            `json:"provider"`
	Config   map[string]any    `json:"config"`
	Secrets  map[string]string `json:"secrets"`
	Cwd      string            `json:"cwd"`
	AnyCwd   bool              `json:"anyCwd"`
	// Shared: one world serves all callers and is held between commands.
	// Without it each caller gets one of its own.
	Shared      bool          `json:"shared"`
	Idle        time.Duration `json:"idle"`
	HostDir     string        `json:"hostDir"`
	StateDir    string        `json:"stateDir"`
	NewFileMode int           `json:"newFileMode"`
	// Apart are further values of the identity.
	Apart []string `json:"-"`
}

// identify gives the setup its id: a keyed hash of all that makes two worlds
// different, the values of secrets among it. The key lies in the state
// directory, so the id tells nobody anything.
func (s *Setup) identify(key []byte) error {
	b, err := json.Marshal([]any{s.Provider, exact(s.Config), s.Secrets, s.Cwd, s.Shared, s.StateDir, s.NewFileMode, s.Apart, os.Geteuid()})
	if err != nil {
		return err
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(b)
	s.ID = hex.EncodeToString(mac.Sum(nil)[:8])
	return nil
}

// Identify completes a setup for this place: its id and its paths.
func (p Place) Identify(s *Setup) error {
	key, err := p.key()
	if err == nil {
		err = s.identify(key)
	}
	if err != nil {
		return fault.Wrap(err, fault.FSIOError, "keeper", p.State, "cannot name the keeper: %s", err)
	}
	s.Log = p.logPath(s.ID)
	s.Socket, err = p.socket(s.ID)
	return err
}

// key gives the random key of the state directory, made at first use. Of several
// processes that make one the first wins.
func (p Place) key() ([]byte, error) {
	path := filepath.Join(p.State, "keeper.key")
	key, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		key, err = p.makeKey(path)
	}
	if err == nil && len(key) != sha256.Size {
		err = fault.New(fault.FSIOError, "keeper", path, "%q does not hold a key", path).WithHint("remove it")
	}
	return key, err
}

func (p Place) makeKey(path string) ([]byte, error) {
	if err := os.MkdirAll(p.State, 0o700); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(p.State, "keeper.key.") // mode 0600
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	key := make([]byte, sha256.Size)
	rand.Read(key)
	_, err = f.Write(key)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Link(f.Name(), path)
	}
	if errors.Is(err, fs.ErrExist) {
		return os.ReadFile(path)
	}
	return key, err
}

// encode gives the form that is sent.
func (s Setup) encode() ([]byte, error) {
	s.Config, _ = exact(s.Config).(map[string]any)
	return json.Marshal(s)
}

// DecodeSetup reads what encode gave. Numbers keep their kinds: providers tell
// int64 and float64 apart.
func DecodeSetup(b []byte) (Setup, error) {
	var s Setup
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&s); err != nil || s.Socket == "" {
		return s, fault.New(fault.Usage, "serve", "", "the keeper got no setup on its standard input").
			WithHint("afield starts it by itself when it is useful")
	}
	for k, v := range s.Config {
		s.Config[k] = plain(v)
	}
	return s, nil
}

// exact writes a float64 so that it can be told from an int64.
func exact(v any) any {
	switch v := v.(type) {
	case float64:
		return json.Number(strconv.FormatFloat(v, 'e', -1, 64))
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = exact(x)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[k] = exact(x)
		}
		return out
	}
	return v
}

// plain undoes exact.
func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil && !strings.ContainsAny(string(v), ".eE") {
			return n
		}
		f, _ := v.Float64()
		return f
	case []any:
		for i, x := range v {
			v[i] = plain(x)
		}
	case map[string]any:
		for k, x := range v {
			v[k] = plain(x)
		}
	}
	return v
}
