package remotefs

import (
	"context"
	"io"
)

// Driver is what a backend supplies; New builds the contract on it. A driver
// knows nothing of text, guards or messages: it moves bytes, names entries and
// publishes in one step.
//
// Methods may run at the same time. Errors are *fault.Error, or system errors
// (syscall.Errno, fs.ErrNotExist, …), which the core maps by remotefs.md 11.
// Paths are absolute and lexically clean. No method may cost more round trips
// than its comment says.
type Driver interface {
	// Facts is constant for the life of the driver.
	Facts() Facts

	// Canon gives the canonical form of path; missing components are kept
	// (remotefs.md 2.3).
	Canon(ctx context.Context, path string) (string, error)

	// Stat follows links. It gives the canonical path with the answer in one
	// round trip. Absent: info is nil.
	Stat(ctx context.Context, ref Ref) (key string, info *Info, err error)

	// Lstat does not follow the last component. Absent: nil.
	Lstat(ctx context.Context, path string) (*Info, error)

	// List gives the entries in any order, "." and ".." left out, each with
	// what a Stat that follows links would say. It fails with FS_NOT_FOUND or
	// FS_NOT_DIRECTORY. Round trips do not depend on the number of entries.
	List(ctx context.Context, ref Ref) (key string, entries []Entry, err error)

	// Open opens a regular file for reading from its start, and never blocks on
	// one that is not: FS_NOT_FOUND, FS_NOT_REGULAR_FILE. The file's Info is
	// that of the opened file. If limit is not negative and the size is larger,
	// no content is requested and FS_TOO_LARGE is returned.
	Open(ctx context.Context, ref Ref, limit int64) (File, error)

	// Stage makes a private staging object from which key can be published in
	// one step, and the missing parents of key.
	Stage(ctx context.Context, key string, opts StageOptions) (Stage, error)
}

// Facts are what the conformance suite and the core must know of a backend.
type Facts struct {
	// Backend is the name in a profile.
	Backend string
	// Cwd is the world's default directory, absolute.
	Cwd string
	// FollowsDangling: a dangling link has the identity of its missing referent
	// (flavour R of remotefs.md 2.3); otherwise its own (flavour L).
	FollowsDangling bool
	// WeakVersions: a change that keeps size and the second of its time is not
	// seen by the version token; guards then also compare content.
	WeakVersions bool
	// NewFileMode is the mode of new files; -1 = 0666 minus the world's umask.
	NewFileMode int
}

// Ref is a path. Canonical says that it is a key already: links in it are not
// resolved again.
type Ref struct {
	Path      string
	Canonical bool
}

// Entry is one name of a listing. Info nil: the entry dangles or vanished. Key
// is the canonical path of the referent, or of the entry where there is none.
type Entry struct {
	Name string // raw bytes
	Key  string
	Info *Info
}

// File is an open file. Read gives raw bytes. Close cancels what is under way.
type File interface {
	io.ReadCloser
	// Key is the canonical path of the opened file.
	Key() string
	// Info is that of the opened file at opening.
	Info() *Info
}

// StageOptions describe the file to be.
type StageOptions struct {
	// Size is the number of bytes to come, or -1.
	Size int64
	// Mode to publish with; -1: that of Replaces, else the world's default.
	Mode int
	// Replaces is the file that is to be replaced, or nil. Its permission bits,
	// and where the world lets us its owner, ACL and extended attributes, are
	// carried over.
	Replaces *Info
}

// Stage is a staging object. It takes content, then is sealed, then published,
// then discarded, in this order; Discard comes last in every case and may come
// at any time before.
type Stage interface {
	io.Writer
	// Seal flushes the content to disk and sets mode and owner. After it the
	// published file will be whole whatever happens.
	Seal(ctx context.Context) error
	// Publish makes the content visible under the key in one step. It has no
	// context: nothing may cancel it.
	Publish(opts PublishOptions) (version string, err error)
	// Discard removes what is left. It is safe to call twice.
	Discard() error
}

// PublishOptions say what may be replaced.
type PublishOptions struct {
	// NoReplace fails with FS_NOT_OBSERVED or FS_NOT_REGULAR_FILE if anything
	// has the name, and never replaces it.
	NoReplace bool
	// Guard, if not "", is compared with the version of the entry right before
	// the step (S-11): FS_STALE_VERSION if it differs.
	Guard string
}

// Writer is the ability of a driver to do a whole write in fewer round trips
// than stat, stage and publish take. The core checks text and holds the lock;
// the driver applies intent and guard and publishes only after Content has
// ended with Size bytes.
type Writer interface {
	Write(ctx context.Context, ref Ref, w WriteRequest) (WriteResult, error)
}

// WriteResult is what Writer gives.
type WriteResult struct {
	Key       string
	Operation Operation
	Version   string
	Bytes     int64
}
