package remotefs

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
)

// Arranger is the ability to make, move, copy and remove entries, and to look
// through a whole tree at once. A driver may offer it; worlds with processes
// have it through a shell program (package tree).
//
// Paths are keys: absolute and clean, with every component but the last
// resolved. Unless a comment says otherwise the last component is the entry
// itself and is not followed. Errors are those of a Driver; EEXIST says that
// something has the name, EISDIR that a directory is in the way. Methods may run
// at the same time. When ctx ends, what is under way may be done in part, except
// for what is published in one step.
type Arranger interface {
	// Mkdir makes a directory of this mode; -1 is 0777 minus the world's umask.
	// With parents what is missing above is made, too, and a directory that is
	// there already is no error: made is then false.
	Mkdir(ctx context.Context, path string, mode int, parents bool) (made bool, err error)
	// Remove removes an entry, with recursive a whole directory. It refuses the
	// root, the home directory and what holds it with FS_PERMISSION_DENIED.
	Remove(ctx context.Context, path string, recursive bool) error
	// Move renames in one step. With noReplace nothing that has the name is ever
	// replaced; without it a file or link is, a directory is not.
	Move(ctx context.Context, from, to string, noReplace bool) error
	// Copy makes a copy with mode and times, staged beside the target and
	// published in one step. A directory is copied with everything in it, links
	// as links, and replaces nothing; a file replaces a file unless noReplace.
	Copy(ctx context.Context, from, to string, noReplace bool) error
	// Chmod sets permission bits, links followed; with recursive those of
	// everything below, links left alone.
	Chmod(ctx context.Context, path string, mode int, recursive bool) error
	// Link makes a symbolic link that holds text, which is not looked at.
	Link(ctx context.Context, text, path string) error
	// Touch sets the time of modification, links followed, and makes an empty
	// file where nothing is unless exist is set. The zero time is the world's now.
	Touch(ctx context.Context, path string, at time.Time, exist bool) (made bool, err error)
	// Walk visits everything below a directory in no certain order, a directory
	// before what is in it; links are not followed. Staging folders of afield are
	// left out. It fails with FS_NOT_FOUND or FS_NOT_DIRECTORY, and with visit's
	// error. What could not be looked at is visited as a Node with Err.
	Walk(ctx context.Context, path string, opts WalkOptions, visit func(Node) error) error
}

// WalkOptions bound a walk.
type WalkOptions struct {
	// Depth is how many levels are visited; 0 = all.
	Depth int
	// Skip are names of entries that are left out with all that is below them.
	Skip []string
	// Names asks for Path and Type alone, which is cheaper.
	Names bool
}

// Node is an entry that a walk found.
type Node struct {
	Path    string // below the root of the walk, raw bytes
	Type    Type
	Size    int64 // of a regular file's content
	Mode    int   // permission bits & 07777
	ModTime time.Time
	Link    string // text of a symbolic link
	// State changes when content or identity do: inode, size and times.
	State string
	Err   error
}

// StageName is the beginning of the names of staging folders, StageEnd their end.
const (
	StageName = ".afield-"
	StageEnd  = ".tmp"
)

// ArrangerOf gives the ability of the driver below files, or nil.
func ArrangerOf(files FS) Arranger {
	if c, ok := files.(*core); ok {
		if a, ok := c.driver.(Arranger); ok {
			return a
		}
	}
	return nil
}

// Explain gives the error of an operation on display its code and words:
// FS_ABORTED if ctx has ended, else by the table of remotefs.md 11. Of a change
// of names, FS_NOT_OBSERVED says that something has the name, and
// FS_NOT_REGULAR_FILE that a directory is in the way or is not empty.
func Explain(ctx context.Context, err error, op, display string) error {
	if err == nil {
		return nil
	}
	if ctx.Err() == nil && fault.CodeOf(err) == "" {
		switch {
		case errors.Is(err, syscall.EEXIST):
			return fault.Wrap(err, fault.FSNotObserved, op, display, "cannot %s %q: something has this name", op, display).
				WithHint("choose another name, or remove what is there")
		case errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ENOTEMPTY):
			return fault.Wrap(err, fault.FSNotRegularFile, op, display, "cannot %s %q: a directory is in the way", op, display)
		}
	}
	return failure(ctx, err, op, display)
}
