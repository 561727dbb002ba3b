package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
	"syscall"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
	"github.com/afield-dev/afield/pkg/script"
)

// sftpFiles are the files of a host that gives no shell. The protocol's version 3
// has times in whole seconds, no inode and no ctime, so the version tokens are
// weak, which Facts says.
type sftpFiles struct {
	client *sftp.Client
	hub    *hub
	home   string
	facts  remotefs.Facts
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
	client, err := sftp.NewClientPipe(s, s, sftp.UseConcurrentReads(true), sftp.UseConcurrentWrites(true))
	if err != nil {
		return nil, fail(err)
	}
	home, err := client.RealPath(".")
	if err != nil {
		client.Close()
		return nil, fail(err)
	}
	return &sftpFiles{client: client, hub: h, home: home}, nil
}

// Facts are those of the protocol.
func (d *sftpFiles) Facts() remotefs.Facts { return d.facts }

// do runs one call of the library, which knows no cancellation; a late answer is
// dropped.
func do[T any](ctx context.Context, d *sftpFiles, step string, f func() (T, error)) (T, error) {
	type answer struct {
		v   T
		err error
	}
	got := make(chan answer, 1)
	d.hub.trace(step, 1, 0)
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

// Canon follows links component by component; missing ones are kept.
func (d *sftpFiles) Canon(ctx context.Context, p string) (string, error) {
	done, rest := "/", strings.Split(strings.Trim(p, "/"), "/")
	for hops := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			done = path.Dir(done)
			continue
		}
		next := path.Join(done, name)
		st, err := do(ctx, d, "lstat", func() (os.FileInfo, error) { return d.client.Lstat(next) })
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return d.missing(ctx, done, path.Join(append([]string{next}, rest...)...))
		case err != nil:
			return "", err
		case st.Mode()&fs.ModeSymlink == 0:
			done = next
			continue
		}
		if hops++; hops > 40 {
			return "", syscall.ELOOP
		}
		text, err := do(ctx, d, "readlink", func() (string, error) { return d.client.ReadLink(next) })
		if err != nil {
			return "", err
		}
		if path.IsAbs(text) {
			done = "/"
		}
		rest = append(strings.Split(text, "/"), rest...)
	}
	return done, nil
}

// missing gives whole, unless what should hold it is no directory.
func (d *sftpFiles) missing(ctx context.Context, parent, whole string) (string, error) {
	st, err := do(ctx, d, "stat", func() (os.FileInfo, error) { return d.client.Stat(parent) })
	if err == nil && !st.IsDir() {
		return "", syscall.ENOTDIR
	}
	return whole, nil
}

func (d *sftpFiles) key(ctx context.Context, ref remotefs.Ref) (string, error) {
	if ref.Canonical {
		return ref.Path, nil
	}
	return d.Canon(ctx, ref.Path)
}

// Stat follows links.
func (d *sftpFiles) Stat(ctx context.Context, ref remotefs.Ref) (string, *remotefs.Info, error) {
	key, err := d.key(ctx, ref)
	if errors.Is(err, syscall.ENOTDIR) {
		return ref.Path, nil, nil
	}
	if err != nil {
		return ref.Path, nil, err
	}
	st, err := do(ctx, d, "stat", func() (os.FileInfo, error) { return d.client.Stat(key) })
	if errors.Is(err, fs.ErrNotExist) {
		return key, nil, nil
	}
	if err != nil {
		return key, nil, err
	}
	return key, weakInfo(st), nil
}

