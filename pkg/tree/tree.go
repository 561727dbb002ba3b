// Package tree arranges the entries of a world: directories made, entries moved,
// copied, removed and looked through. It holds the rules that all worlds share
// (guards, the fence, locks, words of errors) over a remotefs.Arranger, which the
// world's driver has or which Shell makes of the world's processes.
package tree

import (
	"context"
	"errors"
	"path"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// Tree arranges entries. All methods may run at the same time. Errors are
// *fault.Error.
type Tree struct {
	files remotefs.FS
	fence *remotefs.Fence
	arr   remotefs.Arranger
	locks remotefs.Locker
}

// Options are what New needs.
type Options struct {
	// Files are those of the world, without a fence.
	Files remotefs.FS
	// Fence, if there is one, is asked before each change.
	Fence *remotefs.Fence
	// Arranger does the work; nil: that of Files.
	Arranger remotefs.Arranger
	// Locks serialises changes with those of the file contract.
	Locks remotefs.Locker
}

// New makes a Tree, or fails with BACKEND_UNSUPPORTED where nothing can arrange
// the world's entries.
func New(o Options) (*Tree, error) {
	t := &Tree{files: o.Files, fence: o.Fence, arr: o.Arranger, locks: o.Locks}
	if t.arr == nil {
		t.arr = remotefs.ArrangerOf(o.Files)
	}
	if t.arr == nil {
		return nil, fault.New(fault.BackendUnsupported, "", "", "this world's entries cannot be arranged: it runs no processes")
	}
	return t, nil
}

// Arranger gives what does the work.
func (t *Tree) Arranger() remotefs.Arranger { return t.arr }

// Entry is an entry that an operation is about.
type Entry struct {
	Target remotefs.Target
	Info   *remotefs.Info // nil = nothing is there
}

// entry looks at the entry itself.
func (t *Tree) entry(ctx context.Context, op, p string) (Entry, error) {
	target, info, err := t.files.Lstat(ctx, p, "")
	if err != nil {
		return Entry{}, renamed(err, op)
	}
	return Entry{target, info}, nil
}

// existing is entry, with FS_NOT_FOUND where nothing is.
func (t *Tree) existing(ctx context.Context, op, p string) (Entry, error) {
	e, err := t.entry(ctx, op, p)
	if err == nil && e.Info == nil {
		err = remotefs.Explain(ctx, &fault.Error{Code: fault.FSNotFound}, op, e.Target.Display)
	}
	return e, err
}

// referent looks at what p leads to.
func (t *Tree) referent(ctx context.Context, op, p string) (Entry, error) {
	target, info, err := t.files.Stat(ctx, remotefs.AtPath(p, ""))
	if err != nil {
		return Entry{}, renamed(err, op)
	}
	return Entry{target, info}, nil
}

// renamed tells an error of a look by the operation that it was for.
func renamed(err error, op string) error {
	var e *fault.Error
	if !errors.As(err, &e) {
		return err
	}
	out := *e
	out.Op = op
	return &out
}

// change asks the fence, takes the locks of the entries, and does f. The fence
// sees the directory that an entry is in, since it is that which changes.
func (t *Tree) change(ctx context.Context, op string, entries []Entry, f func() error) error {
	display := entries[0].Target.Display
	for _, e := range entries {
		if t.fence != nil {
			dir := path.Dir(e.Target.Key)
			if _, err := t.fence.Admit(ctx, remotefs.AtPath(dir, "")); err != nil {
				return withPath(renamed(err, op), e.Target.Display)
			}
		}
	}
	unlock, err := t.lock(ctx, entries)
	if err != nil {
		return remotefs.Explain(ctx, err, op, display)
	}
	defer unlock()
	if ctx.Err() != nil {
		return fault.Aborted(ctx, fault.FSAborted, op, display)
	}
	return remotefs.Explain(ctx, f(), op, display)
}

// withPath names the path that the caller gave.
func withPath(err error, display string) error {
	var e *fault.Error
	if errors.As(err, &e) {
		e.Path = display
	}
	return err
}

// lock takes the locks of one or two entries, in the order of their keys. What
// cannot be locked is changed without (design.md 4.23); guards are checked in the
// same call.
func (t *Tree) lock(ctx context.Context, entries []Entry) (func(), error) {
	keys := []string{entries[0].Target.Key}
	if len(entries) > 1 && entries[1].Target.Key != keys[0] {
		keys = append(keys, entries[1].Target.Key)
		if keys[0] > keys[1] {
			keys[0], keys[1] = keys[1], keys[0]
		}
	}
	var held []func()
	unlock := func() {
		for _, u := range held {
			u()
		}
	}
	for _, key := range keys {
		if t.locks == nil {
			break
		}
		u, err := t.locks.Lock(ctx, key)
		var none *remotefs.NoLockError
		switch {
		case err == nil:
			held = append(held, u)
		case !errors.As(err, &none):
			unlock()
			return nil, err
		}
	}
	return unlock, nil
}

// Made is the result of what makes an entry.
type Made struct {
	Target remotefs.Target
	Made   bool // something was made; otherwise it was there
}

// Mkdir makes a directory; with parents what is missing above it, and one that
// is there already is no error.
func (t *Tree) Mkdir(ctx context.Context, p string, mode int, parents bool) (Made, error) {
	e, err := t.entry(ctx, "mkdir", p)
	if err != nil {
		return Made{}, err
	}
	made := false
	err = t.change(ctx, "mkdir", []Entry{e}, func() (err error) {
		made, err = t.arr.Mkdir(ctx, e.Target.Key, mode, parents)
		return err
	})
	return Made{e.Target, made}, err
}

// RemoveOptions guard a removal.
type RemoveOptions struct {
	Recursive bool
	Version   string // "" = no guard
	DryRun    bool
}

// Removed is what a removal took away, or with DryRun would.
type Removed struct {
	Target  remotefs.Target
	Type    remotefs.Type
	Entries int   // with those inside
	Bytes   int64 // of regular files
}

// Remove removes an entry; a link is removed itself.
func (t *Tree) Remove(ctx context.Context, p string, o RemoveOptions) (Removed, error) {
	e, err := t.existing(ctx, "remove", p)
	if err != nil {
		return Removed{}, err
	}
	r := Removed{Target: e.Target, Type: e.Info.Type, Entries: 1, Bytes: fileSize(e.Info)}
	if e.Info.Type == remotefs.TypeDirectory && !o.Recursive {
		return Removed{}, fault.New(fault.FSNotRegularFile, "remove", e.Target.Display,
			"cannot remove %q: it is a directory", e.Target.Display).WithHint("-r removes a directory with all that is in it")
	}
	if o.Recursive && t.holdsCwd(e) {
		return Removed{}, fault.New(fault.FSPermissionDenied, "remove", e.Target.Display,
			"cannot remove %q: it is or holds the working directory", e.Target.Display).WithHint("name what is inside it, or work elsewhere with --cwd")
	}
	if err := t.stale(ctx, e, o.Version); err != nil {
		return Removed{}, err
	}
	if o.DryRun && e.Info.Type == remotefs.TypeDirectory {
		return r, remotefs.Explain(ctx, t.count(ctx, e.Target.Key, &r), "remove", e.Target.Display)
	}
	if o.DryRun {
		return r, nil
	}
	err = t.change(ctx, "remove", []Entry{e}, func() error {
		if o.Version != "" {
			now, err := t.entry(ctx, "remove", e.Target.Key)
			if err != nil {
				return err
			}
			if err := t.stale(ctx, now, o.Version); err != nil {
				return err
			}
		}
		return t.arr.Remove(ctx, e.Target.Key, o.Recursive)
	})
	return r, err
}

// holdsCwd tells the accident of "rm -r .." from a removal that is meant.
func (t *Tree) holdsCwd(e Entry) bool {
	cwd := t.files.Facts().Cwd
	return e.Info.Type == remotefs.TypeDirectory && cwd != "" && e.Target.Key != "/" &&
		(remotefs.PathContains(e.Target.Key, cwd) || remotefs.PathContains(e.Target.Display, cwd))
}

func fileSize(i *remotefs.Info) int64 {
	if i.Type != remotefs.TypeFile {
		return 0
	}
	return i.Size
}

// stale compares a guard.
func (t *Tree) stale(ctx context.Context, e Entry, version string) error {
	if version == "" || e.Info != nil && e.Info.Version == version {
		return nil
	}
	return remotefs.Explain(ctx, &fault.Error{Code: fault.FSStaleVersion}, "remove", e.Target.Display)
}

// count adds what is inside of a directory.
func (t *Tree) count(ctx context.Context, key string, r *Removed) error {
	return t.arr.Walk(ctx, key, remotefs.WalkOptions{}, func(n remotefs.Node) error {
		r.Entries++
		if n.Type == remotefs.TypeFile {
			r.Bytes += n.Size
		}
		return nil
	})
}

// Moved is the result of a move or copy.
type Moved struct {
	From, To remotefs.Target
	Type     remotefs.Type
	Replaced bool
}

// Move renames an entry in one step. The target is the new name itself: a
// directory there is in the way.
func (t *Tree) Move(ctx context.Context, from, to string, noReplace, dryRun bool) (Moved, error) {
	a, b, err := t.pair(ctx, "move", from, to, noReplace)
	if err != nil {
		return Moved{}, err
	}
	m := Moved{a.Target, b.Target, a.Info.Type, b.Info != nil}
	if dryRun || a.Target.Key == b.Target.Key {
		return m, nil
	}
	return m, t.change(ctx, "move", []Entry{a, b}, func() error {
		return t.arr.Move(ctx, a.Target.Key, b.Target.Key, noReplace)
	})
}

// pair looks at both ends and refuses what cannot succeed.
func (t *Tree) pair(ctx context.Context, op, from, to string, noReplace bool) (a, b Entry, err error) {
	if a, err = t.existing(ctx, op, from); err != nil {
		return a, b, err
	}
	if b, err = t.entry(ctx, op, to); err != nil {
		return a, b, err
	}
	display := b.Target.Display
	switch {
	case a.Target.Key != b.Target.Key && a.Info.Type == remotefs.TypeDirectory && remotefs.PathContains(a.Target.Key, b.Target.Key):
		return a, b, fault.New(fault.FSIOError, op, display, "cannot %s %q into itself: %q", op, a.Target.Display, display)
	case b.Info == nil:
		return a, b, nil
	case b.Info.Type == remotefs.TypeDirectory && a.Target.Key != b.Target.Key:
		return a, b, fault.New(fault.FSNotRegularFile, op, display, "cannot %s to %q: a directory is in the way", op, display).
			WithHint("name the new entry itself")
	case noReplace:
		return a, b, remotefs.Explain(ctx, &fault.Error{Code: fault.FSNotObserved,
			Message: "cannot " + op + " to \"" + display + "\": something has this name"}, op, display)
	}
	return a, b, nil
}

// Copy copies an entry, published in one step. Without recursive only the
// content of a regular file is copied, links followed; with it a directory with
// all that is in it, links as links.
func (t *Tree) Copy(ctx context.Context, from, to string, recursive, noReplace bool) (Moved, error) {
	if !recursive {
		src, err := t.referent(ctx, "copy", from)
		if err != nil {
			return Moved{}, err
		}
		if src.Info != nil {
			if src.Info.Type != remotefs.TypeFile {
				return Moved{}, notAFile(src)
			}
			from = src.Target.Key
		}
	}
	a, b, err := t.pair(ctx, "copy", from, to, noReplace)
	if err != nil {
		return Moved{}, err
	}
	if a.Target.Key == b.Target.Key {
		return Moved{}, fault.New(fault.FSIOError, "copy", b.Target.Display, "cannot copy %q to itself", b.Target.Display)
	}
	return Moved{a.Target, b.Target, a.Info.Type, b.Info != nil}, t.change(ctx, "copy", []Entry{b}, func() error {
		return t.arr.Copy(ctx, a.Target.Key, b.Target.Key, noReplace)
	})
}

func notAFile(e Entry) error {
	f := fault.New(fault.FSNotRegularFile, "copy", e.Target.Display, "cannot copy %q: not a regular file", e.Target.Display)
	if e.Info.Type == remotefs.TypeDirectory {
		return f.WithHint("-r copies a directory with all that is in it")
	}
	return f
}

// Chmod sets permission bits of what p leads to.
func (t *Tree) Chmod(ctx context.Context, p string, mode int, recursive bool) (remotefs.Target, error) {
	e, err := t.referent(ctx, "chmod", p)
	if err == nil && e.Info == nil {
		err = remotefs.Explain(ctx, &fault.Error{Code: fault.FSNotFound}, "chmod", e.Target.Display)
	}
	if err != nil {
		return remotefs.Target{}, err
	}
	return e.Target, t.change(ctx, "chmod", []Entry{e}, func() error {
		return t.arr.Chmod(ctx, e.Target.Key, mode, recursive)
	})
}

// Link makes a symbolic link that holds text; nothing is replaced.
func (t *Tree) Link(ctx context.Context, text, p string) (remotefs.Target, error) {
	e, err := t.entry(ctx, "link", p)
	if err != nil {
		return remotefs.Target{}, err
	}
	return e.Target, t.change(ctx, "link", []Entry{e}, func() error { return t.arr.Link(ctx, text, e.Target.Key) })
}

// Touch sets the time of modification, zero for the world's now, and makes an
// empty file where nothing is, unless exist is set.
func (t *Tree) Touch(ctx context.Context, p string, at time.Time, exist bool) (Made, error) {
	e, err := t.referent(ctx, "touch", p)
	if err != nil {
		return Made{}, err
	}
	made := false
	err = t.change(ctx, "touch", []Entry{e}, func() (err error) {
		made, err = t.arr.Touch(ctx, e.Target.Key, at, exist)
		return err
	})
	return Made{e.Target, made}, err
}

// Walk visits everything below the directory p, in no certain order.
func (t *Tree) Walk(ctx context.Context, p string, o remotefs.WalkOptions, visit func(remotefs.Node) error) (remotefs.Target, error) {
	target, err := t.files.Resolve(ctx, p, "")
	if err != nil {
		return target, renamed(err, "list")
	}
	return target, remotefs.Explain(ctx, t.arr.Walk(ctx, target.Key, o, visit), "list", target.Display)
}
