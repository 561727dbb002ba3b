package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"syscall"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// sftpFiles are the files of a host that gives no shell. The protocol's version 3
// has times in whole seconds, no inode and no ctime, so the version tokens are
// weak, which Facts says.
type sftpFiles struct {
	client  *sftp.Client
	packets *packets // beside the client, on the same channel
	hub     *hub
	home    string
	seen    *seen
	facts   remotefs.Facts
}

var (
	_ remotefs.Driver = (*sftpFiles)(nil)
	_ remotefs.Stager = (*sftpFiles)(nil)
)

// newSFTPFiles opens the SFTP subsystem.
func newSFTPFiles(ctx context.Context, h *hub) (*sftpFiles, error) {
	s, err := h.session(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, s.close)
	defer stop()
	fail := func(err error) error {
		s.close()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fault.Wrap(err, fault.BackendUnsupported, "connect", h.dialer.settings.Alias,
			"%s gives neither a shell that runs a command nor the SFTP subsystem", h.dialer.settings.Alias).
			WithHint("try: ssh %s true", h.dialer.settings.Alias)
	}
	go io.Copy(&s.stderr, s.Stderr())
	ok, err := s.SendRequest("subsystem", true, ssh.Marshal(struct{ Name string }{"sftp"}))
	if err == nil && !ok {
		err = errors.New("the subsystem is refused")
	}
	if err != nil {
		return nil, fail(err)
	}
	h.trace("sftp", 2, 0) // the subsystem, and the versions
	packets := newPackets(s)
	client, err := sftp.NewClientPipe(packets, packets, sftp.UseConcurrentReads(true), sftp.UseConcurrentWrites(true))
	if err != nil {
		return nil, fail(err)
	}
	h.trace("home", 1, 0)
	home, err := client.RealPath(".")
	if err != nil {
		client.Close()
		return nil, fail(err)
	}
	return &sftpFiles{client: client, packets: packets, hub: h, home: home, seen: newSeen(state{}, "")}, nil
}

// Facts are those of the protocol.
func (d *sftpFiles) Facts() remotefs.Facts { return d.facts }

// do runs one call of the library, which is one round trip.
func do[T any](ctx context.Context, d *sftpFiles, step string, f func() (T, error)) (T, error) {
	d.hub.trace(step, 1, 0)
	return call(ctx, f)
}

// call runs a call of the library, which knows no cancellation; a late answer is
// dropped.
func call[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type answer struct {
		v   T
		err error
	}
	got := make(chan answer, 1)
	go func() {
		v, err := f()
		got <- answer{v, err}
	}()
	select {
	case a := <-got:
		return a.v, sftpError(a.err)
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// sftpError makes the protocol's errors system errors.
func sftpError(err error) error {
	var status *sftp.StatusError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sftp.ErrSSHFxConnectionLost), errors.Is(err, io.ErrUnexpectedEOF):
		return &fault.Error{Code: fault.FSIOError, Retry: fault.RetrySafe, Err: err, Message: "the connection was lost"}
	case !errors.As(err, &status):
		return err
	}
	switch status.FxCode() {
	case sftp.ErrSSHFxNoSuchFile:
		return fs.ErrNotExist
	case sftp.ErrSSHFxPermissionDenied:
		return fs.ErrPermission
	}
	return err
}

// Canon follows links; missing components are kept.
func (d *sftpFiles) Canon(ctx context.Context, p string) (string, error) {
	key, _, err := d.walk(ctx, p)
	return key, err
}

// Stat follows links.
func (d *sftpFiles) Stat(ctx context.Context, ref remotefs.Ref) (string, *remotefs.Info, error) {
	if ref.Canonical {
		st, err := d.lstat(ctx, ref.Path)
		if err != nil || st == nil || !isLink(st) {
			return ref.Path, weakInfo(st), err
		}
	}
	key, st, err := d.walk(ctx, ref.Path)
	if errors.Is(err, syscall.ENOTDIR) {
		return ref.Path, nil, nil
	}
	if err != nil {
		return ref.Path, nil, err
	}
	return key, weakInfo(st), nil
}

// Lstat does not follow the last component.
func (d *sftpFiles) Lstat(ctx context.Context, p string) (string, *remotefs.Info, error) {
	dir, _, err := d.walk(ctx, path.Dir(p))
	if errors.Is(err, syscall.ENOTDIR) {
		return p, nil, nil
	}
	if err != nil {
		return p, nil, err
	}
	key := path.Join(dir, path.Base(p))
	st, err := d.lstat(ctx, key)
	if err != nil || st == nil {
		return key, nil, err
	}
	i := weakInfo(st)
	if i.Type == remotefs.TypeSymlink {
		i.LinkTarget, _ = do(ctx, d, "readlink", func() (string, error) { return d.client.ReadLink(key) })
	}
	return key, i, nil
}

// weakInfo gives what the protocol tells; the token holds all of it. Nil stays
// nil.
func weakInfo(st *sftp.FileStat) *remotefs.Info {
	if st == nil {
		return nil
	}
	i := &remotefs.Info{Type: remotefs.TypeOther, Size: -1, ModTime: time.Unix(int64(st.Mtime), 0).UTC(),
		Mode: int(st.Mode & 0o7777), Owner: fmt.Sprint(st.UID), Group: fmt.Sprint(st.GID)}
	switch st.Mode & syscall.S_IFMT {
	case syscall.S_IFREG, 0: // a server may leave the type out
		i.Type, i.Size = remotefs.TypeFile, int64(st.Size)
	case syscall.S_IFDIR:
		i.Type = remotefs.TypeDirectory
	case syscall.S_IFLNK:
		i.Type, i.Size = remotefs.TypeSymlink, int64(st.Size)
	}
	i.Version = fmt.Sprintf("w:%d:%d:%o:%d:%d", st.Size, st.Mtime, st.Mode, st.UID, st.GID)
	return i
}
