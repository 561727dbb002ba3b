package e2btest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/afield-dev/afield/pkg/backend/e2b/wire"
)

// path applies the daemon's rules: empty and relative ones start at the home,
// absolute ones are taken as they are.
func (c *call) path(p string) (string, error) {
	switch {
	case p == "" || p == "~":
		return c.user.home, nil
	case strings.HasPrefix(p, "~/"):
		return filepath.Join(c.user.home, p[2:]), nil
	case strings.HasPrefix(p, "~"):
		return "", fail(wire.CodeInvalidArgument, "cannot expand user-specific home dir")
	case !strings.HasPrefix(p, "/"):
		return filepath.Join(c.user.home, p), nil
	}
	return p, nil
}

// mayChange refuses what lies outside the root folder: a stand-in must
// never harm the machine it runs on.
func (c *call) mayChange(path string) error {
	clean := filepath.Clean(path)
	if !strings.HasPrefix(clean, c.box.server.opts.Root+"/") {
		return fail(wire.CodeInternal, "permission denied: %s is outside the folder of this stand-in", path)
	}
	return nil
}

// fileError gives the daemon's code of a system error.
func fileError(err error, path string) error {
	var e *rpcError
	switch {
	case errors.As(err, &e):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return fail(wire.CodeNotFound, "file not found: %s", err)
	}
	return fail(wire.CodeInternal, "error with '%s': %s", path, err)
}

// entryOf describes a name without following it.
func (b *Sandbox) entryOf(path string) (wire.EntryInfo, error) {
	fi, err := os.Lstat(path)
	if err != nil {
		return wire.EntryInfo{}, err
	}
	st := fi.Sys().(*syscall.Stat_t)
	e := wire.EntryInfo{
		Name: filepath.Base(path), Path: path, Size: wire.Int64(fi.Size()), Permissions: fi.Mode().String(),
		Owner: userName(st.Uid), Group: groupName(st.Gid),
		ModifiedTime: fi.ModTime().UTC().Format(time.RFC3339Nano),
	}
	if fi.Mode()&fs.ModeSymlink == 0 {
		e.Type, e.Mode = typeOf(fi), uint32(fi.Mode().Perm())
	} else {
		target := path
		if real, err := filepath.EvalSymlinks(path); err == nil {
			target = real
			if to, err := os.Stat(real); err == nil {
				e.Type, e.Mode = typeOf(to), uint32(to.Mode().Perm())
			}
		}
		e.SymlinkTarget = &target
	}
	if !b.server.opts.NoMetadata {
		e.Metadata = metadataOf(path)
	}
	return e, nil
}

func typeOf(fi fs.FileInfo) wire.FileType {
	switch {
	case fi.Mode().IsRegular():
		return wire.TypeFile
	case fi.IsDir():
		return wire.TypeDirectory
	}
	return wire.TypeUnspecified
}

// metadataOf reads the extended attributes of a file; nil if it has none.
func metadataOf(path string) map[string]string {
	names := make([]byte, 4096)
	n, err := unix.Listxattr(path, names)
	if err != nil {
		return nil
	}
	var meta map[string]string
	for _, name := range strings.Split(string(names[:n]), "\x00") {
		key, ok := strings.CutPrefix(name, wire.MetadataXattr)
		if !ok {
			continue
		}
		value := make([]byte, 4096)
		if n, err := unix.Getxattr(path, name, value); err == nil {
			if meta == nil {
				meta = map[string]string{}
			}
			meta[key] = string(value[:n])
		}
	}
	return meta
}

// setMetadata replaces the whole set of a file.
func setMetadata(path string, meta map[string]string) {
	for key := range metadataOf(path) {
		unix.Removexattr(path, wire.MetadataXattr+key)
	}
	for key, value := range meta {
		unix.Setxattr(path, wire.MetadataXattr+key, []byte(value), 0)
	}
}

func (c *call) entry(path string) (wire.EntryResponse, error) {
	e, err := c.box.entryOf(path)
	if err != nil {
		return wire.EntryResponse{}, fileError(err, path)
	}
	return wire.EntryResponse{Entry: e}, nil
}

