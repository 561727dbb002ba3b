package ssh

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"slices"
	"sync"
)

// seen remembers, beside weak version tokens, the digests of the contents that
// were read or written under them, so that a guarded change can compare content
// (design.md 4.21). The last maxSeen of them are kept between commands. Methods
// may run at the same time.
type seen struct {
	state state
	world string

	mu   sync.Mutex
	list []sighting // nil = not loaded
}

// sighting is a content under a token of a path. Both are digests.
type sighting struct {
	Of  string `json:"of"`
	Sum string `json:"sum"`
}

const (
	maxSeen  = 500
	seenKind = "seen"
)

func newSeen(s state, world string) *seen { return &seen{state: s, world: world} }

func nameOf(key, version string) string {
	sum := sha256.Sum256([]byte(key + "\x00" + version))
	return hex.EncodeToString(sum[:16])
}

// load reads what earlier commands have seen. Under the lock.
func (s *seen) load() {
	s.list = []sighting{}
	s.state.load(seenKind, s.world, &s.list)
}

// note keeps the digest of the content that key has with version.
func (s *seen) note(key, version string, content hash.Hash) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.load()
	of := nameOf(key, version)
	s.list = slices.DeleteFunc(s.list, func(e sighting) bool { return e.Of == of })
	s.list = append(s.list, sighting{of, hex.EncodeToString(content.Sum(nil))})
	s.list = s.list[max(0, len(s.list)-maxSeen):]
	s.state.save(seenKind, s.world, s.list)
}

// digest gives what was seen; "" = nothing was.
func (s *seen) digest(key, version string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.list == nil {
		s.load()
	}
	of := nameOf(key, version)
	for _, e := range s.list {
		if e.Of == of {
			return e.Sum
		}
	}
	return ""
}
