package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/afield-dev/afield/pkg/remotefs"
)

// Driver is the files half: it implements remotefs.Driver, Stager and InPlacer.
type Driver struct {
	cwd   string
	names *accounts
	hooks hooks
}

// hooks let a test act between two steps of a call. Each may be nil.
type hooks struct {
	beforeOpen  func()                     // Open: between stat and open
	beforeProbe func()                     // List: between the names and what is said of them
	stageName   func() string              // Stage: the staging directory's name
	link        func(old, to string) error // Publish: instead of link(2)
	inspect     func(path string) error    // Publish: before the look at a refused name
	remove      func(path string) error    // Discard: instead of removing
}

// NewDriver makes the driver. cwd is the default directory, absolute.
func NewDriver(cwd string) *Driver { return &Driver{cwd: cwd, names: &accounts{}} }

// Facts gives what is true of this machine.
func (d *Driver) Facts() remotefs.Facts {
	return remotefs.Facts{Backend: "local", Cwd: d.cwd}
}

// Canon gives the physical path; of a missing file the nearest ancestor's with
// the rest appended. A dangling link counts as missing (remotefs.md 2.3, L).
func (d *Driver) Canon(_ context.Context, path string) (string, error) { return canon(path) }

func canon(path string) (string, error) {
	physical, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) || path == "/" {
		return physical, err
	}
	parent, err := canon(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	return filepath.Join(parent, filepath.Base(path)), nil
}

// Stat follows links.
func (d *Driver) Stat(_ context.Context, ref remotefs.Ref) (string, *remotefs.Info, error) {
	key, st, err := d.stat(ref)
	if err != nil {
		return absent(ref.Path, err)
	}
	return key, d.named(st), nil
}

// stat gives the key and the facts of ref.
func (d *Driver) stat(ref remotefs.Ref) (string, *syscall.Stat_t, error) {
	key := ref.Path
	if !ref.Canonical {
		var err error
		if key, err = canon(key); err != nil {
			return "", nil, err
		}
	}
	var st syscall.Stat_t
	if err := retry(func() error { return syscall.Stat(key, &st) }); err != nil {
		return key, nil, err
	}
	return key, &st, nil
}

// Lstat does not follow the last component.
func (d *Driver) Lstat(_ context.Context, path string) (string, *remotefs.Info, error) {
	parent, err := canon(filepath.Dir(path))
	if err != nil {
		return absent(path, err)
	}
	key := filepath.Join(parent, filepath.Base(path))
	var st syscall.Stat_t
	if err := retry(func() error { return syscall.Lstat(key, &st) }); err != nil {
		return absent(key, err)
	}
	info := d.named(&st)
	if info.Type == remotefs.TypeSymlink {
		info.LinkTarget, _ = os.Readlink(key)
	}
	return key, info, nil
}

// absent turns "not there" into an answer (remotefs.md 3).
func absent(key string, err error) (string, *remotefs.Info, error) {
	if isAbsent(err) {
		return key, nil, nil
	}
	return key, nil, err
}

func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// retry repeats a call that a signal interrupted.
func retry(call func() error) error {
	for {
		if err := call(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
