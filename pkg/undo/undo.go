// Package undo remembers what files held before afield changed them, and takes
// changes back. Images are kept by their SHA-256 in a folder of the state
// directory, bounded in size and age; a journal beside them says what happened.
package undo

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// Operations that are remembered.
const (
	Write  = "write"
	Edit   = "edit"
	Remove = "remove"
	Move   = "move"
)

// Record is one change. Before is the digest of the image; "" with Had says that
// the file was there and its content was not kept.
type Record struct {
	ID      int       `json:"id"`
	Time    time.Time `json:"time"`
	Op      string    `json:"op"`
	Key     string    `json:"key"`
	Display string    `json:"display"`
	From    string    `json:"from"`    // of a move
	Had     bool      `json:"had"`     // something was there before
	Before  string    `json:"before"`  // SHA-256 of that
	Mode    int       `json:"mode"`    // of that; -1 = not known
	Version string    `json:"version"` // after the change; "" where nothing is
	Undone  bool      `json:"undone"`
}

// Store keeps the records of one world. Methods may run at the same time, also in
// several processes.
type Store struct {
	dir      string
	maxBytes int64
	maxAge   time.Duration
}

// NewStore makes the store of a world in the state directory; nothing is touched
// before the first record. Images beyond maxBytes in all, the oldest first, and
// records older than maxAge are dropped.
func NewStore(stateDir, identity string, maxBytes int64, maxAge time.Duration) *Store {
	id := sha256.Sum256([]byte(identity))
	return &Store{filepath.Join(stateDir, "undo", hex.EncodeToString(id[:8])), maxBytes, maxAge}
}

// Keep stores an image and gives its digest.
func (s *Store) Keep(content []byte) (string, error) {
	sum := sha256.Sum256(content)
	name := hex.EncodeToString(sum[:])
	p := filepath.Join(s.dir, name)
	if _, err := os.Stat(p); err == nil {
		now := time.Now()
		return name, os.Chtimes(p, now, now) // as young as its last use
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(s.dir, "new-*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), p)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return name, err
}

// Image gives a kept image; FS_NOT_FOUND if it was dropped.
func (s *Store) Image(sum string) ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(s.dir, sum))
	if errors.Is(err, fs.ErrNotExist) || sum == "" {
		return nil, fault.New(fault.FSNotFound, "undo", "", "the content from before is not kept any more")
	}
	if got := sha256.Sum256(b); err == nil && hex.EncodeToString(got[:]) != sum {
		return nil, fault.New(fault.FSIOError, "undo", "", "the content from before is damaged")
	}
	return b, err
}

// Add appends a record, with the next ID and the time, and drops what is too old
// or too much.
func (s *Store) Add(ctx context.Context, r Record) error {
	return s.change(ctx, func(list []Record) []Record {
		r.ID, r.Time = 1, time.Now().UTC()
		if n := len(list); n > 0 {
			r.ID = list[n-1].ID + 1
		}
		return append(list, r)
	})
}

// MarkUndone says that a record was taken back.
func (s *Store) MarkUndone(ctx context.Context, id int) error {
	return s.change(ctx, func(list []Record) []Record {
		for i := range list {
			list[i].Undone = list[i].Undone || list[i].ID == id
		}
		return list
	})
}

// change rewrites the journal under its lock.
func (s *Store) change(ctx context.Context, f func([]Record) []Record) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	lock := flock.New(filepath.Join(s.dir, "lock"), flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, 5*time.Millisecond); err != nil {
		return err
	}
	defer lock.Close()
	list, err := s.List()
	if err != nil {
		return err
	}
	list = s.bound(f(list))
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for _, r := range list {
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	temp := filepath.Join(s.dir, "new-journal")
	if err := os.WriteFile(temp, b.Bytes(), 0o600); err != nil {
		return err
	}
	return os.Rename(temp, filepath.Join(s.dir, "journal"))
}

// bound drops old records, and images that no record names or that are too much.
func (s *Store) bound(list []Record) []Record {
	list = slices.DeleteFunc(list, func(r Record) bool { return time.Since(r.Time) > s.maxAge })
	wanted := map[string]bool{}
	var size int64
	for _, r := range slices.Backward(list) {
		if r.Before == "" || wanted[r.Before] {
			continue
		}
		if st, err := os.Stat(filepath.Join(s.dir, r.Before)); err == nil && size+st.Size() <= s.maxBytes {
			size += st.Size()
			wanted[r.Before] = true
		}
	}
	entries, _ := os.ReadDir(s.dir)
	for _, e := range entries {
		if len(e.Name()) == 64 && !wanted[e.Name()] {
			os.Remove(filepath.Join(s.dir, e.Name()))
		}
	}
	return list
}

// List gives the records, the oldest first.
func (s *Store) List() ([]Record, error) {
	b, err := os.ReadFile(filepath.Join(s.dir, "journal"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var list []Record
	for sc := bufio.NewReader(bytes.NewReader(b)); err == nil; {
		line, rerr := sc.ReadBytes('\n')
		if rerr != nil {
			break
		}
		var r Record
		if err = json.Unmarshal(line, &r); err == nil {
			list = append(list, r)
		}
	}
	return list, err
}

// World is what changes are taken back in.
type World struct {
	Files  remotefs.FS
	Remove func(ctx context.Context, path, version string) error
	Move   func(ctx context.Context, from, to string) error
}

// Back takes a change back, if what it left is still there: FS_STALE_VERSION or
// FS_NOT_OBSERVED if somebody changed it since.
func (s *Store) Back(ctx context.Context, w World, r Record) error {
	if err := s.restore(ctx, w, r); err != nil {
		return err
	}
	return s.MarkUndone(context.WithoutCancel(ctx), r.ID)
}

func (s *Store) restore(ctx context.Context, w World, r Record) error {
	switch {
	case r.Undone:
		return fault.New(fault.FSNotFound, "undo", r.Display, "change %d was taken back already", r.ID)
	case r.Op == Move && r.Had:
		return fault.New(fault.FSNotFound, "undo", r.Display, "what %q replaced was not kept", r.Display)
	case r.Op == Move:
		return w.Move(ctx, r.Key, r.From)
	case !r.Had:
		return w.Remove(ctx, r.Key, r.Version)
	}
	image, err := s.Image(r.Before)
	if err != nil {
		return err
	}
	req := remotefs.WriteRequest{Content: bytes.NewReader(image), Size: int64(len(image)), Raw: true, Mode: r.Mode, Intent: remotefs.IntentCreate}
	if r.Version != "" {
		req.Intent, req.Version = remotefs.IntentReplace, r.Version
	}
	_, err = w.Files.WriteText(ctx, remotefs.AtTarget(remotefs.Target{Key: r.Key, Display: r.Display}), req)
	return err
}
