package plugin

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
)

func (h *Host) storeDir() string             { return filepath.Join(h.Places.Data, "store") }
func (h *Host) treeDir(digest string) string { return filepath.Join(h.storeDir(), digest) }
func (h *Host) stagingDir() string           { return filepath.Join(h.Places.Data, "staging") }

// prepare makes the directories of the store and holds that they are ours
// (case 103).
func (h *Host) prepare() error {
	if h.Places.Data == "" || h.Places.Config == "" || h.Places.State == "" {
		return fault.New(fault.PluginIO, "add", "", "there is no home directory to keep plugins in").
			WithHint("set HOME, or AFIELD_DATA_DIR, AFIELD_CONFIG_DIR and AFIELD_STATE_DIR")
	}
	for _, dir := range []string{h.Places.Data, h.storeDir(), h.stagingDir()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return ioFault(err, "make", dir)
		}
		info, err := os.Stat(dir)
		if err != nil {
			return ioFault(err, "read", dir)
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok || int(st.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
			return fault.New(fault.PluginDenied, "add", dir, "the directory %s belongs to somebody else, or others may write there", dir).
				WithHint("chown it to yourself and chmod go-w it, or set AFIELD_DATA_DIR")
		}
	}
	return nil
}

// staging is a directory of one installer. Its lock file is held as long as the
// installer lives.
type staging struct {
	dir  string
	lock held
}

// stage makes a staging directory, and removes those that dead installers left
// more than an hour ago (T-12). One for a dry run is made elsewhere.
func (h *Host) stage(ctx context.Context, dry bool) (*staging, error) {
	parent := h.stagingDir()
	if dry {
		parent = os.TempDir()
	} else {
		h.sweep(time.Now().Add(-time.Hour))
	}
	s := &staging{dir: filepath.Join(parent, "afield-"+rand.Text())}
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		return nil, ioFault(err, "make", s.dir)
	}
	var err error
	if s.lock, err = hold(ctx, filepath.Join(s.dir, "lock"), false); err != nil {
		removeTree(s.dir)
		return nil, err
	}
	return s, nil
}

func (s *staging) remove() {
	removeTree(s.dir)
	s.lock.release()
}

func (h *Host) sweep(before time.Time) {
	entries, _ := os.ReadDir(h.stagingDir())
	for _, e := range entries {
		dir := filepath.Join(h.stagingDir(), e.Name())
		info, err := e.Info()
		if err != nil || info.ModTime().After(before) {
			continue
		}
		if lock, free, err := tryAlone(filepath.Join(dir, "lock")); err == nil && free {
			removeTree(dir)
			lock.release()
		}
	}
}

// removeTree removes a tree whose directories may be read-only.
func removeTree(dir string) error {
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			os.Chmod(path, 0o700)
		}
		return nil
	})
	if err := os.RemoveAll(dir); err != nil {
		return ioFault(err, "remove", dir)
	}
	return nil
}

// publish moves a staged tree into the store and makes it read-only (T-8, U-6).
// A tree that is there already is verified; one that was changed on disk gives
// way to ours.
func (h *Host) publish(staged string, t Tree) error {
	dir := h.treeDir(t.Digest)
	if err := seal(staged); err != nil {
		return err
	}
	for range 3 {
		err := os.Rename(staged, dir)
		if err == nil {
			break
		}
		if !errors.Is(err, syscall.ENOTEMPTY) && !errors.Is(err, syscall.EEXIST) {
			return ioFault(err, "publish", dir)
		}
		if h.verifyTree(t.Digest) == nil {
			return nil
		}
		if err := os.Rename(dir, staged+".old"+rand.Text()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return ioFault(err, "publish", dir)
		}
	}
	os.Chmod(dir, 0o555)
	if err := replaceFile(dir+".list", t.List(), 0o444, nil); err != nil {
		return err
	}
	h.stamp(t.Digest)
	syncDir(h.storeDir())
	return nil
}

// seal takes the write bits of everything below dir. dir itself keeps its own:
// it is still to be moved.
func seal(dir string) error {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o444)
		if info.Mode()&0o111 != 0 {
			mode = 0o555
		}
		return os.Chmod(path, mode)
	})
	if err != nil {
		return ioFault(err, "publish", dir)
	}
	return nil
}

