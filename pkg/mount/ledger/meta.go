package ledger

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"time"
)

// Meta is what a session is born with.
type Meta struct {
	Format    int       `json:"format"`
	Created   time.Time `json:"created"`
	Parent    string    `json:"parent,omitempty"` // of a fork
	ParentSeq int64     `json:"parentSeq,omitempty"`
	Key       string    `json:"key"` // of the fingerprints, 16 bytes in hex
}

func (m Meta) key() Key {
	var k Key
	raw, err := hex.DecodeString(m.Key)
	if err != nil || copy(k[:], raw) != len(k) {
		return newKey()
	}
	return k
}

func newKey() Key {
	var k Key
	rand.Read(k[:])
	return k
}

// readMeta reads the meta file. One that is missing or broken is an error that
// a new key heals: drafts made with the old one then count as missing.
func readMeta(dir string) (Meta, error) {
	var m Meta
	data, err := os.ReadFile(filepath.Join(dir, "meta.json"))
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return m, err
	}
	if m.Format != format {
		return m, &foreignError{"meta.json", m.Format}
	}
	return m, nil
}

func writeMeta(dir string, m Meta) error {
	m.Format = format
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return Replace(filepath.Join(dir, "meta.json"), append(data, '\n'))
}
