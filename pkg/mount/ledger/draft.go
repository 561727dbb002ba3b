package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Key keys the fingerprints of a session's lines, so that a draft alone lets
// nobody guess short lines or compare two sessions.
type Key [16]byte

// Fingerprint gives the 64-bit keyed hash of a line.
func (k Key) Fingerprint(line []byte) uint64 {
	var room [512]byte
	sum := sha256.Sum256(append(append(room[:0], k[:]...), line...))
	return binary.LittleEndian.Uint64(sum[:8])
}

// Draft is what is kept of a content: for each line its fingerprint, the tokens
// and the bytes of the form in which it is shown.
type Draft struct {
	// Cut is the line length that the shown forms were cut to.
	Cut    int
	Prints []uint64
	Tokens []uint32
	Bytes  []uint32
}

const (
	draftMagic  = "afieldD\x01"
	algorithm   = 1 // SHA-256 over key and line, first 8 bytes
	draftHead   = len(draftMagic) + 4 + 4 + 4 + 8
	draftRecord = 16
)

// keyCheck tells a draft of this key from one of another.
func keyCheck(k Key) uint64 { return k.Fingerprint([]byte("afield draft")) }

// encode gives the file of a draft: magic with version, algorithm, cut, count,
// key check, one record a line, checksum.
func (d *Draft) encode(k Key) []byte {
	out := make([]byte, 0, draftHead+draftRecord*len(d.Prints)+4)
	out = append(out, draftMagic...)
	le := binary.LittleEndian
	out = le.AppendUint32(out, algorithm)
	out = le.AppendUint32(out, uint32(d.Cut))
	out = le.AppendUint32(out, uint32(len(d.Prints)))
	out = le.AppendUint64(out, keyCheck(k))
	for i, print := range d.Prints {
		out = le.AppendUint64(out, print)
		out = le.AppendUint32(out, d.Tokens[i])
		out = le.AppendUint32(out, d.Bytes[i])
	}
	return le.AppendUint32(out, crc32.ChecksumIEEE(out))
}

// decodeDraft reads such a file, or says that it is none of this key.
func decodeDraft(data []byte, k Key) (*Draft, bool) {
	le := binary.LittleEndian
	if len(data) < draftHead+4 || string(data[:len(draftMagic)]) != draftMagic {
		return nil, false
	}
	body, sum := data[:len(data)-4], le.Uint32(data[len(data)-4:])
	head := data[len(draftMagic):]
	count := int(le.Uint32(head[8:]))
	if le.Uint32(head) != algorithm || le.Uint64(head[12:]) != keyCheck(k) ||
		len(body) != draftHead+draftRecord*count || crc32.ChecksumIEEE(body) != sum {
		return nil, false
	}
	d := &Draft{
		Cut:    int(le.Uint32(head[4:])),
		Prints: make([]uint64, count), Tokens: make([]uint32, count), Bytes: make([]uint32, count),
	}
	for i := range count {
		record := body[draftHead+draftRecord*i:]
		d.Prints[i], d.Tokens[i], d.Bytes[i] = le.Uint64(record), le.Uint32(record[8:]), le.Uint32(record[12:])
	}
	return d, true
}

func (s *Session) draftPath(hash string) string { return filepath.Join(s.dir, "drafts", hash) }

// Draft gives the draft of the content with this hash; nil if there is none.
func (s *Session) Draft(hash string) *Draft {
	data, err := os.ReadFile(s.draftPath(hash))
	if err != nil {
		return nil
	}
	d, ok := decodeDraft(data, s.Key)
	if !ok {
		return nil
	}
	return d
}

// KeepDraft stores a draft. A failure costs no more than a whole window later.
func (s *Session) KeepDraft(hash string, d *Draft) {
	path := s.draftPath(hash)
	if old := s.Draft(hash); old != nil && old.Cut == d.Cut {
		s.TouchDraft(hash)
		return
	}
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return
	}
	if Replace(path, d.encode(s.Key)) == nil {
		s.addedDraft = true
	}
}

// TouchDraft notes that the content was seen again.
func (s *Session) TouchDraft(hash string) {
	now := s.store.Now()
	os.Chtimes(s.draftPath(hash), now, now)
}

// draftSlack is by how many drafts a session may pass its limit before they are
// sorted out.
const draftSlack = 64

// sortOutDrafts removes the drafts that are neither of the most recently
// mounted files nor among the spare ones seen last (mount.md 14).
func (s *Session) sortOutDrafts() {
	entries, err := os.ReadDir(filepath.Join(s.dir, "drafts"))
	if err != nil || len(entries) <= s.store.MaxDrafts+s.store.SpareDrafts+draftSlack {
		return
	}
	all, err := s.all()
	if err != nil {
		return
	}
	pinned := pinnedDrafts(all, s.store.MaxDrafts)
	type spare struct {
		name string
		seen time.Time
	}
	var spares []spare
	for _, e := range entries {
		if info, err := e.Info(); err == nil && !pinned[e.Name()] {
			spares = append(spares, spare{e.Name(), info.ModTime()})
		}
	}
	slices.SortFunc(spares, func(a, b spare) int { return b.seen.Compare(a.seen) })
	for _, old := range spares[min(s.store.SpareDrafts, len(spares)):] {
		os.Remove(s.draftPath(old.name))
	}
}

// pinnedDrafts gives the hashes of the most recently answered mounted files.
func pinnedDrafts(s *State, most int) map[string]bool {
	files := make([]*Entry, 0, len(s.Files))
	for _, f := range s.Files {
		if len(f.Segments) > 0 {
			files = append(files, f)
		}
	}
	slices.SortFunc(files, func(a, b *Entry) int { return b.At.Compare(a.At) })
	pinned := map[string]bool{}
	for _, f := range files[:min(most, len(files))] {
		pinned[f.Hash] = true
	}
	return pinned
}
