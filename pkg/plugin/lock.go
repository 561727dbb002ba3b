package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/profile"
)

// Lock is the content of NAME.plugins.json: which plugins a profile has, in
// which order their patches apply, and what their bytes are (plugins.md 24).
type Lock struct {
	Version int     `json:"version"`
	Profile string  `json:"profile"`
	Plugins []Entry `json:"plugins"`
}

// Entry is one installed plugin.
type Entry struct {
	ID        string            `json:"id"`
	Version   string            `json:"version"`
	Active    bool              `json:"active"`
	Source    string            `json:"source"`
	Origin    Kind              `json:"origin"`
	Resolved  string            `json:"resolved,omitempty"`
	Tag       string            `json:"tag,omitempty"` // of the release that was meant
	Integrity string            `json:"integrity,omitempty"`
	Platforms map[string]Packed `json:"platforms,omitempty"`
	Tree      string            `json:"tree,omitempty"`
	Files     int               `json:"files,omitempty"`
	Bytes     int64             `json:"bytes,omitempty"`
	Link      string            `json:"link,omitempty"` // used in place, unverified
	Manifest  EntryManifest     `json:"manifest"`
	Previous  *Previous         `json:"previous,omitempty"`
	AddedAt   time.Time         `json:"addedAt"`
}

// Packed is the archive for one platform.
type Packed struct {
	Resolved  string `json:"resolved"`
	Integrity string `json:"integrity,omitempty"`
}

// EntryManifest is what the lock repeats of a manifest.
type EntryManifest struct {
	ID       string   `json:"id"` // its own id, which --as can have replaced
	Services []string `json:"services"`
	Protocol int      `json:"protocol"`
}

// Previous is the version before the present one.
type Previous struct {
	Version   string            `json:"version"`
	Tree      string            `json:"tree"`
	Source    string            `json:"source,omitempty"`
	Resolved  string            `json:"resolved,omitempty"`
	Tag       string            `json:"tag,omitempty"`
	Integrity string            `json:"integrity,omitempty"`
	Platforms map[string]Packed `json:"platforms,omitempty"`
}

// previous gives what is kept of an entry when another takes its place.
func (e Entry) previous() *Previous {
	return &Previous{e.Version, e.Tree, e.Source, e.Resolved, e.Tag, e.Integrity, e.Platforms}
}

// find gives the entry of an id, or nil.
func (l *Lock) find(id string) *Entry {
	for i := range l.Plugins {
		if l.Plugins[i].ID == id {
			return &l.Plugins[i]
		}
	}
	return nil
}

func lockPath(p profile.Places, name string) string {
	return filepath.Join(p.Config, "profiles", name+".plugins.json")
}

// readLock reads the lock of a profile and its bytes; no file is an empty lock
// and nil bytes.
func readLock(p profile.Places, name string) (*Lock, []byte, error) {
	empty := &Lock{Version: 1, Profile: name, Plugins: []Entry{}}
	if p.Config == "" {
		return empty, nil, nil
	}
	path := lockPath(p, name)
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return empty, nil, nil
	}
	if err != nil {
		return nil, nil, ioFault(err, "read", path)
	}
	l, err := parseLock(content)
	if err != nil {
		return nil, nil, fault.Wrap(err, fault.ProfileInvalid, "read", path, "%s: %s", path, err).
			WithHint("the file is written by afield plugin; restore it, or remove it and add the plugins again")
	}
	return l, content, nil
}

func parseLock(content []byte) (*Lock, error) {
	if len(content) > maxDocument {
		return nil, errors.New("it is larger than 1 MiB")
	}
	dec := json.NewDecoder(bytes.NewReader(content))
	dec.DisallowUnknownFields()
	var l Lock
	if err := dec.Decode(&l); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("something follows the document")
	}
	if l.Version != 1 {
		return nil, fmt.Errorf("version %d is not known", l.Version)
	}
	seen := map[string]bool{}
	for _, e := range l.Plugins {
		if err := e.check(); err != nil {
			return nil, fmt.Errorf("plugin %q: %w", e.ID, err)
		}
		if seen[e.ID] {
			return nil, fmt.Errorf("plugin %q is there twice", e.ID)
		}
		seen[e.ID] = true
	}
	return &l, nil
}

