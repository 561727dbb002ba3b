// Package remotefs is the file contract: the primitives that every backend
// offers, with the same semantics on each (text rules, edit rules, version
// guards, error codes), whatever the transport behind it.
//
// FS is what consumers, wrappers and the conformance suite (package fstest)
// see. A backend supplies a Driver, and New puts the shared rules on top of it
// once. Rules are numbered in the published specification of the contract;
// comments cite them as "remotefs.md 8" or "S-11".
package remotefs

import (
	"context"
	"io"
	"time"
)

// FS is one world's files.
//
// All methods may run at the same time from several goroutines. Mutations of
// one target run one at a time, also between processes on one host. A method
// that takes a context returns FS_ABORTED when it ends before the commit
// point, and the result of the operation when it ends later. Every error is a
// *fault.Error with one code of remotefs.md 11.
type FS interface {
	// Facts is constant: what this world's files can and cannot do.
	Facts() Facts

	// Resolve gives the canonical identity of path. The file need not exist.
	// A relative path is joined to cwd, a relative or empty cwd to the world's
	// default directory (remotefs.md 2).
	Resolve(ctx context.Context, path, cwd string) (Target, error)

	// ProcessPath gives the absolute path by which a process in the same world
	// opens the target. No I/O.
	ProcessPath(t Target) (string, error)

	// FileURL gives the file: URL of the target (remotefs.md 2.5). No I/O.
	FileURL(t Target) (string, error)

	// Contains reports whether child is parent or lies below it. Both come
	// from this FS. No I/O.
	Contains(parent, child Target) bool

	// Stat follows links. Absence is an answer: info is nil and err is nil.
	Stat(ctx context.Context, at At) (t Target, info *Info, err error)

	// Lstat does not follow the last component. Absence is an answer.
	Lstat(ctx context.Context, path, cwd string) (t Target, info *Info, err error)

	// ReadText gives the whole text (remotefs.md 5.1).
	ReadText(ctx context.Context, at At) (Text, error)

	// StreamText gives the exact bytes in pieces, each proven to be text before
	// it is handed out. The caller closes the stream. An error may come after
	// some pieces. The context governs the whole stream.
	StreamText(ctx context.Context, at At) (*TextStream, error)

	// ReadBytes gives the raw content of at most maxBytes bytes, or
	// FS_TOO_LARGE. A negative maxBytes is a usage error.
	ReadBytes(ctx context.Context, at At, maxBytes int64) (Bytes, error)

	// ListDir gives all entries in byte order of their names (remotefs.md 4).
	ListDir(ctx context.Context, at At) (t Target, entries []DirEntry, err error)

	// WriteText stores content and publishes it in one step (remotefs.md 7).
	WriteText(ctx context.Context, at At, w WriteRequest) (WriteOutcome, error)

	// EditText replaces literal text and leaves every other byte as it is
	// (remotefs.md 8).
	EditText(ctx context.Context, at At, e EditRequest) (EditOutcome, error)
}

// Target is the identity of a file in one world. Key is opaque to consumers;
// two spellings of one file have one Key. Display is for people and messages.
type Target struct {
	Key     string
	Display string
}

// At names a file for one call: by a Target that Resolve gave, or by a path,
// which is then resolved inside the call, without a round trip of its own.
type At struct {
	Target Target // used when Key is set
	Path   string
	Cwd    string
}

// AtPath names a file by path, joined to cwd as Resolve does.
func AtPath(path, cwd string) At { return At{Path: path, Cwd: cwd} }

// AtTarget names a file by its target; links are not followed again.
func AtTarget(t Target) At { return At{Target: t} }

// Type is the kind of a directory entry.
type Type string

// The kinds. Other covers sockets, FIFOs, devices and what a server cannot
// name. Symlink appears in the answers of Lstat only.
const (
	TypeFile      Type = "file"
	TypeDirectory Type = "directory"
	TypeSymlink   Type = "symlink"
	TypeOther     Type = "other"
)

