package wire

import (
	"encoding/json"
	"time"
)

// Methods of the filesystem service.
const (
	MethodStat          = "/filesystem.Filesystem/Stat"
	MethodMakeDir       = "/filesystem.Filesystem/MakeDir"
	MethodMove          = "/filesystem.Filesystem/Move"
	MethodListDir       = "/filesystem.Filesystem/ListDir"
	MethodRemove        = "/filesystem.Filesystem/Remove"
	MethodWatchDir      = "/filesystem.Filesystem/WatchDir"
	MethodCreateWatcher = "/filesystem.Filesystem/CreateWatcher"
	MethodWatcherEvents = "/filesystem.Filesystem/GetWatcherEvents"
	MethodRemoveWatcher = "/filesystem.Filesystem/RemoveWatcher"
)

// FileType is the type of an entry; of a link, that of its target.
type FileType string

// The types. What is none of them, and a link that leads nowhere, has none.
const (
	TypeUnspecified FileType = ""
	TypeFile        FileType = "FILE_TYPE_FILE"
	TypeDirectory   FileType = "FILE_TYPE_DIRECTORY"
	TypeSymlink     FileType = "FILE_TYPE_SYMLINK"
)

// UnmarshalJSON reads the name or the number.
func (t *FileType) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case `"FILE_TYPE_UNSPECIFIED"`, "0":
		*t = TypeUnspecified
	case "1":
		*t = TypeFile
	case "2":
		*t = TypeDirectory
	case "3":
		*t = TypeSymlink
	default:
		return json.Unmarshal(b, (*string)(t))
	}
	return nil
}

// EntryInfo is what the daemon says of a name: Type and Mode of a link are
// those of its target, Size, ModifiedTime, Owner and Group those of the link
// itself.
type EntryInfo struct {
	Name         string   `json:"name,omitempty"`
	Type         FileType `json:"type,omitempty"`
	Path         string   `json:"path,omitempty"` // as asked for
	Size         Int64    `json:"size,omitempty"`
	Mode         uint32   `json:"mode,omitempty"` // permission bits
	Permissions  string   `json:"permissions,omitempty"`
	Owner        string   `json:"owner,omitempty"`
	Group        string   `json:"group,omitempty"`
	ModifiedTime string   `json:"modifiedTime,omitempty"`
	// SymlinkTarget is the canonical path of the target; the link's own path if
	// it leads nowhere or in a loop. Nil: no link.
	SymlinkTarget *string           `json:"symlinkTarget,omitempty"`
	Metadata      map[string]string `json:"metadata,omitempty"`
}

// IsLink reports whether the name is a symbolic link.
func (e *EntryInfo) IsLink() bool { return e.SymlinkTarget != nil }

// Dangles reports whether the name is a link whose target cannot be found.
func (e *EntryInfo) Dangles() bool {
	return e.SymlinkTarget != nil && *e.SymlinkTarget == e.Path
}

// ModTime is the time of the last change, with nanoseconds; zero = unknown.
func (e *EntryInfo) ModTime() time.Time {
	t, err := time.Parse(time.RFC3339Nano, e.ModifiedTime)
	if err != nil {
		return time.Time{}
	}
	return t
}

// SpecialBits are set-uid, set-gid and sticky (04000, 02000, 01000), which Mode
// lacks and Permissions has.
func (e *EntryInfo) SpecialBits() uint32 {
	var bits uint32
	for _, c := range e.Permissions[:max(0, len(e.Permissions)-9)] {
		switch c {
		case 'u':
			bits |= 0o4000
		case 'g':
			bits |= 0o2000
		case 't':
			bits |= 0o1000
		}
	}
	return bits
}

// PathRequest is the request of Stat, MakeDir and Remove.
type PathRequest struct {
	Path string `json:"path,omitempty"`
}

// EntryResponse is the answer of Stat, MakeDir and Move.
type EntryResponse struct {
	Entry EntryInfo `json:"entry"`
}

// MoveRequest renames. Missing parents of the destination are made.
type MoveRequest struct {
	Source      string `json:"source,omitempty"`
	Destination string `json:"destination,omitempty"`
}

// ListDirRequest lists; depth 0 means 1.
type ListDirRequest struct {
	Path  string `json:"path,omitempty"`
	Depth uint32 `json:"depth,omitempty"`
}

// ListDirResponse is the answer of ListDir.
type ListDirResponse struct {
	Entries []EntryInfo `json:"entries,omitempty"`
}

// WatchDirRequest watches a directory. It is also the request of
// CreateWatcher.
type WatchDirRequest struct {
	Path         string `json:"path,omitempty"`
	Recursive    bool   `json:"recursive,omitempty"`
	IncludeEntry bool   `json:"includeEntry,omitempty"`
}

// WatchDirResponse has exactly one field set.
type WatchDirResponse struct {
	Start      *struct{}        `json:"start,omitempty"`
	Filesystem *FilesystemEvent `json:"filesystem,omitempty"`
	Keepalive  *struct{}        `json:"keepalive,omitempty"`
}

// FilesystemEvent is a change below a watched directory.
type FilesystemEvent struct {
	Name  string     `json:"name,omitempty"` // relative to the directory
	Type  string     `json:"type,omitempty"` // EVENT_TYPE_CREATE, …
	Entry *EntryInfo `json:"entry,omitempty"`
}

// WatcherRequest names a watcher.
type WatcherRequest struct {
	WatcherID string `json:"watcherId,omitempty"`
}

// WatcherEventsResponse is the answer of GetWatcherEvents.
type WatcherEventsResponse struct {
	Events []FilesystemEvent `json:"events,omitempty"`
}

// WriteInfo is an entry of the answer to an upload.
type WriteInfo struct {
	Name     string            `json:"name"`
	Path     string            `json:"path"`
	Type     string            `json:"type"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

// ComposeRequest joins files into one and deletes them.
type ComposeRequest struct {
	SourcePaths []string `json:"source_paths"`
	Destination string   `json:"destination"`
	Username    string   `json:"username,omitempty"`
}