// check holds what decides a path: an edited lock must not lead elsewhere.
func (e Entry) check() error {
	switch {
	case !ValidID(e.ID) || isBuiltIn(e.ID):
		return errors.New("id is not accepted")
	case e.Link == "" && !isDigest(e.Tree):
		return errors.New("tree is no digest")
	case e.Link != "" && !filepath.IsAbs(e.Link):
		return errors.New("link is no absolute path")
	case e.Previous != nil && !isDigest(e.Previous.Tree):
		return errors.New("previous.tree is no digest")
	}
	return nil
}

func isDigest(s string) bool {
	hex, ok := strings.CutPrefix(s, "sha256-")
	return ok && len(hex) == 64 && strings.Trim(hex, "0123456789abcdef") == ""
}

// busyWait bounds the wait for another command (T-1).
const busyWait = 60 * time.Second

// held is a lock file that this process holds. The kernel releases it when the
// process dies.
type held struct{ lock *flock.Flock }

func (h held) release() {
	if h.lock != nil {
		h.lock.Unlock()
	}
}

// holdProfile takes the lock of a profile and leaves our pid there (T-1).
func holdProfile(ctx context.Context, p profile.Places, name string) (held, error) {
	path := filepath.Join(p.Config, "profiles", "."+name+".lock")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return held{}, ioFault(err, "lock", path)
	}
	h, err := hold(ctx, path, false)
	if err == nil {
		os.WriteFile(path, fmt.Appendf(nil, "%d\n", os.Getpid()), 0o600)
	}
	return h, err
}

// hold takes a lock file, shared or alone.
func hold(ctx context.Context, path string, shared bool) (held, error) {
	l := flock.New(path, flock.SetPermissions(0o600))
	waiting, cancel := context.WithTimeout(ctx, busyWait)
	defer cancel()
	try := l.TryLockContext
	if shared {
		try = l.TryRLockContext
	}
	ok, err := try(waiting, 20*time.Millisecond)
	switch {
	case ok:
		return held{l}, nil
	case ctx.Err() != nil:
		return held{}, aborted(ctx, "lock")
	case waiting.Err() != nil:
		pid, _ := os.ReadFile(path)
		return held{}, fault.New(fault.PluginBusy, "lock", path, "another command is changing plugins (pid %s)", strings.TrimSpace(string(pid))).
			WithRetry(fault.RetrySafe)
	}
	return held{}, ioFault(err, "lock", path)
}

// tryAlone takes a lock file if nobody holds it.
func tryAlone(path string) (h held, free bool, err error) {
	l := flock.New(path, flock.SetPermissions(0o600))
	free, err = l.TryLock()
	if err != nil {
		return held{}, false, ioFault(err, "lock", path)
	}
	return held{l}, free, nil
}

// commit replaces the lock of a profile, if it still has the bytes of before
// (T-10). This is the commit.
func commit(p profile.Places, l *Lock, before []byte) error {
	content, err := json.MarshalIndent(l, "", " ")
	if err != nil {
		return err
	}
	path := lockPath(p, l.Profile)
	return replaceFile(path, append(content, '\n'), 0o644, func() error {
		now, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return ioFault(err, "read", path)
		}
		if !bytes.Equal(now, before) || (now == nil) != (before == nil) {
			return fault.New(fault.PluginBusy, "commit", path, "%s was changed meanwhile by something else", path).WithRetry(fault.RetrySafe)
		}
		return nil
	})
}

// replaceFile writes content beside path, asks whether to go on, and renames it
// there.
func replaceFile(path string, content []byte, mode fs.FileMode, goOn func() error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".afield-*")
	if err != nil {
		return ioFault(err, "write", path)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(content)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return ioFault(err, "write", path)
	}
	if goOn != nil {
		if err := goOn(); err != nil {
			return err
		}
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return ioFault(err, "write", path)
	}
	syncDir(filepath.Dir(path))
	return nil
}

// syncDir flushes a directory, where the file system can.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		d.Sync()
		d.Close()
	}
}
