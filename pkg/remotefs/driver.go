package remotefs

import (
	"context"
	"io"
)

// Driver is what a backend supplies; New builds the contract on it. A driver
// knows nothing of text, guards or messages: it moves bytes and names entries.
// How it changes files is one of two optional abilities: Stager, which the core
// turns into writes step by step, or Writer, which does a whole guarded write
// in fewer round trips and is preferred. InPlacer may come on top. A driver
// with neither serves a world that can only be read.
//
// Methods may run at the same time. Errors are *fault.Error, or system errors
// (syscall.Errno, fs.ErrNotExist, …), which the core maps by remotefs.md 11. A
// *fault.Error without a message gets the contract's words, with the path as
// the caller named it; so &fault.Error{Code: fault.FSStaleVersion} is enough,
// and with Err: fs.ErrNotExist it says that the file no longer exists.
//
// Paths are absolute and lexically clean. No method may cost more round trips
// than its comment says.
type Driver interface {
	// Facts is constant for the life of the driver.
	Facts() Facts

	// Canon gives the canonical form of path; missing components are kept
	// (remotefs.md 2.3). A component in the middle that is not a directory is
	// ENOTDIR.
	Canon(ctx context.Context, path string) (string, error)

	// Stat follows links. It gives the canonical path with the answer in one
	// round trip. Absent, also below something that is not a directory: info is
	// nil, and key is the best that is known, at least ref.Path.
	Stat(ctx context.Context, ref Ref) (key string, info *Info, err error)

	// Lstat does not follow the last component. The key is that of the entry
	// itself: the canonical path of its parent and its own name. Absent: info
	// is nil.
	Lstat(ctx context.Context, path string) (key string, info *Info, err error)

	// List gives the entries in any order, "." and ".." left out, each with
	// what a Stat that follows links would say. It fails with FS_NOT_FOUND or
	// FS_NOT_DIRECTORY. Round trips do not depend on the number of entries.
	List(ctx context.Context, ref Ref) (key string, entries []Entry, err error)

	// Open opens a regular file for reading from its start, and never blocks on
	// one that is not: FS_NOT_FOUND, FS_NOT_REGULAR_FILE. The file's Info is
	// that of the opened file. If limit is not negative and the size is larger,
	// no content is requested and FS_TOO_LARGE is returned, even if the file
	// could not be opened.
	Open(ctx context.Context, ref Ref, limit int64) (File, error)
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
	// IgnoresModes: the world's file service acts with the rights of root, so
	// permission bits do not refuse anything (e2b.md 14.9).
	IgnoresModes bool
	// StagesApart: staging happens in a private folder of the world and not
	// beside the target (e2b.md 14.4).
	StagesApart bool
	// LosesOwner: replacing a file does not keep its owner, access control list
	// and extended attributes.
	LosesOwner bool
	// TextNames: names that are not valid UTF-8 can be listed, not addressed.
	TextNames bool
}

// Ref is a path. Canonical says that it is a key already, which need not be
// resolved again.
type Ref struct {
	Path      string
	Canonical bool
}

// Entry is one name of a listing. Info nil: the entry dangles or vanished. Key
// is the canonical path of the referent, or of the entry where there is none.
// Err, if set, is why nothing can be said of the entry; it fails the listing,
// with the entry named.
type Entry struct {
	Name string // raw bytes
	Key  string
	Info *Info
	Err  error
}

// File is an open file. Read gives raw bytes. Close cancels what is under way
// and is called once.
type File interface {
	io.ReadCloser
	// Key is the canonical path of the opened file.
	Key() string
	// Info is that of the opened file at opening.
	Info() *Info
}

// Stager is the ability to stage content beside a target and to publish it in
// one step.
type Stager interface {
	// Stage makes a private staging object from which key can be published in
	// one step, and the missing parents of key. The object's names do not hold
	// the target's (S-10); one that is there already is an error and stays.
	Stage(ctx context.Context, key string, opts StageOptions) (Stage, error)
}

// StageOptions describe the file to be.
type StageOptions struct {
	// Size is the number of bytes to come, or -1.
	Size int64
	// Mode to publish with; -1: that of Replaces without setuid, setgid and
	// sticky bits, else the world's default, 0666 minus its umask.
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
	// Seal sets mode and owner and flushes the content to disk. After it the
	// published file will be whole whatever happens.
	Seal(ctx context.Context) error
	// Publish makes the content visible under the key in one step and gives the
	// version of what was written, not of a fresh look at the path (S-8). It has
	// no context: nothing may cancel it.
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

// Writer is the ability to do a whole write in fewer round trips than resolve,
// stat, stage and publish take. The driver applies intent and guard, and
// publishes only after Content has ended, with the number of bytes that was
// announced. ctx counts up to the commit point and not after it. If the
// connection is lost around that point the driver looks (S-13) and otherwise
// says in the message that the outcome is unknown, with fault.RetryUnknown.
type Writer interface {
	Write(ctx context.Context, ref Ref, w WriteSpec) (WriteResult, error)
}

// WriteSpec is a write as a Writer gets it.
type WriteSpec struct {
	// Content is read to its end. An error of it (text that is not, a size that
	// differs, a cancelled context) is returned as it is, and nothing is
	// published.
	Content io.Reader
	// Size is the number of bytes, or -1 when the source does not say it; never
	// -1 for content up to 1 MiB.
	Size   int64
	Intent Intent
	// Version is the guard of IntentReplace.
	Version string
	// Mode of the published file; -1: a file that is replaced keeps its own, as
	// in StageOptions, and a new one gets NewMode; if that is -1 too, the world's
	// default.
	Mode    int
	NewMode int
	// InPlace writes through the open file; not atomic.
	InPlace bool
	// BasisMax, if positive, asks for the prior content, if it is smaller.
	BasisMax int64
	// Lock serialises this mutation of key with others on this host. A driver
	// that got a ref which is not canonical calls it as soon as it knows the
	// key and before the check of the guard that counts; one whose world makes
	// check and publish one exclusive step need not. More calls do nothing.
	Lock func(ctx context.Context, key string) error
}

// WriteResult is what Writer gives.
type WriteResult struct {
	Key       string
	Operation Operation
	Version   string
	Bytes     int64
	// Before is the prior content if WriteSpec.BasisMax asked for it; nil when
	// there was none or it is not smaller.
	Before []byte
}

// InPlacer is the ability to write through an existing file instead of
// replacing it (design.md 4.14).
type InPlacer interface {
	// WriteInPlace overwrites the regular file key and cuts it to the length of
	// content, flushes it and gives its new version. A guard that is not "" is
	// compared with the version of the opened file before anything is changed.
	// ctx counts until then; an error after that has fault.RetryUnknown, since
	// the file may be partly written.
	WriteInPlace(ctx context.Context, key string, content io.Reader, opts InPlaceOptions) (version string, err error)
}

// InPlaceOptions are the guard and the mode (-1: unchanged) of a write in place.
type InPlaceOptions struct {
	Guard string
	Mode  int
}
