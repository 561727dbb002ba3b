package e2b

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/afield-dev/afield/pkg/backend/e2b/wire"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// readAttempts bounds how often a file that changes between the look at it and
// its opening is looked at again.
const readAttempts = 3

// file is an open download.
type file struct {
	session *session
	key     string
	info    *remotefs.Info
	body    io.ReadCloser
	cancel  context.CancelFunc
	got     int64
	err     error
}

// Open looks at the file and then opens it: two round trips. The type is known
// before, since opening a FIFO would wait for a writer, and have effects.
func (d *Driver) Open(ctx context.Context, ref remotefs.Ref, limit int64) (remotefs.File, error) {
	for attempt := 1; ; attempt++ {
		l, err := d.behind(ctx, ref)
		if err != nil {
			return nil, err
		}
		switch {
		case l.entry == nil:
			return nil, notThere(l.blocked)
		case l.entry.IsLink() || l.entry.Type != wire.TypeFile:
			return nil, &fault.Error{Code: fault.FSNotRegularFile}
		case limit >= 0 && int64(l.entry.Size) > limit:
			return nil, &fault.Error{Code: fault.FSTooLarge}
		}
		f, same, err := d.download(ctx, l, limit)
		if err != nil {
			return nil, err
		}
		if same || attempt == readAttempts {
			return f, nil
		}
		f.Close()
	}
}

// behind gives what a ref leads to.
func (d *Driver) behind(ctx context.Context, ref remotefs.Ref) (looked, error) {
	l, err := d.lookAt(ctx, ref)
	if err != nil || !l.again {
		return l, err
	}
	l.entry, err = d.entry(ctx, l.key)
	return l, err
}

// download opens the content. same reports whether it is that of the entry, as
// far as length and second tell.
func (d *Driver) download(ctx context.Context, l looked, limit int64) (f *file, same bool, err error) {
	// A size of 0 may be a file of /proc, whose content only comes compressed.
	opts := wire.DownloadOptions{Gzip: l.entry.Size == 0}
	if limit >= 0 {
		opts.Max = limit + 1
	}
	ctx, cancel := context.WithCancel(ctx)
	var dl *wire.Download
	err = d.session.use(ctx, func(c *wire.Client) (err error) {
		dl, err = c.Download(ctx, l.key, opts)
		return err
	})
	if err != nil {
		cancel()
		if wire.StatusOf(err) == http.StatusBadRequest {
			return nil, false, &fault.Error{Code: fault.FSNotRegularFile, Err: err}
		}
		return nil, false, fileError(d.session.diagnose(err))
	}
	f = &file{session: d.session, key: l.key, info: infoOf(l.key, l.entry), body: dl.Body, cancel: cancel}
	return f, dl.Size < 0 || sameFile(l.entry, dl), nil
}

func sameFile(e *wire.EntryInfo, dl *wire.Download) bool {
	t, err := http.ParseTime(dl.LastModified)
	return dl.Size == int64(e.Size) && (err != nil || t.Equal(e.ModTime().Truncate(time.Second)))
}

func (f *file) Key() string          { return f.key }
func (f *file) Info() *remotefs.Info { return f.info }

// Read gives content; a connection that breaks is an error, after which the
// sandbox is looked at.
func (f *file) Read(p []byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	n, err := f.body.Read(p)
	f.got += int64(n)
	switch {
	case err == nil || err == io.EOF:
	case errors.Is(err, io.ErrUnexpectedEOF) && f.wasCut():
		err = io.EOF
	default:
		err = fileError(f.session.diagnose(err))
	}
	f.err = err
	return n, err
}

// wasCut reports whether the content ended before the length that was announced
// because somebody has shortened the file (remotefs.md 5).
func (f *file) wasCut() bool {
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	e, err := (&Driver{f.session}).statOne(ctx, f.key)
	return err == nil && int64(e.Size) < f.info.Size && int64(e.Size) <= f.got
}

// Close cancels what is under way.
func (f *file) Close() error {
	f.cancel()
	return f.body.Close()
}
