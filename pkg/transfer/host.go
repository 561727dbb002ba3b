package transfer

import (
	"archive/tar"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/afield-dev/afield/pkg/remotefs"
)

// Host is a directory of this machine. All its entries are reached below an open
// root, so that no name and no link leads out of it.
type Host struct {
	dir  string
	root *os.Root
	// only, if set, are the names below the root that take part.
	only []string
	walk remotefs.Arranger
	renaming
}

// Rename gives the one entry that takes part another name at the target.
func (h *Host) Rename(to string) { h.renaming = renaming{h.only[0], to} }

// stream copies one file.
func (h *Host) stream(name string, w io.Writer) error {
	f, _, err := h.open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

// depth is how deep to look: what takes part by name is in the directory itself.
func depth(only []string) int {
	if only != nil {
		return 1
	}
	return 0
}

// NewHost opens a directory of this machine; with create it is made if it is not
// there. walk looks through it. Only, if given, are the entries of the directory
// that take part. The caller closes it.
func NewHost(dir string, create bool, walk remotefs.Arranger, only ...string) (*Host, error) {
	if create {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return nil, err
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Host{dir: dir, root: root, only: only, walk: walk}, nil
}

// Close releases the directory.
func (h *Host) Close() error { return h.root.Close() }

// Name is the directory.
func (h *Host) Name() string { return h.dir }

// list looks through the directory.
func (h *Host) list(ctx context.Context) ([]entry, error) {
	st, err := h.root.Stat(".")
	if err != nil {
		return nil, err
	}
	list := []entry{}
	if h.only == nil {
		list = append(list, entryOf("", st))
	}
	err = h.walk.Walk(ctx, h.dir, remotefs.WalkOptions{Depth: depth(h.only)}, func(n remotefs.Node) error {
		if h.takes(n.Path) {
			n.Path = h.target(n.Path)
			list = append(list, newEntry(n))
		}
		return nil
	})
	return list, err
}

// takes reports whether an entry takes part.
func (h *Host) takes(p string) bool { return h.only == nil || slices.Contains(h.only, p) }

func entryOf(p string, st fs.FileInfo) entry {
	e := entry{path: p, size: st.Size(), mtime: st.ModTime().UnixNano(), mode: int32(permissions(st)), kind: 'o'}
	switch {
	case st.IsDir():
		e.kind = 'd'
	case st.Mode().IsRegular():
		e.kind = 'f'
	}
	return e
}

// permissions gives all permission bits.
func permissions(st fs.FileInfo) int {
	if raw, ok := st.Sys().(*syscall.Stat_t); ok {
		return int(raw.Mode & 0o7777)
	}
	return int(st.Mode().Perm())
}

// fileMode gives permission bits as package os wants them.
func fileMode(bits int32) fs.FileMode {
	m := fs.FileMode(bits & 0o777)
	for bit, flag := range map[int32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if bits&bit != 0 {
			m |= flag
		}
	}
	return m
}

// open opens a regular file for reading, and blocks on nothing else.
func (h *Host) open(p string) (*os.File, fs.FileInfo, error) {
	f, err := h.root.OpenFile(h.source(p), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = errors.New("it is no regular file any more")
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, st, nil
}

// sums reads files.
func (h *Host) sums(ctx context.Context, paths []string) ([]string, error) {
	out := make([]string, len(paths))
	for i, p := range paths {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		f, _, err := h.open(p)
		if err != nil {
			continue
		}
		d := sha256.New()
		if _, err := io.Copy(d, f); err == nil {
			out[i] = hex.EncodeToString(d.Sum(nil))
		}
		f.Close()
	}
	return out, nil
}

// write archives files and links under a prefix. A file that changes meanwhile is
// filled up to the announced length and told as changed.
func (h *Host) write(ctx context.Context, tw *tar.Writer, prefix string, files []entry, r *run) ([]outcome, error) {
	out := make([]outcome, len(files))
	buf := make([]byte, 256<<10)
	for i := range files {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		var err error
		if files[i].kind == 'l' {
			err = writeHeader(tw, &tar.Header{Typeflag: tar.TypeSymlink, Name: prefix + files[i].path, Linkname: files[i].link, Mode: 0o777}, files[i].mtime)
		} else {
			out[i], err = h.writeFile(tw, prefix, &files[i], buf, r)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func writeHeader(tw *tar.Writer, hdr *tar.Header, mtime int64) error {
	hdr.ModTime = time.Unix(0, mtime)
	if mtime%int64(time.Second) != 0 {
		hdr.Format = tar.FormatPAX
	}
	return tw.WriteHeader(hdr)
}

func (h *Host) writeFile(tw *tar.Writer, prefix string, e *entry, buf []byte, r *run) (outcome, error) {
	f, st, err := h.open(e.path)
	if err != nil {
		return outcome{failed: reason(err)}, nil
	}
	defer f.Close()
	e.size, e.mtime, e.mode = st.Size(), st.ModTime().UnixNano(), int32(permissions(st))
	hdr := &tar.Header{Typeflag: tar.TypeReg, Name: prefix + e.path, Size: e.size, Mode: int64(e.mode)}
	if err := writeHeader(tw, hdr, e.mtime); err != nil {
		return outcome{}, err
	}
	d := sha256.New()
	n, readErr, err := fill(io.MultiWriter(tw, d), counting{io.LimitReader(f, e.size), r}, e.size, buf)
	if err != nil {
		return outcome{}, err
	}
	now, err := f.Stat()
	changed := readErr != nil || n < e.size || err != nil || now.Size() != e.size || now.ModTime().UnixNano() != e.mtime
	return outcome{sum: hex.EncodeToString(d.Sum(nil)), changed: changed}, nil
}

// fill copies size bytes; what src lacks is NUL. It gives how many came from src,
// why that ended early, and the error of dst.
func fill(dst io.Writer, src io.Reader, size int64, buf []byte) (n int64, readErr, err error) {
	for n < size {
		k, rerr := src.Read(buf)
		if k > 0 {
			if _, err := dst.Write(buf[:k]); err != nil {
				return n, nil, err
			}
			n += int64(k)
		}
		if rerr != nil {
			if !errors.Is(rerr, io.EOF) {
				readErr = rerr
			}
			break
		}
	}
	clear(buf)
	for m := n; m < size; m += int64(len(buf)) {
		if _, err := dst.Write(buf[:min(int64(len(buf)), size-m)]); err != nil {
			return n, readErr, err
		}
	}
	return n, readErr, nil
}

// reason gives the innermost words of a system error.
func reason(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno.Error()
	}
	return err.Error()
}

// staged is a file that was received and is not published yet.
type staged struct {
	temp string
	sum  string
	bad  string // why it cannot be published
}

// receive reads an archive and stages the files among the wanted ones. What was
// not asked for is passed over, whatever its name. The staged files are those of
// the same index; discard removes them.
func (h *Host) receive(ctx context.Context, tr *tar.Reader, files []entry, names renaming, r *run) ([]staged, error) {
	index := make(map[string]int, len(files))
	for i := range files {
		index[names.source(files[i].path)] = i
	}
	out := make([]staged, len(files))
	buf := make([]byte, 256<<10)
	for {
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
		hdr, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		i, ok := index[strings.TrimPrefix(hdr.Name, "./")]
		if !ok || files[i].kind != 'f' || hdr.Typeflag != tar.TypeReg || out[i].temp != "" {
			continue
		}
		if err := h.stage(&out[i], files[i].path, counting{tr, r}, buf); err != nil {
			return out, err
		}
	}
}

// stage writes a file beside its place. Only what stops everything is an error.
func (h *Host) stage(s *staged, p string, src io.Reader, buf []byte) error {
	if err := h.parents(path.Dir(p)); err != nil {
		s.bad = reason(err)
		return nil
	}
	temp := path.Join(path.Dir(p), tempName())
	f, err := h.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		s.bad = reason(err)
		return nil
	}
	s.temp = temp
	d := sha256.New()
	_, err = io.CopyBuffer(struct{ io.Writer }{io.MultiWriter(f, d)}, struct{ io.Reader }{src}, buf)
	s.sum = hex.EncodeToString(d.Sum(nil))
	return errors.Join(err, f.Close())
}

// tempName is a name of a staged file.
func tempName() string {
	var id [8]byte
	rand.Read(id[:]) // never fails
	return remotefs.StageName + hex.EncodeToString(id[:]) + remotefs.StageEnd
}

// parents makes the directories of a path; each must be a directory itself and no
// link.
func (h *Host) parents(dir string) error {
	if dir == "." {
		return nil
	}
	st, err := h.root.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := h.parents(path.Dir(dir)); err != nil {
			return err
		}
		if err = h.root.Mkdir(dir, 0o777); !errors.Is(err, fs.ErrExist) {
			return err
		}
		st, err = h.root.Lstat(dir)
	}
	if err == nil && !st.IsDir() {
		return fmt.Errorf("%s is in the way", filepath.Base(dir))
	}
	return err
}

// publish gives a staged file mode, times and name in one step.
func (h *Host) publish(s staged, e *entry) error {
	if err := h.root.Chtimes(s.temp, time.Unix(0, e.mtime), time.Unix(0, e.mtime)); err != nil {
		return err
	}
	if err := h.root.Chmod(s.temp, fileMode(e.mode)); err != nil {
		return err
	}
	return h.root.Rename(s.temp, e.path)
}

// link makes a link, replacing a file or link.
func (h *Host) link(e *entry) error {
	if err := h.parents(path.Dir(e.path)); err != nil {
		return err
	}
	temp := path.Join(path.Dir(e.path), tempName())
	if err := h.root.Symlink(e.link, temp); err != nil {
		return err
	}
	err := setLinkTime(h.root, temp, e.mtime)
	if err == nil {
		err = h.root.Rename(temp, e.path)
	}
	if err != nil {
		h.root.Remove(temp)
	}
	return err
}

// discard removes what is staged and was not published.
func (h *Host) discard(list []staged) {
	for _, s := range list {
		if s.temp != "" {
			h.root.Remove(s.temp)
		}
	}
}

// settle publishes what was received, whose digests at the source are sums, and
// makes the links; then directories get their modes and times.
func (h *Host) settle(b batch, got []staged, sums []string) []outcome {
	out := make([]outcome, len(b.files))
	for i := range b.files {
		e, s := &b.files[i], got[i]
		var err error
		switch {
		case e.kind == 'l':
			err = h.link(e)
		case s.bad != "":
			err = errors.New(s.bad)
		case s.temp == "" || s.sum != sums[i]:
			out[i].changed = true
			continue
		default:
			err = h.publish(s, e)
		}
		if err != nil {
			out[i].failed = reason(err)
		}
	}
	return out
}

// finish makes the directories of a batch and sets their modes and times, those
// inside first.
func (h *Host) finish(dirs []entry) error {
	for i := range dirs {
		if err := h.parents(path.Clean(dirs[i].path)); err != nil {
			return err
		}
	}
	for i := len(dirs) - 1; i >= 0; i-- {
		d, p := &dirs[i], path.Clean(dirs[i].path)
		if err := h.root.Chmod(p, fileMode(d.mode)); err != nil {
			return err
		}
		if err := h.root.Chtimes(p, time.Unix(0, d.mtime), time.Unix(0, d.mtime)); err != nil {
			return err
		}
	}
	return nil
}

// remove takes entries away.
func (h *Host) remove(paths []string) error {
	for _, p := range paths {
		if err := h.root.RemoveAll(p); err != nil {
			return err
		}
	}
	return nil
}

// copy is a batch between two directories of this machine.
func (r *run) copy(ctx context.Context, src, dst *Host, b batch) ([]entry, error) {
	if err := dst.remove(b.remove); err != nil {
		return nil, err
	}
	pr, pw := io.Pipe()
	type written struct {
		out []outcome
		err error
	}
	done := make(chan written, 1)
	go func() {
		tw := tar.NewWriter(pw)
		out, err := src.write(ctx, tw, "", b.files, &run{})
		err = errors.Join(err, tw.Close())
		pw.CloseWithError(err)
		done <- written{out, err}
	}()
	got, err := dst.receive(ctx, tar.NewReader(pr), b.files, renaming{}, r)
	defer dst.discard(got)
	pr.CloseWithError(err)
	w := <-done
	if err = errors.Join(err, w.err); err != nil {
		return nil, err
	}
	sums := make([]string, len(b.files))
	for i := range w.out {
		if sums[i] = w.out[i].sum; w.out[i].changed {
			sums[i] = "changed"
		}
		if w.out[i].failed != "" {
			got[i].bad = w.out[i].failed
		}
	}
	changed := r.outcomes(b.files, dst.settle(b, got, sums))
	return changed, dst.finish(b.dirs)
}
