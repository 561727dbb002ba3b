package local

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// Publish renames the content to the key, or links it where nothing may be
// replaced. The version is that of the open file after its staged name is gone:
// linking and unlinking change the status time, so an earlier one would be stale
// at birth (S-8).
func (s *stage) Publish(opts remotefs.PublishOptions) (string, error) {
	if opts.Guard != "" {
		if err := unchanged(s.key, opts.Guard); err != nil {
			return "", err
		}
	}
	var err error
	if opts.NoReplace {
		err = s.link()
	} else {
		err = s.rename()
	}
	if err != nil {
		return "", err
	}
	st, err := fstat(s.file)
	s.flushFolders()
	if err != nil {
		return "", err
	}
	return version(st), nil
}

// unchanged compares the entry itself with a guard (S-11).
func unchanged(key, guard string) error {
	var st syscall.Stat_t
	err := retry(func() error { return syscall.Lstat(key, &st) })
	switch {
	case isAbsent(err):
		return &fault.Error{Code: fault.FSStaleVersion, Err: fs.ErrNotExist}
	case err != nil:
		return err
	case version(&st) != guard:
		return &fault.Error{Code: fault.FSStaleVersion}
	}
	return nil
}

// rename replaces what has the name. A directory there stays (S-12).
func (s *stage) rename() error {
	err := os.Rename(s.content(), s.key)
	var errno syscall.Errno
	switch errors.As(err, &errno); errno {
	case syscall.EISDIR, syscall.ENOTEMPTY, syscall.EEXIST:
		return &fault.Error{Code: fault.FSNotRegularFile, Err: err}
	}
	s.moved = err == nil
	return err
}

// link gives the content its name only where nothing has it. File systems
// without hard links have a rename that replaces nothing.
func (s *stage) link() error {
	link := os.Link
	if s.d.hooks.link != nil {
		link = s.d.hooks.link
	}
	err := link(s.content(), s.key)
	if withoutLinks(err) {
		if moved := renameNoReplace(s.content(), s.key); moved == nil || errors.Is(moved, fs.ErrExist) {
			s.moved, err = moved == nil, moved
		}
	}
	if err != nil {
		return s.refused(err)
	}
	if !s.moved {
		// The name is gone or, if that fails, the link count stays: the version
		// is taken after this in both cases.
		s.moved = s.remove(s.content()) == nil
	}
	return nil
}

func withoutLinks(err error) bool {
	return errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EOPNOTSUPP) ||
		errors.Is(err, syscall.ENOSYS) || errors.Is(err, syscall.EMLINK)
}

// refused says why nothing was published, by what has the name now.
func (s *stage) refused(err error) error {
	if s.d.hooks.inspect != nil {
		if err := s.d.hooks.inspect(s.key); err != nil {
			return &fault.Error{Code: fault.FSIOError, Err: err}
		}
	}
	var st syscall.Stat_t
	look := retry(func() error { return syscall.Lstat(s.key, &st) })
	switch {
	case look == nil && kind(&st) == remotefs.TypeFile:
		return &fault.Error{Code: fault.FSNotObserved, Err: err}
	case look == nil:
		return &fault.Error{Code: fault.FSNotRegularFile, Err: err}
	case !isAbsent(look):
		return &fault.Error{Code: fault.FSIOError, Err: look}
	case errors.Is(err, fs.ErrExist):
		return &fault.Error{Code: fault.FSNotObserved, Err: err}
	}
	return &fault.Error{Code: fault.FSIOError, Err: err}
}

// flushFolders makes the new name last. It comes after the commit point, so a
// failure is no failure of the write.
func (s *stage) flushFolders() {
	flushFolder(filepath.Dir(s.key))
	for _, dir := range s.made {
		flushFolder(filepath.Dir(dir))
	}
}

func flushFolder(dir string) {
	f, err := os.Open(dir)
	if err != nil {
		return
	}
	defer f.Close()
	_ = f.Sync()
}