// Lstat does not follow the last component.
func (d *sftpFiles) Lstat(ctx context.Context, p string) (string, *remotefs.Info, error) {
	dir, err := d.Canon(ctx, path.Dir(p))
	if errors.Is(err, syscall.ENOTDIR) {
		return p, nil, nil
	}
	if err != nil {
		return p, nil, err
	}
	key := path.Join(dir, path.Base(p))
	st, err := do(ctx, d, "lstat", func() (os.FileInfo, error) { return d.client.Lstat(key) })
	if errors.Is(err, fs.ErrNotExist) {
		return key, nil, nil
	}
	if err != nil {
		return key, nil, err
	}
	i := weakInfo(st)
	if i.Type == remotefs.TypeSymlink {
		i.LinkTarget, _ = do(ctx, d, "readlink", func() (string, error) { return d.client.ReadLink(key) })
	}
	return key, i, nil
}

// weakInfo gives what the protocol tells; the token holds all of it.
func weakInfo(st os.FileInfo) *remotefs.Info {
	i := &remotefs.Info{Type: remotefs.TypeOther, Size: -1, ModTime: st.ModTime().UTC(), Mode: int(st.Mode().Perm())}
	raw, _ := st.Sys().(*sftp.FileStat)
	if raw != nil {
		i.Mode = int(raw.Mode & 0o7777)
		i.Owner, i.Group = fmt.Sprint(raw.UID), fmt.Sprint(raw.GID)
	}
	switch {
	case st.Mode().IsRegular():
		i.Type, i.Size = remotefs.TypeFile, st.Size()
	case st.IsDir():
		i.Type = remotefs.TypeDirectory
	case st.Mode()&fs.ModeSymlink != 0:
		i.Type, i.Size = remotefs.TypeSymlink, st.Size()
	}
	i.Version = fmt.Sprintf("w:%d:%d:%o:%s:%s", st.Size(), st.ModTime().Unix(), uint32(st.Mode()), i.Owner, i.Group)
	return i
}

// List gives the entries; those that are links are looked at in one burst.
func (d *sftpFiles) List(ctx context.Context, ref remotefs.Ref) (string, []remotefs.Entry, error) {
	key, info, err := d.Stat(ctx, ref)
	switch {
	case err != nil:
		return key, nil, err
	case info == nil:
		return key, nil, &fault.Error{Code: fault.FSNotFound, Err: fs.ErrNotExist}
	case info.Type != remotefs.TypeDirectory:
		return key, nil, &fault.Error{Code: fault.FSNotDirectory}
	}
	list, err := do(ctx, d, "readdir", func() ([]os.FileInfo, error) { return d.client.ReadDirContext(ctx, key) })
	if err != nil {
		return key, nil, err
	}
	entries := make([]remotefs.Entry, 0, len(list))
	for _, st := range list {
		if st.Name() != "." && st.Name() != ".." {
			entries = append(entries, remotefs.Entry{Name: st.Name(), Key: path.Join(key, st.Name()), Info: weakInfo(st)})
		}
	}
	var burst sync.WaitGroup
	room := make(chan struct{}, 64)
	for i := range entries {
		if e := &entries[i]; e.Info.Type == remotefs.TypeSymlink {
			room <- struct{}{}
			burst.Go(func() {
				defer func() { <-room }()
				e.Key, e.Info, _ = d.referent(ctx, e.Key)
			})
		}
	}
	burst.Wait()
	return key, entries, nil
}

// referent is what a link of a listing leads to; nil for nowhere, and for a loop.
func (d *sftpFiles) referent(ctx context.Context, p string) (string, *remotefs.Info, error) {
	key, info, err := d.Stat(ctx, remotefs.Ref{Path: p})
	if err != nil {
		return p, nil, err
	}
	return key, info, nil
}

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
	return &sftpFile{PipeReader: r, file: f, key: key, info: info, stop: stop}, nil
}

// sftpFile is a file that is being read, with many requests in flight.
type sftpFile struct {
	*io.PipeReader
	file *sftp.File
	key  string
	info *remotefs.Info
	stop func() bool
}

func (f *sftpFile) Key() string          { return f.key }
func (f *sftpFile) Info() *remotefs.Info { return f.info }

func (f *sftpFile) Close() error {
	f.stop()
	f.PipeReader.Close()
	return f.file.Close()
}

