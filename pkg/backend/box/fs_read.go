package box

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/afield-dev/afield/pkg/backend/box/wire"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
	"github.com/afield-dev/afield/pkg/script"
)

const (
	// inline is the largest content that comes with the answer of the first
	// request.
	inline = 1 << 20
	// rangeSize is what one further request asks for.
	rangeSize = 4 << 20
)

// Open implements remotefs.Driver. Content up to 1 MiB comes with the first
// request, larger in ranges of 4 MiB; then one look tells whether all of them
// came from one file (upstash-box.md 11).
func (f *files) Open(ctx context.Context, ref remotefs.Ref, limit int64) (remotefs.File, error) {
	c := script.ReadInline(ref.Path, ref.Canonical, limit, inline)
	a, err := f.run(ctx, true, c)
	if err != nil {
		return nil, err
	}
	e, err := script.ReadStat(a, c)
	if err != nil {
		return nil, refusal(err)
	}
	if e.Facts == nil {
		return nil, fs.ErrNotExist
	}
	if e.Facts.Size <= inline {
		return &smallFile{Reader: a, key: e.Key, info: info(e.Facts, "")}, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	return &largeFile{files: f, ctx: ctx, cancel: cancel, key: e.Key, info: info(e.Facts, "")}, nil
}

// smallFile is a file whose content is here.
type smallFile struct {
	io.Reader
	key  string
	info *remotefs.Info
}

func (f *smallFile) Key() string          { return f.key }
func (f *smallFile) Info() *remotefs.Info { return f.info }
func (f *smallFile) Close() error         { return nil }

// largeFile is a file that is read in ranges, as far as it reached when it was
// opened. It is for one goroutine; Close may come from another.
type largeFile struct {
	*files
	ctx    context.Context // of the opening; ends with Close
	cancel context.CancelFunc
	key    string
	info   *remotefs.Info
	at     int64
	piece  bytes.Reader
	err    error
}

func (f *largeFile) Key() string          { return f.key }
func (f *largeFile) Info() *remotefs.Info { return f.info }

// Close ends what is under way.
func (f *largeFile) Close() error {
	f.cancel()
	return nil
}

func (f *largeFile) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for f.piece.Len() == 0 && f.err == nil {
		f.err = f.next()
	}
	if f.piece.Len() > 0 {
		return f.piece.Read(p)
	}
	return 0, f.err
}

// next gets a range, or finds out that the file has been replaced meanwhile. A
// file that has shrunk ends earlier.
func (f *largeFile) next() error {
	if f.at >= f.info.Size {
		return f.verify()
	}
	want := min(rangeSize, f.info.Size-f.at)
	var content []byte
	err := f.do(f.ctx, true, func(id string) (err error) {
		content, err = f.client.ReadRange(f.ctx, id, f.key, f.at, want)
		return err
	})
	switch {
	case f.ctx.Err() != nil:
		return context.Cause(f.ctx)
	case wire.StatusOf(err) == 404 && fault.CodeOf(err) == "":
		return replaced(f.key)
	case err != nil:
		return remote(err)
	}
	f.at += int64(len(content))
	f.piece.Reset(content)
	if int64(len(content)) < want {
		return f.verify()
	}
	return nil
}

// verify gives io.EOF if the ranges came from the file that was opened.
func (f *largeFile) verify() error {
	_, now, err := f.Stat(f.ctx, remotefs.Ref{Path: f.key, Canonical: true})
	switch {
	case f.ctx.Err() != nil:
		return context.Cause(f.ctx)
	case err != nil:
		return err
	case now == nil || !sameFile(now.Version, f.info.Version):
		return replaced(f.key)
	}
	return io.EOF
}

func replaced(key string) error {
	e := fault.Wrap(errors.New("replaced while it was read"), fault.FSIOError, "read", key,
		"cannot read %q: it was replaced while it was read", key)
	e.Backend = name
	return e.WithRetry(fault.RetrySafe).WithHint("read it again")
}
