package remotefs

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/afield-dev/afield/pkg/fault"
)

// double is a scripted driver of flavour R with one file. It counts calls, which
// stand for round trips, and gives content in the pieces of the script.
type double struct {
	pieces  []string
	size    int64 // what Stat and Open say; -1 = the sum of the pieces
	version string
	missing bool
	open    bool // after the pieces the content goes on and on without a byte

	calls  []string
	closed int
	writes []WriteSpec
	// write decides a write; nil: it succeeds.
	write func(w WriteSpec, content string) (WriteResult, error)
}

func (d *double) did(call string) { d.calls = append(d.calls, call) }

func (d *double) Facts() Facts { return Facts{Backend: "double", Cwd: "/w", FollowsDangling: true} }

func (d *double) info() *Info {
	if d.missing {
		return nil
	}
	size := d.size
	if size < 0 {
		size = int64(len(strings.Join(d.pieces, "")))
	}
	return &Info{Version: d.version, Type: TypeFile, Size: size, Mode: 0o644}
}

func (d *double) Canon(_ context.Context, path string) (string, error) {
	d.did("canon")
	return path, nil
}

func (d *double) Stat(_ context.Context, ref Ref) (string, *Info, error) {
	d.did("stat")
	return ref.Path, d.info(), nil
}

func (d *double) Lstat(_ context.Context, path string) (string, *Info, error) {
	d.did("lstat")
	return path, d.info(), nil
}

func (d *double) List(_ context.Context, ref Ref) (string, []Entry, error) {
	d.did("list")
	return ref.Path, []Entry{{Name: "z"}, {Name: "a", Info: d.info()}}, nil
}

func (d *double) Open(_ context.Context, ref Ref, limit int64) (File, error) {
	d.did("open")
	if d.missing {
		return nil, &fault.Error{Code: fault.FSNotFound}
	}
	if limit >= 0 && d.info().Size > limit {
		return nil, &fault.Error{Code: fault.FSTooLarge}
	}
	return &doubleFile{d: d, key: ref.Path, info: d.info(), left: slices.Clone(d.pieces)}, nil
}

type doubleFile struct {
	d    *double
	key  string
	info *Info
	left []string
	gone bool
}

func (f *doubleFile) Key() string { return f.key }
func (f *doubleFile) Info() *Info { return f.info }

func (f *doubleFile) Read(p []byte) (int, error) {
	switch {
	case f.gone:
		return 0, errors.New("read of a closed file")
	case len(f.left) == 0 && f.d.open:
		panic("more was asked for than was needed")
	case len(f.left) == 0:
		return 0, io.EOF
	}
	n := copy(p, f.left[0])
	if f.left[0] = f.left[0][n:]; f.left[0] == "" {
		f.left = f.left[1:]
	}
	return n, nil
}

func (f *doubleFile) Close() error {
	f.d.closed++
	f.gone = true
	return errors.New("cancelling failed")
}

// doubleWriter is a double that writes as a whole.
type doubleWriter struct{ *double }

func (d doubleWriter) Write(ctx context.Context, ref Ref, w WriteSpec) (WriteResult, error) {
	d.did("write")
	d.writes = append(d.writes, w)
	if err := w.Lock(ctx, ref.Path); err != nil {
		return WriteResult{}, err
	}
	content, err := io.ReadAll(w.Content)
	if err != nil {
		return WriteResult{}, err
	}
	if d.write != nil {
		return d.write(w, string(content))
	}
	return WriteResult{Key: ref.Path, Operation: OpUpdate, Version: "v2", Bytes: int64(len(content))}, nil
}
