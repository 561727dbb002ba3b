package ssh

import (
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"io/fs"

	"github.com/pkg/sftp"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// Open opens a regular file. The type is looked at before, because an open may
// block on a FIFO.
func (d *sftpFiles) Open(ctx context.Context, ref remotefs.Ref, limit int64) (remotefs.File, error) {
	key, info, err := d.Stat(ctx, ref)
	switch {
	case err != nil:
		return nil, err
	case info == nil:
		return nil, &fault.Error{Code: fault.FSNotFound, Err: fs.ErrNotExist}
	case info.Type != remotefs.TypeFile:
		return nil, &fault.Error{Code: fault.FSNotRegularFile}
	case limit >= 0 && info.Size > limit:
		return nil, &fault.Error{Code: fault.FSTooLarge}
	}
	f, err := do(ctx, d, "open", func() (*sftp.File, error) { return d.client.Open(key) })
	if err != nil {
		return nil, err
	}
	r, w := io.Pipe()
	go func() {
		_, err := f.WriteTo(w)
		w.CloseWithError(sftpError(err))
	}()
	stop := context.AfterFunc(ctx, func() { r.CloseWithError(context.Cause(ctx)) })
	return &sftpFile{PipeReader: r, file: f, key: key, info: info, stop: stop, sum: sha256.New(), seen: d.seen}, nil
}

// sftpFile is a file that is being read, with many requests in flight.
type sftpFile struct {
	*io.PipeReader
	file *sftp.File
	key  string
	info *remotefs.Info
	stop func() bool
	sum  hash.Hash
	seen *seen
}

// Read gives content. What was read to its end is remembered beside the token.
func (f *sftpFile) Read(p []byte) (int, error) {
	n, err := f.PipeReader.Read(p)
	f.sum.Write(p[:n])
	if errors.Is(err, io.EOF) {
		f.seen.note(f.key, f.info.Version, f.sum)
	}
	return n, err
}

func (f *sftpFile) Key() string          { return f.key }
func (f *sftpFile) Info() *remotefs.Info { return f.info }

func (f *sftpFile) Close() error {
	f.stop()
	f.PipeReader.Close()
	return f.file.Close()
}