func fileStat(c *call, req wire.PathRequest) (wire.EntryResponse, error) {
	path, err := c.path(req.Path)
	if err != nil {
		return wire.EntryResponse{}, err
	}
	return c.entry(path)
}

func fileMakeDir(c *call, req wire.PathRequest) (wire.EntryResponse, error) {
	path, err := c.path(req.Path)
	if err != nil {
		return wire.EntryResponse{}, err
	}
	if fi, err := os.Stat(path); err == nil {
		if fi.IsDir() {
			return wire.EntryResponse{}, fail(wire.CodeAlreadyExists, "directory already exists: %s", path)
		}
		return wire.EntryResponse{}, fail(wire.CodeInvalidArgument, "path already exists but it is not a directory: %s", path)
	}
	if err := c.mayChange(path); err != nil {
		return wire.EntryResponse{}, err
	}
	if err := makeDirs(path); err != nil {
		return wire.EntryResponse{}, fileError(err, path)
	}
	return c.entry(path)
}

// makeDirs makes a folder and its parents with mode 0755 whatever the umask.
func makeDirs(path string) error {
	if fi, err := os.Stat(path); err == nil && fi.IsDir() {
		return nil
	}
	if err := makeDirs(filepath.Dir(path)); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return os.Chmod(path, 0o755)
}

func fileMove(c *call, req wire.MoveRequest) (wire.EntryResponse, error) {
	from, err := c.path(req.Source)
	if err != nil {
		return wire.EntryResponse{}, err
	}
	to, err := c.path(req.Destination)
	if err != nil {
		return wire.EntryResponse{}, err
	}
	for _, p := range []string{from, to} {
		if err := c.mayChange(p); err != nil {
			return wire.EntryResponse{}, err
		}
	}
	if err := makeDirs(filepath.Dir(to)); err != nil {
		return wire.EntryResponse{}, fileError(err, to)
	}
	if err := os.Rename(from, to); err != nil {
		return wire.EntryResponse{}, fileError(err, from)
	}
	return c.entry(to)
}

func fileRemove(c *call, req wire.PathRequest) (struct{}, error) {
	path, err := c.path(req.Path)
	if err == nil {
		err = c.mayChange(path)
	}
	if err != nil {
		return struct{}{}, err
	}
	if err := os.RemoveAll(path); err != nil {
		return struct{}{}, fail(wire.CodeInternal, "error removing file or directory: %s", err)
	}
	return struct{}{}, nil
}

func fileList(c *call, req wire.ListDirRequest) (wire.ListDirResponse, error) {
	path, err := c.path(req.Path)
	if err != nil {
		return wire.ListDirResponse{}, err
	}
	real, err := filepath.EvalSymlinks(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return wire.ListDirResponse{}, fail(wire.CodeNotFound, "path not found: %s", err)
	case err != nil && strings.Contains(err.Error(), "too many links"):
		return wire.ListDirResponse{}, fail(wire.CodeFailedPrecondition, "cyclic symlink or chain >255 links at %q", path)
	case err != nil:
		return wire.ListDirResponse{}, fileError(err, path)
	}
	if fi, err := os.Stat(real); err != nil {
		return wire.ListDirResponse{}, fileError(err, path)
	} else if !fi.IsDir() {
		return wire.ListDirResponse{}, fail(wire.CodeInvalidArgument, "path is not a directory: %s", path)
	}
	var res wire.ListDirResponse
	err = c.listBelow(path, max(int(req.Depth), 1), &res)
	return res, err
}

// listBelow lists a folder under the path that was asked for; it does not enter
// links.
func (c *call) listBelow(path string, depth int, res *wire.ListDirResponse) error {
	names, err := os.ReadDir(path)
	if err != nil {
		return fileError(err, path)
	}
	sort.Slice(names, func(i, j int) bool { return names[i].Name() < names[j].Name() })
	for _, d := range names {
		child := strings.TrimSuffix(path, "/") + "/" + d.Name()
		e, err := c.box.entryOf(child)
		if err != nil {
			continue
		}
		res.Entries = append(res.Entries, e)
		if d.IsDir() && depth > 1 {
			if err := c.listBelow(child, depth-1, res); err != nil {
				return err
			}
		}
	}
	return nil
}