// openTree opens the directory of an installed plugin.
func (h *Host) openTree(e Entry) (*os.Root, error) {
	dir := h.dirOf(e)
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Wrap(err, fault.PluginNotFound, "open", dir, "the plugin %s is not at %s any more", e.ID, dir).
			WithHint("add it again, or afield plugin remove %s", e.ID)
	}
	if err != nil {
		return nil, ioFault(err, "open", dir)
	}
	return root, nil
}

func (h *Host) dirOf(e Entry) string {
	if e.Link != "" {
		return e.Link
	}
	return h.treeDir(h.treeOf(e))
}

// verifyTree hashes a tree of the store. Its error names the first files that
// deviate.
func (h *Host) verifyTree(digest string) error {
	deviations, err := h.deviations(digest)
	if err != nil || len(deviations) == 0 {
		return err
	}
	shown := strings.Join(deviations[:min(len(deviations), 5)], ", ")
	return fault.New(fault.PluginTampered, "verify", h.treeDir(digest), "the installed plugin in %s was changed: %s", h.treeDir(digest), shown).
		WithHint("add the plugin again, which replaces it")
}

// deviations lists how a tree of the store differs from what was installed.
func (h *Host) deviations(digest string) ([]string, error) {
	root, err := os.OpenRoot(h.treeDir(digest))
	if err != nil {
		return nil, fault.Wrap(err, fault.PluginNotFound, "verify", h.treeDir(digest), "there is no plugin at %s any more", h.treeDir(digest))
	}
	defer root.Close()
	got, err := readTree(root)
	if err != nil && fault.CodeOf(err) != fault.PluginArchiveInvalid {
		return nil, err
	}
	if err != nil {
		return []string{err.Error()}, nil
	}
	if got.Digest == digest {
		return nil, nil
	}
	want, err := h.readList(digest)
	if err != nil {
		return []string{"the tree is another, and the list of its files is gone"}, nil
	}
	return differences(want, got), nil
}

// readList reads what a tree consisted of. The list proves itself: the digest
// is made of it.
func (h *Host) readList(digest string) (Tree, error) {
	content, err := os.ReadFile(h.treeDir(digest) + ".list")
	if err != nil {
		return Tree{}, err
	}
	var files []File
	for line := range strings.Lines(string(content)) {
		part := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 4)
		if len(part) != 4 {
			return Tree{}, errors.New("not a list")
		}
		f := File{Path: part[3], Exec: part[0] == "0755"}
		fmt.Sscan(part[1], &f.Size)
		sum, err := hex.DecodeString(part[2])
		if err != nil || len(sum) != sha256.Size {
			return Tree{}, errors.New("not a list")
		}
		copy(f.Sum[:], sum)
		files = append(files, f)
	}
	if t := newTree(files); t.Digest == digest {
		return t, nil
	}
	return Tree{}, errors.New("the list is another")
}

// stamps are what the file system says of the files of a tree. As long as it
// says the same, they need not be hashed again.
type stamps map[string][5]int64

// stamp records the stamps of a tree that has just been verified. Without the
// record it is hashed at each start.
func (h *Host) stamp(digest string) {
	all := stamps{}
	dir := h.treeDir(digest)
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if s, ok := stampOf(path); ok {
				all[strings.TrimPrefix(path, dir+"/")] = s
			}
		}
		return nil
	})
	content, err := json.Marshal(all)
	if err == nil {
		replaceFile(dir+".stamps", content, 0o600, nil)
	}
}

// checkStart holds the files that a start runs against what was installed
// (plugins.md 24): by their stamps, and by their digest where a stamp differs.
func (h *Host) checkStart(digest string, files []string) error {
	content, _ := os.ReadFile(h.treeDir(digest) + ".stamps")
	known := stamps{}
	json.Unmarshal(content, &known)
	same := len(known) > 0
	for _, f := range files {
		now, ok := stampOf(filepath.Join(h.treeDir(digest), f))
		same = same && ok && now == known[f]
	}
	if same {
		return nil
	}
	if err := h.verifyTree(digest); err != nil {
		return err
	}
	h.stamp(digest)
	return nil
}
