package ssh

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/pkg/sftp"
)

// maxLinks is how many links are followed on one way, as Linux does.
const maxLinks = 40

// walk follows the links of p and gives the canonical path, missing components
// kept, and the facts of what is there; nil for nothing. Components are looked at
// in one burst, so a way without links takes one round trip. What should hold
// something and is no directory is ENOTDIR.
func (d *sftpFiles) walk(ctx context.Context, p string) (string, *sftp.FileStat, error) {
	done, at, rest := "/", &sftp.FileStat{Mode: syscall.S_IFDIR}, split(p)
	for hops := 0; len(rest) > 0; {
		if rest[0] == ".." {
			done, at, rest = path.Dir(done), &sftp.FileStat{Mode: syscall.S_IFDIR}, rest[1:]
			continue
		}
		run := rest
		if i := slices.Index(rest, ".."); i > 0 {
			run = rest[:i]
		}
		n, st, err := d.stride(ctx, done, at, run)
		if err != nil {
			return "", nil, err
		}
		next := path.Join(done, path.Join(run[:n]...))
		switch {
		case st == nil:
			return path.Join(append([]string{next}, rest[n:]...)...), nil, nil
		case !isLink(st):
			done, at, rest = next, st, rest[n:]
			continue
		}
		if hops++; hops > maxLinks {
			return "", nil, syscall.ELOOP
		}
		text, err := do(ctx, d, "readlink", func() (string, error) { return d.client.ReadLink(next) })
		if err != nil {
			return "", nil, err
		}
		if done = path.Dir(next); path.IsAbs(text) {
			done = "/"
		}
		at, rest = &sftp.FileStat{Mode: syscall.S_IFDIR}, append(split(text), rest[n:]...)
	}
	if done == "/" {
		st, err := d.lstat(ctx, done)
		return done, st, err
	}
	return done, at, nil
}

// split gives the components of a path.
func split(p string) []string {
	return slices.DeleteFunc(strings.Split(p, "/"), func(c string) bool { return c == "" || c == "." })
}

// stride looks at the components of run below dir, which is what at says, and
// gives how many lead to the first link, to the first that is missing (facts nil),
// or to the last.
func (d *sftpFiles) stride(ctx context.Context, dir string, at *sftp.FileStat, run []string) (int, *sftp.FileStat, error) {
	facts, errs := make([]*sftp.FileStat, len(run)), make([]error, len(run))
	d.hub.trace("lstat", 1, 0)
	var burst sync.WaitGroup
	for i := range run {
		name := path.Join(dir, path.Join(run[:i+1]...))
		burst.Go(func() { facts[i], errs[i] = d.look(ctx, name) })
	}
	burst.Wait()
	for i, st := range facts {
		switch {
		case !isDir(at):
			return 0, nil, syscall.ENOTDIR
		case errs[i] != nil:
			return 0, nil, errs[i]
		case st == nil, isLink(st):
			return i + 1, st, nil
		}
		at = st
	}
	return len(run), at, nil
}

func isDir(st *sftp.FileStat) bool { return st.Mode&syscall.S_IFMT == syscall.S_IFDIR }

func isLink(st *sftp.FileStat) bool { return st.Mode&syscall.S_IFMT == syscall.S_IFLNK }

// lstat gives the facts of an entry itself; nil for nothing.
func (d *sftpFiles) lstat(ctx context.Context, name string) (*sftp.FileStat, error) {
	d.hub.trace("lstat", 1, 0)
	return d.look(ctx, name)
}

func (d *sftpFiles) look(ctx context.Context, name string) (*sftp.FileStat, error) {
	st, err := call(ctx, func() (os.FileInfo, error) { return d.client.Lstat(name) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return st.Sys().(*sftp.FileStat), nil
}
