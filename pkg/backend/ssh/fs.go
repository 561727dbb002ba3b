package ssh

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"syscall"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
	"github.com/afield-dev/afield/pkg/script"
)

// shellFiles are the files of a host through the programs of package script: two
// round trips for what only reads, three for a guarded write, one less with a
// session opened in advance. Version tokens carry nanoseconds, inode and ctime.
type shellFiles struct {
	sh    *shell
	facts remotefs.Facts
}

var (
	_ remotefs.Driver = (*shellFiles)(nil)
	_ remotefs.Writer = (*shellFiles)(nil)
)

// Facts are those of a POSIX host.
func (d *shellFiles) Facts() remotefs.Facts { return d.facts }

// Canon resolves links in the world.
func (d *shellFiles) Canon(ctx context.Context, path string) (string, error) {
	e, err := d.stat(ctx, script.Stat(path, false))
	if err == nil && e.NotDir {
		err = syscall.ENOTDIR
	}
	return e.Key, err
}

func (d *shellFiles) stat(ctx context.Context, c script.Call) (e script.Entry, err error) {
	err = d.sh.ask(ctx, c, func(a *script.Answer) (err error) {
		e, err = script.ReadStat(a, c)
		return err
	})
	return e, translate(err)
}

// Stat follows links.
func (d *shellFiles) Stat(ctx context.Context, ref remotefs.Ref) (string, *remotefs.Info, error) {
	e, err := d.stat(ctx, script.Stat(ref.Path, ref.Canonical))
	if err != nil {
		return ref.Path, nil, err
	}
	return e.Key, info(e.Facts, ""), nil
}

// Lstat does not follow the last component.
func (d *shellFiles) Lstat(ctx context.Context, path string) (string, *remotefs.Info, error) {
	e, err := d.stat(ctx, script.Lstat(path))
	if err != nil {
		return path, nil, err
	}
	return e.Key, info(e.Facts, e.Link), nil
}

// info gives facts in the words of the contract; nil for absence.
func info(f *script.Facts, link string) *remotefs.Info {
	if f == nil {
		return nil
	}
	i := &remotefs.Info{Version: f.Version, Type: remotefs.TypeOther, Size: -1, Mode: f.Perm(),
		ModTime: f.ModTime, Owner: f.Owner, Group: f.Group, LinkTarget: link}
	switch {
	case f.IsRegular():
		i.Type, i.Size = remotefs.TypeFile, f.Size
	case f.IsDirectory():
		i.Type = remotefs.TypeDirectory
	case f.IsLink():
		i.Type, i.Size = remotefs.TypeSymlink, f.Size
	}
	return i
}

// translate gives the refusals of the programs their codes.
func translate(err error) error {
	var f *script.Failure
	var known *fault.Error
	if errors.As(err, &known) || !errors.As(err, &f) {
		return ioError(err)
	}
	switch f.Kind {
	case script.NotFound:
		return &fault.Error{Code: fault.FSNotFound, Err: fs.ErrNotExist}
	case script.NotDirectory:
		return &fault.Error{Code: fault.FSNotDirectory, Err: f}
	case script.NotRegular, script.Odd:
		return &fault.Error{Code: fault.FSNotRegularFile, Err: f}
	case script.TooLarge:
		return &fault.Error{Code: fault.FSTooLarge, Err: f}
	case script.Exists:
		return &fault.Error{Code: fault.FSNotObserved, Err: f}
	case script.Stale:
		return &fault.Error{Code: fault.FSStaleVersion}
	case script.Gone:
		return &fault.Error{Code: fault.FSStaleVersion, Err: fs.ErrNotExist}
	case script.Link, script.Lost, script.Short:
		return &fault.Error{Code: fault.FSIOError, Err: f}
	}
	if errno := f.Unwrap(); errno != nil {
		return errno
	}
	return &fault.Error{Code: fault.FSIOError, Err: f}
}

// ioError gives a lost connection the code of the file contract.
func ioError(err error) error {
	if fault.Is(err, fault.ExecTransportLost) {
		return &fault.Error{Code: fault.FSIOError, Message: err.Error(), Err: err, Retry: fault.RetrySafe}
	}
	return err
}

// List gives the entries of a directory in one answer.
func (d *shellFiles) List(ctx context.Context, ref remotefs.Ref) (string, []remotefs.Entry, error) {
	c := script.List(ref.Path, ref.Canonical)
	var key string
	var children []script.Child
	err := d.sh.ask(ctx, c, func(a *script.Answer) (err error) {
		key, children, err = script.ReadList(a, c)
		return err
	})
	if err != nil {
		return ref.Path, nil, translate(err)
	}
	entries := make([]remotefs.Entry, len(children))
	for i, child := range children {
		entries[i] = remotefs.Entry{Name: child.Name, Key: child.Key, Info: info(child.Facts, "")}
	}
	return key, entries, nil
}

// Open begins to read a file. Facts and content come from one opened file.
func (d *shellFiles) Open(ctx context.Context, ref remotefs.Ref, limit int64) (remotefs.File, error) {
	f := &shellFile{ctx: ctx}
	c := script.Read(ref.Path, ref.Canonical, limit)
	err := d.open(ctx, c, f)
	if errors.Is(err, script.ErrNoMarker) && !d.sh.plain.Load() && ctx.Err() == nil {
		d.sh.plain.Store(true)
		err = d.open(ctx, c, f)
	}
	if err != nil {
		return nil, translate(err)
	}
	return f, nil
}

func (d *shellFiles) open(ctx context.Context, c script.Call, f *shellFile) error {
	s, a, err := d.sh.start(ctx, c)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, s.close)
	e, err := script.ReadStat(a, c)
	if err != nil {
		defer s.close()
		stop()
		return d.sh.explain(ctx, s, err)
	}
	f.session, f.answer, f.stop, f.key, f.info = s, a, stop, e.Key, info(e.Facts, "")
	return nil
}

// shellFile is a file that is being read.
type shellFile struct {
	ctx     context.Context
	session *session
	answer  *script.Answer
	stop    func() bool
	key     string
	info    *remotefs.Info
	done    bool
}

// Key is the canonical path.
func (f *shellFile) Key() string { return f.key }

// Info is that of the opened file.
func (f *shellFile) Info() *remotefs.Info { return f.info }

// Read gives content. The end of the stream is the end of the file only if the
// program says so by its status; a lost connection looks the same.
func (f *shellFile) Read(p []byte) (int, error) {
	n, err := f.answer.Read(p)
	if !errors.Is(err, io.EOF) || f.done {
		return n, err
	}
	f.done = true
	if end := f.session.end(f.ctx); end != nil {
		var bad *endedBadly
		if errors.As(end, &bad) {
			end = &fault.Error{Code: fault.FSIOError, Err: end}
		}
		return n, ioError(end)
	}
	return n, io.EOF
}

// Close ends the reading.
func (f *shellFile) Close() error {
	f.stop()
	f.session.close()
	return nil
}
