package plugin

import (
	"context"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// copyDirectory copies a plugin from a directory by the rules of an archive
// (U-9). Links are refused even if they stay inside.
func copyDirectory(ctx context.Context, from, to *os.Root, lim Limits) (Tree, error) {
	w := treeWriter{root: to, lim: lim}
	count := 0
	err := fs.WalkDir(from.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return ioFault(err, "read", path)
		case ctx.Err() != nil:
			return aborted(ctx, "copy")
		case path == ".":
			return nil
		case isLeftOut(path) && d.IsDir():
			return fs.SkipDir
		case isLeftOut(path):
			return nil
		}
		if count++; count > lim.Members {
			return tooLarge("it has more than %d members", lim.Members)
		}
		if reason := checkPath(path); reason != "" {
			return invalidMember(path, "%s", reason)
		}
		switch {
		case d.IsDir():
			return w.dir(path)
		case d.Type().IsRegular():
			return copyFile(from, path, &w)
		default:
			return invalidMember(path, "it is neither a file nor a directory")
		}
	})
	if err != nil {
		return Tree{}, err
	}
	return w.finish()
}

// isLeftOut names what a working copy holds and a plugin does not.
func isLeftOut(path string) bool {
	return path == ".git" || path == "node_modules/.cache" || path == ".DS_Store" || strings.HasSuffix(path, "/.DS_Store")
}

// copyFile copies one file, which must not change meanwhile.
func copyFile(from *os.Root, path string, w *treeWriter) error {
	f, err := from.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return ioFault(err, "read", path)
	}
	defer f.Close()
	before, err := f.Stat()
	if err != nil {
		return ioFault(err, "read", path)
	}
	if !before.Mode().IsRegular() {
		return invalidMember(path, "it is neither a file nor a directory")
	}
	if err := w.file(path, before.Mode()&0o111 != 0, before.Size(), f); err != nil {
		return err
	}
	after, err := f.Stat()
	if err != nil {
		return ioFault(err, "read", path)
	}
	if after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime()) {
		return invalidMember(path, "it changed while it was copied")
	}
	return nil
}