// Stage makes a private folder beside key and a file in it.
func (d *sftpFiles) Stage(ctx context.Context, key string, opts remotefs.StageOptions) (remotefs.Stage, error) {
	return do(ctx, d, "stage", func() (remotefs.Stage, error) {
		if err := d.client.MkdirAll(path.Dir(key)); err != nil {
			return nil, err
		}
		folder := script.Folder(key, script.NewNonce())
		if err := d.client.Mkdir(folder); err != nil {
			return nil, err
		}
		s := &sftpStage{files: d, key: key, folder: folder, path: folder + "/content", opts: opts}
		err := d.client.Chmod(folder, 0o700)
		if err == nil {
			s.file, err = d.client.OpenFile(s.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
		}
		if err != nil {
			s.Discard()
			return nil, err
		}
		return s, nil
	})
}

// sftpStage is content on its way.
type sftpStage struct {
	files        *sftpFiles
	key          string
	folder, path string
	file         *sftp.File
	opts         remotefs.StageOptions
	published    bool
}

func (s *sftpStage) Write(p []byte) (int, error) {
	n, err := s.file.Write(p)
	return n, sftpError(err)
}

// Seal flushes where the server can, and sets the mode.
func (s *sftpStage) Seal(context.Context) error {
	mode := s.opts.Mode
	if mode < 0 && s.opts.Replaces != nil && s.opts.Replaces.Mode >= 0 {
		mode = s.opts.Replaces.Mode & 0o777
	}
	if _, ok := s.files.client.HasExtension("fsync@openssh.com"); ok {
		if err := s.file.Sync(); err != nil {
			return sftpError(err)
		}
	}
	if mode >= 0 {
		if err := s.file.Chmod(os.FileMode(mode)); err != nil {
			return sftpError(err)
		}
	}
	return sftpError(s.file.Close())
}

// Publish makes the content visible: by a hard link, which replaces nothing, or
// by the rename that replaces. A server without these extensions cannot do so in
// one step.
func (s *sftpStage) Publish(opts remotefs.PublishOptions) (string, error) {
	c := s.files.client
	if opts.Guard != "" {
		st, err := c.Stat(s.key)
		if err != nil || weakInfo(st).Version != opts.Guard {
			return "", &fault.Error{Code: fault.FSStaleVersion, Err: sftpError(err)}
		}
	}
	st, err := c.Stat(s.path)
	if err != nil {
		return "", sftpError(err)
	}
	version := weakInfo(st).Version
	if opts.NoReplace {
		return version, s.link()
	}
	if _, ok := c.HasExtension("posix-rename@openssh.com"); !ok {
		return "", fault.New(fault.BackendUnsupported, "write", s.key, "the SFTP server cannot replace a file in one step")
	}
	if st, err := c.Lstat(s.key); err == nil && st.IsDir() {
		return "", &fault.Error{Code: fault.FSNotRegularFile}
	}
	return version, sftpError(c.PosixRename(s.path, s.key))
}

func (s *sftpStage) link() error {
	c := s.files.client
	if _, ok := c.HasExtension("hardlink@openssh.com"); !ok {
		return fault.New(fault.BackendUnsupported, "write", s.key, "the SFTP server cannot make a file without replacing another in one step")
	}
	err := c.Link(s.path, s.key)
	if err == nil {
		return nil
	}
	if st, look := c.Lstat(s.key); look == nil {
		if st.Mode().IsRegular() {
			return &fault.Error{Code: fault.FSNotObserved}
		}
		return &fault.Error{Code: fault.FSNotRegularFile}
	}
	return &fault.Error{Code: fault.FSIOError, Err: err}
}

// Discard removes the staged file and its folder.
func (s *sftpStage) Discard() error {
	if s.file != nil {
		s.file.Close()
	}
	s.files.client.Remove(s.path)
	err := s.files.client.RemoveDirectory(s.folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return sftpError(err)
}
