package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/afield-dev/afield/pkg/remotefs"
)

// walkBatch is how many names of a directory are held at once.
const walkBatch = 1024

// isStage reports whether a name is that of a staging folder.
func isStage(name string) bool {
	return strings.HasPrefix(name, remotefs.StageName) && strings.HasSuffix(name, remotefs.StageEnd)
}

// Walk visits everything below a directory. Each directory is opened below the
// one before, so that a link put in its place is not followed.
func (d *Driver) Walk(ctx context.Context, path string, opts remotefs.WalkOptions, visit func(remotefs.Node) error) error {
	dir, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if errors.Is(err, syscall.ENOTDIR) {
		return notDirectory(path)
	}
	if err != nil {
		return err
	}
	w := &walk{ctx: ctx, opts: opts, visit: visit}
	return w.directory(dir, "", 1)
}

// walk is a walk under way.
type walk struct {
	ctx   context.Context
	opts  remotefs.WalkOptions
	visit func(remotefs.Node) error
}

// directory visits the entries of an open directory, which it closes. prefix is
// its path below the root with a slash at the end.
func (w *walk) directory(dir *os.File, prefix string, depth int) error {
	defer dir.Close()
	for {
		entries, err := dir.ReadDir(walkBatch)
		for _, e := range entries {
			if w.ctx.Err() != nil {
				return w.ctx.Err()
			}
			if isStage(e.Name()) || slices.Contains(w.opts.Skip, e.Name()) {
				continue
			}
			if err := w.entry(dir, prefix, e, depth); err != nil {
				return err
			}
		}
		if err != nil || len(entries) == 0 {
			return nil
		}
	}
}

// entry visits one entry and what is below it.
func (w *walk) entry(dir *os.File, prefix string, e fs.DirEntry, depth int) error {
	n := remotefs.Node{Path: prefix + e.Name(), Type: kindOf(e.Type())}
	if !w.opts.Names {
		if err := look(dir, e.Name(), &n); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			n.Err = err
		}
	}
	if n.Type != remotefs.TypeDirectory || n.Err != nil || depth == w.opts.Depth {
		return w.visit(n)
	}
	sub, err := openBelow(dir, e.Name())
	if err != nil {
		n.Err = err
	}
	if err := w.visit(n); err != nil || sub == nil {
		if sub != nil {
			sub.Close()
		}
		return err
	}
	return w.directory(sub, n.Path+"/", depth+1)
}

// openBelow opens a directory of dir without following a link.
func openBelow(dir *os.File, name string) (*os.File, error) {
	var fd int
	err := retry(func() (err error) {
		fd, err = unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// kindOf gives the type that a listing tells.
func kindOf(m fs.FileMode) remotefs.Type {
	switch {
	case m.IsRegular():
		return remotefs.TypeFile
	case m.IsDir():
		return remotefs.TypeDirectory
	case m&fs.ModeSymlink != 0:
		return remotefs.TypeSymlink
	}
	return remotefs.TypeOther
}

// look fills the facts of an entry of dir.
func look(dir *os.File, name string, n *remotefs.Node) error {
	var st unix.Stat_t
	fd := int(dir.Fd())
	if err := retry(func() error { return unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) }); err != nil {
		return err
	}
	n.Type, n.Size, n.Mode = kindOfMode(uint32(st.Mode)), st.Size, int(st.Mode&0o7777)
	n.ModTime = time.Unix(st.Mtim.Unix())
	n.State = strconv.FormatUint(st.Ino, 36) + ":" + strconv.FormatInt(st.Size, 36) + ":" +
		strconv.FormatInt(st.Mtim.Nano(), 36) + ":" + strconv.FormatInt(st.Ctim.Nano(), 36)
	if n.Type != remotefs.TypeSymlink {
		return nil
	}
	text := make([]byte, max(st.Size, 255)+1)
	size, err := unix.Readlinkat(fd, name, text)
	n.Link = string(text[:max(size, 0)])
	return err
}
