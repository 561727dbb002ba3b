package ssh

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io/fs"
	"os"
	"path"

	"github.com/pkg/sftp"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
	"github.com/afield-dev/afield/pkg/script"
)

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
		s := &sftpStage{files: d, key: key, folder: folder, path: folder + "/content", opts: opts, sum: sha256.New()}
		err := d.client.Chmod(folder, 0o700)
		if err == nil {
			err = s.create()
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
	sum          hash.Hash
	made         int // the mode of new files
}

// create makes the file, closed to others until it has its own mode. The mode that
// the server gave it is that of new files there.
func (s *sftpStage) create() (err error) {
	if s.file, err = s.files.client.OpenFile(s.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL); err != nil {
		return err
	}
	st, err := s.file.Stat()
	if err != nil {
		return err
	}
	s.made = int(st.Mode().Perm())
	return s.file.Chmod(0o600)
}

func (s *sftpStage) Write(p []byte) (int, error) {
	n, err := s.file.Write(p)
	s.sum.Write(p[:n])
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
	if mode < 0 {
		mode = s.made
	}
	if err := s.file.Chmod(os.FileMode(mode)); err != nil {
		return sftpError(err)
	}
	return sftpError(s.file.Close())
}

// Publish makes the content visible: by a hard link, which replaces nothing, or
// by the rename that replaces. A server without these extensions cannot do so in
// one step.
func (s *sftpStage) Publish(opts remotefs.PublishOptions) (string, error) {
	c := s.files.client
	if opts.Guard != "" {
		if err := s.compare(opts.Guard); err != nil {
			return "", err
		}
	}
	st, err := s.files.look(context.Background(), s.path)
	if err == nil && st == nil {
		err = fs.ErrNotExist
	}
	if err != nil {
		return "", err
	}
	if opts.NoReplace {
		err = s.link()
	} else {
		err = s.rename(c)
	}
	version := weakInfo(st).Version
	if err == nil {
		s.files.seen.note(s.key, version, s.sum)
	}
	return version, err
}

// compare looks whether what is to be replaced still has the version of the
// guard, and the content that was seen with it, because the version alone does
// not tell (design.md 4.21).
func (s *sftpStage) compare(guard string) error {
	ctx := context.Background()
	st, err := s.files.look(ctx, s.key)
	if err != nil {
		return err
	}
	if st == nil || weakInfo(st).Version != guard {
		return &fault.Error{Code: fault.FSStaleVersion}
	}
	want := s.files.seen.digest(s.key, guard)
	if want == "" {
		return nil
	}
	f, err := s.files.client.Open(s.key)
	if err != nil {
		return sftpError(err)
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := f.WriteTo(sum); err != nil {
		return sftpError(err)
	}
	if hex.EncodeToString(sum.Sum(nil)) != want {
		return &fault.Error{Code: fault.FSStaleVersion}
	}
	return nil
}

func (s *sftpStage) rename(c *sftp.Client) error {
	if _, ok := c.HasExtension("posix-rename@openssh.com"); !ok {
		return fault.New(fault.BackendUnsupported, "write", s.key, "the SFTP server cannot replace a file in one step").
			WithHint("--if-absent makes new files; or allow a shell on the host")
	}
	if st, err := c.Lstat(s.key); err == nil && st.IsDir() {
		return &fault.Error{Code: fault.FSNotRegularFile}
	}
	return sftpError(c.PosixRename(s.path, s.key))
}

func (s *sftpStage) link() error {
	c := s.files.client
	if _, ok := c.HasExtension("hardlink@openssh.com"); !ok {
		return fault.New(fault.BackendUnsupported, "write", s.key, "the SFTP server cannot make a file without replacing another in one step").
			WithHint("allow a shell on the host, or its hardlink extension")
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
