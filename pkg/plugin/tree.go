package plugin

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/afield-dev/afield/pkg/fault"
)

// Tree is what a plugin consists of: its files by path, and one digest over
// them.
type Tree struct {
	Digest string // sha256-… over the lines of List
	Bytes  int64
	Files  []File // by path
}

// File is one file of a tree.
type File struct {
	Path string
	Exec bool
	Size int64
	Sum  [sha256.Size]byte
}

// List gives what the digest is made of: a line "mode size sha256 path" for
// each file.
func (t Tree) List() []byte {
	var b bytes.Buffer
	for _, f := range t.Files {
		mode := "0644"
		if f.Exec {
			mode = "0755"
		}
		fmt.Fprintf(&b, "%s %d %x %s\n", mode, f.Size, f.Sum, f.Path)
	}
	return b.Bytes()
}

// newTree sorts files and makes their digest.
func newTree(files []File) Tree {
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	t := Tree{Files: files}
	for _, f := range files {
		t.Bytes += f.Size
	}
	sum := sha256.Sum256(t.List())
	t.Digest = "sha256-" + hex.EncodeToString(sum[:])
	return t
}

// treeWriter writes a tree below a root that cannot be left, and counts.
type treeWriter struct {
	root  *os.Root
	lim   Limits
	names names
	total int64
	files []File
	dirs  []string
}

func (w *treeWriter) mkdirs(missing []string) error {
	for _, dir := range missing {
		if err := w.root.Mkdir(dir, 0o755); err != nil {
			return ioFault(err, "unpack", dir)
		}
		w.dirs = append(w.dirs, dir)
	}
	return nil
}

func (w *treeWriter) dir(path string) error {
	missing, err := w.names.add(path, false)
	if err != nil {
		return err
	}
	return w.mkdirs(missing)
}

// file writes size bytes of content; less is an error.
func (w *treeWriter) file(path string, exec bool, size int64, content io.Reader) error {
	missing, err := w.names.add(path, true)
	switch {
	case err != nil:
		return err
	case size > w.lim.File:
		return tooLarge("%s has more than %d bytes", quotePath(path), w.lim.File)
	case w.total+size > w.lim.Total:
		return tooLarge("its files have more than %d bytes", w.lim.Total).WithHint("--max-unpacked raises the bound")
	}
	if err := w.mkdirs(missing); err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if exec {
		mode = 0o755
	}
	f, err := w.root.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return ioFault(err, "unpack", path)
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, sum), io.LimitReader(content, size+1))
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	var ours *fs.PathError
	switch {
	case errors.As(err, &ours):
		return ioFault(err, "unpack", path)
	case err != nil:
		return err // of the source
	case n != size:
		return invalidMember(path, "its size is not the announced one")
	}
	w.total += size
	w.files = append(w.files, File{path, exec, size, [sha256.Size]byte(sum.Sum(nil))})
	return nil
}

// finish flushes the directories and gives the tree.
func (w *treeWriter) finish() (Tree, error) {
	for _, dir := range append(w.dirs, ".") {
		d, err := w.root.Open(dir)
		if err != nil {
			return Tree{}, ioFault(err, "unpack", dir)
		}
		if err := errors.Join(d.Sync(), d.Close()); err != nil {
			return Tree{}, ioFault(err, "unpack", dir)
		}
	}
	return newTree(w.files), nil
}

// readTree hashes what is below root. Whatever is neither a regular file nor a
// directory is an error.
func readTree(root *os.Root) (Tree, error) {
	var files []File
	err := fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return ioFault(err, "verify", path)
		case d.IsDir():
			return nil
		case !d.Type().IsRegular():
			return invalidMember(path, "it is neither a file nor a directory")
		}
		f, err := readFileOf(root, path)
		files = append(files, f)
		return err
	})
	if err != nil {
		return Tree{}, err
	}
	return newTree(files), nil
}

func readFileOf(root *os.Root, path string) (File, error) {
	f, err := root.Open(path)
	if err != nil {
		return File{}, ioFault(err, "verify", path)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return File{}, ioFault(err, "verify", path)
	}
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	if err != nil {
		return File{}, ioFault(err, "verify", path)
	}
	return File{path, info.Mode()&0o111 != 0, n, [sha256.Size]byte(sum.Sum(nil))}, nil
}

// differences lists how got deviates from want, a line for each path.
func differences(want, got Tree) []string {
	at := func(t Tree, path string) (File, bool) {
		i, ok := slices.BinarySearchFunc(t.Files, path, func(f File, p string) int { return strings.Compare(f.Path, p) })
		if !ok {
			return File{}, false
		}
		return t.Files[i], true
	}
	var out []string
	for _, f := range want.Files {
		switch g, ok := at(got, f.Path); {
		case !ok:
			out = append(out, f.Path+": missing")
		case g != f:
			out = append(out, f.Path+": changed")
		}
	}
	for _, f := range got.Files {
		if _, ok := at(want, f.Path); !ok {
			out = append(out, f.Path+": added")
		}
	}
	return out
}

// ioFault gives a failed operation on a file its code; an error that has one
// keeps it.
func ioFault(err error, op, at string) error {
	if fault.CodeOf(err) != "" {
		return err
	}
	reason := err
	var pe *fs.PathError
	if errors.As(err, &pe) {
		reason = pe.Err
	}
	return fault.Wrap(err, fault.PluginIO, op, at, "cannot %s %s: %s", op, quotePath(path.Clean(at)), reason)
}