// Info is what is known of an entry. Version is an opaque token for "this
// content and identity, now" (remotefs.md 6) and uses only [A-Za-z0-9:._-].
type Info struct {
	Version    string
	Type       Type
	Size       int64     // bytes of a regular file, or of a link's text; -1 = not given
	Mode       int       // permission bits & 07777; -1 = unknown
	ModTime    time.Time // zero = unknown
	Owner      string    // "" = unknown
	Group      string
	LinkTarget string // of a symlink; "" = unknown or none
}

// DirEntry is one entry of a listing: type, version, size and target are those
// of the referent, the name is the entry's own. RawName is set when the name is
// not valid UTF-8; Name is then lossy.
type DirEntry struct {
	Name    string
	RawName []byte
	Type    Type
	Version string // "" = none
	Size    int64  // -1 = none
	Target  Target
}

// Text is the result of ReadText. Text has no leading byte-order mark; BOM says
// that the file has one. Bytes counts the file's bytes, the mark included.
type Text struct {
	Target  Target
	Text    string
	BOM     bool
	Bytes   int64
	Version string
}

// Bytes is the result of ReadBytes.
type Bytes struct {
	Target  Target
	Content []byte
	Version string
}

// Intent is the guard of a write.
type Intent int

const (
	// IntentNone creates or replaces.
	IntentNone Intent = iota
	// IntentCreate publishes only where nothing is, and never replaces.
	IntentCreate
	// IntentReplace replaces only the given version.
	IntentReplace
)

// Operation says what a write did.
type Operation string

// What a write did: it made the file, or replaced one that was there.
const (
	OpCreate Operation = "create"
	OpUpdate Operation = "update"
)

// WriteRequest is the content of a write and its guard.
type WriteRequest struct {
	// Content is read to its end. Up to 1 MiB is checked before any I/O, more
	// while it is staged (S-9). The caller closes what is behind it. If the
	// context ends while a read of it blocks, that read may outlast the call.
	Content io.Reader
	// Size is the number of bytes Content holds, or -1. A Content that ends
	// with another count is an error and nothing is published.
	Size int64
	// Raw stores bytes that need not be text.
	Raw    bool
	Intent Intent
	// Version is the guard of IntentReplace.
	Version string
	// BasisMax, if positive, asks for Before and After in the outcome, as far
	// as both sides are smaller (remotefs.md 7, step 4); the default limit is
	// DefaultBasisMax.
	BasisMax int64
	// Mode is the mode of the published file; -1: a new file gets 0666 minus
	// the world's umask or the configured mode, a replaced one keeps its own.
	Mode int
	// InPlace writes through the open file instead of replacing it; not atomic.
	InPlace bool
}

// DefaultBasisMax is the default of WriteRequest.BasisMax in bytes.
const DefaultBasisMax = 10 << 20

// WriteOutcome is the result of a write. Before is nil when there was no file,
// when it was not asked for, and when it could not be given (remotefs.md 7,
// step 4). After is the content with CR LF folded to LF, nil where Before could
// not be given for the size of the content, and when it was not asked for.
type WriteOutcome struct {
	Target    Target
	Operation Operation
	Version   string
	Bytes     int64
	Before    *string
	After     *string
}

// Edit is one literal replacement.
type Edit struct {
	Old string
	New string
	All bool
}

// EditRequest is a list of edits, each applied to the result of those before
// it; all of them are published together or none is.
type EditRequest struct {
	Edits []Edit
	// Version is the guard; "" = none.
	Version string
	// NormalizeEOL stores the whole file in its dominant line ending.
	NormalizeEOL bool
	// DryRun computes the outcome and changes nothing; Version of the outcome
	// is then the version of the unchanged file.
	DryRun bool
	// InPlace writes through the open file instead of replacing it.
	InPlace bool
	// BasisMax, if positive, asks for Before and After in the outcome, as far
	// as both sides are smaller.
	BasisMax int64
}

// EditOutcome is the result of an edit. Before and After are the folded texts
// without byte-order mark, if they were asked for and are small enough.
type EditOutcome struct {
	Target       Target
	Version      string
	Bytes        int64
	Replacements int
	Before       *string
	After        *string
}
