package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
)

// The snapshot is a head file with the session's state at an offset of the
// journal, and up to 256 buckets of files by the hash of their identity. A
// bucket says up to which offset it holds; it may be ahead of the head when a
// refresh was interrupted. Whatever is missing or does not fit is rebuilt from
// the journal.

// head is the head file.
type head struct {
	V      int   `json:"v"`
	Offset int64 `json:"offset"`
	// Rewritten is the size of the journal after its last rewriting.
	Rewritten int64 `json:"rewritten"`
	Base
}

// bucket is the first line of a bucket file; one line for each file follows,
// with the name of its identity in front.
type bucket struct {
	V          int    `json:"v"`
	Generation string `json:"generation"`
	Offset     int64  `json:"offset"`

	files map[string][]byte // identity to JSON
}

// nameOf gives the name under which an identity is looked up.
func nameOf(identity string) string {
	sum := sha256.Sum256([]byte(identity))
	return hex.EncodeToString(sum[:8])
}

func (s *Session) headPath() string { return filepath.Join(s.dir, "snapshot", "head.json") }

// bucketPath gives the file of the bucket that an identity of this name is in.
func (s *Session) bucketPath(name string) string {
	return filepath.Join(s.dir, "snapshot", name[:2])
}

func (s *Session) readHead() (head, error) {
	var h head
	data, err := os.ReadFile(s.headPath())
	if err != nil {
		return h, err
	}
	if err := json.Unmarshal(data, &h); err != nil {
		return h, err
	}
	if h.V != format {
		return h, errors.New("a snapshot of another version")
	}
	return h, nil
}

// find looks up one file in its bucket. It gives nil for one that is not there,
// and the offset up to which that is so.
func (s *Session) find(identity, generation string) (*Entry, int64, error) {
	name := nameOf(identity)
	data, err := os.ReadFile(s.bucketPath(name))
	if errors.Is(err, os.ErrNotExist) {
		return nil, 0, nil
	} else if err != nil {
		return nil, 0, err
	}
	first, rest, _ := bytes.Cut(data, []byte{'\n'})
	var b bucket
	if err := json.Unmarshal(first, &b); err != nil {
		return nil, 0, err
	}
	if b.V != format || b.Generation != generation {
		return nil, 0, errors.New("a bucket of another journal")
	}
	prefix := []byte(name + " ")
	for len(rest) > 0 {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte{'\n'})
		if !bytes.HasPrefix(line, prefix) {
			continue
		}
		e := &Entry{}
		if err := json.Unmarshal(line[len(prefix):], e); err != nil {
			return nil, 0, err
		}
		if e.Identity == identity {
			return e, b.Offset, nil
		}
	}
	return nil, b.Offset, nil
}

// readBucket reads a whole bucket, empty if there is none of this generation.
func (s *Session) readBucket(path, generation string) bucket {
	b := bucket{files: map[string][]byte{}}
	data, err := os.ReadFile(path)
	if err != nil {
		return b
	}
	first, rest, _ := bytes.Cut(data, []byte{'\n'})
	if json.Unmarshal(first, &b) != nil || b.V != format || b.Generation != generation {
		return bucket{files: map[string][]byte{}}
	}
	for len(rest) > 0 {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte{'\n'})
		_, entry, _ := bytes.Cut(line, []byte{' '})
		var e struct{ Identity string }
		if json.Unmarshal(entry, &e) == nil {
			b.files[e.Identity] = entry
		}
	}
	return b
}

// writeBucket writes the files of one bucket as they are at offset.
func (s *Session) writeBucket(path, generation string, offset int64, files map[string][]byte) error {
	first, err := json.Marshal(bucket{V: format, Generation: generation, Offset: offset})
	if err != nil {
		return err
	}
	out := append(first, '\n')
	for identity, entry := range files {
		out = append(out, nameOf(identity)+" "...)
		out = append(append(out, entry...), '\n')
	}
	return Replace(path, out)
}

// refold brings the snapshot up to the end of the journal. tail are the events
// behind the old one, none of them global.
func (s *Session) refold(tail []Event) error {
	touched := map[string]map[string]*Entry{}
	for _, e := range tail {
		identity := e.Forget
		if e.File != nil {
			identity = e.File.Identity
		}
		if identity == "" {
			continue
		}
		path := s.bucketPath(nameOf(identity))
		if touched[path] == nil {
			touched[path] = map[string]*Entry{}
		}
		touched[path][identity] = e.File
	}
	for path, files := range touched {
		b := s.readBucket(path, s.state.Generation)
		for identity, f := range files {
			if err := b.set(identity, f); err != nil {
				return err
			}
		}
		if err := s.writeBucket(path, s.state.Generation, s.size, b.files); err != nil {
			return err
		}
	}
	return s.writeHead(s.state)
}

// set puts the state of a file into a bucket; nil takes it out.
func (b *bucket) set(identity string, f *Entry) error {
	if f == nil {
		delete(b.files, identity)
		return nil
	}
	data, err := json.Marshal(f)
	b.files[identity] = data
	return err
}

// rebuild writes the whole snapshot from the whole state.
func (s *Session) rebuild(all *State) error {
	dir := filepath.Dir(s.headPath())
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	byPath := map[string]*bucket{}
	for identity, f := range all.Files {
		path := s.bucketPath(nameOf(identity))
		if byPath[path] == nil {
			byPath[path] = &bucket{files: map[string][]byte{}}
		}
		if err := byPath[path].set(identity, f); err != nil {
			return err
		}
	}
	old, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range old {
		if path := filepath.Join(dir, e.Name()); byPath[path] == nil && path != s.headPath() {
			os.Remove(path)
		}
	}
	for path, b := range byPath {
		if err := s.writeBucket(path, all.Generation, s.size, b.files); err != nil {
			return err
		}
	}
	return s.writeHead(all.Base)
}

func (s *Session) writeHead(base Base) error {
	data, err := json.Marshal(head{V: format, Offset: s.size, Rewritten: s.rewritten, Base: base})
	if err != nil {
		return err
	}
	return Replace(s.headPath(), data)
}
