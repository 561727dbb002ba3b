package box

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
	"github.com/afield-dev/afield/pkg/script"
)

// files is the driver of the file contract: one command in the box for each
// small operation, the service's file API for large content.
type files struct{ *link }

// Facts implements remotefs.Driver.
func (f *files) Facts() remotefs.Facts {
	return remotefs.Facts{Backend: name, Cwd: f.owner.cfg.cwd, FollowsDangling: true}
}

// Canon implements remotefs.Driver by one request.
func (f *files) Canon(ctx context.Context, path string) (string, error) {
	e, err := f.entry(ctx, script.Stat(path, false))
	if err == nil && e.NotDir {
		err = syscall.ENOTDIR
	}
	return e.Key, err
}

// Stat implements remotefs.Driver by one request.
func (f *files) Stat(ctx context.Context, ref remotefs.Ref) (string, *remotefs.Info, error) {
	e, err := f.entry(ctx, script.Stat(ref.Path, ref.Canonical))
	if errors.Is(err, fs.ErrNotExist) {
		return ref.Path, nil, nil
	}
	return e.Key, info(e.Facts, ""), err
}

// Lstat implements remotefs.Driver by one request.
func (f *files) Lstat(ctx context.Context, path string) (string, *remotefs.Info, error) {
	e, err := f.entry(ctx, script.Lstat(path))
	if errors.Is(err, fs.ErrNotExist) {
		return path, nil, nil
	}
	return e.Key, info(e.Facts, e.Link), err
}

func (f *files) entry(ctx context.Context, c script.Call) (script.Entry, error) {
	a, err := f.run(ctx, true, c)
	if err != nil {
		return script.Entry{}, err
	}
	e, err := script.ReadStat(a, c)
	return e, refusal(err)
}

// List implements remotefs.Driver by one request.
func (f *files) List(ctx context.Context, ref remotefs.Ref) (string, []remotefs.Entry, error) {
	c := script.List(ref.Path, ref.Canonical)
	a, err := f.run(ctx, true, c)
	if err != nil {
		return "", nil, err
	}
	key, children, err := script.ReadList(a, c)
	if err != nil {
		return "", nil, refusal(err)
	}
	entries := make([]remotefs.Entry, len(children))
	for i, child := range children {
		entries[i] = remotefs.Entry{Name: child.Name, Key: child.Key, Info: info(child.Facts, "")}
	}
	return key, entries, nil
}

// info turns the facts of the box into the contract's. Sizes are given for files
// and links only.
func info(f *script.Facts, link string) *remotefs.Info {
	if f == nil {
		return nil
	}
	out := &remotefs.Info{Version: f.Version, Type: remotefs.TypeOther, Size: -1, Mode: f.Perm(),
		ModTime: f.ModTime, Owner: f.Owner, Group: f.Group}
	switch {
	case f.IsRegular():
		out.Type, out.Size = remotefs.TypeFile, f.Size
	case f.IsDirectory():
		out.Type = remotefs.TypeDirectory
	case f.IsLink():
		out.Type, out.Size, out.LinkTarget = remotefs.TypeSymlink, f.Size, link
	}
	return out
}

// refusal gives the code of a program's refusal. What names a system error is
// left to the contract's core.
func refusal(err error) error {
	var r *script.Failure
	if !errors.As(err, &r) {
		return err
	}
	switch r.Kind {
	case script.NotRegular, script.Odd:
		return &fault.Error{Code: fault.FSNotRegularFile, Err: err}
	case script.NotDirectory:
		return &fault.Error{Code: fault.FSNotDirectory, Err: err}
	case script.TooLarge:
		return &fault.Error{Code: fault.FSTooLarge, Err: err}
	case script.Exists:
		return &fault.Error{Code: fault.FSNotObserved, Err: err}
	case script.Stale:
		return &fault.Error{Code: fault.FSStaleVersion, Err: err}
	case script.Gone:
		return &fault.Error{Code: fault.FSStaleVersion, Err: fs.ErrNotExist}
	case script.Short:
		return errors.New("the content did not arrive whole; nothing was published")
	}
	return err
}

// sameFile reports whether two versions are of one inode, whatever happened to
// its content.
func sameFile(a, b string) bool {
	cut := func(v string) string {
		device, rest, _ := strings.Cut(v, ":")
		inode, _, _ := strings.Cut(rest, ":")
		return device + ":" + inode
	}
	return cut(a) == cut(b)
}
