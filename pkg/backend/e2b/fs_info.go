package e2b

import (
	"strconv"

	"github.com/afield-dev/afield/pkg/backend/e2b/wire"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// versionKey is the metadata key of the mark that each write of ours leaves.
const versionKey = "afield-version"

// version is the token of an entry under its canonical path: the mark of our
// last write and every fact the server gives (e2b.md 14.7).
func version(key string, e *wire.EntryInfo) string {
	target := ""
	if e.SymlinkTarget != nil {
		target = *e.SymlinkTarget
	}
	t := e.ModTime()
	return "e2b:" + digest(
		e.Metadata[versionKey], key, string(e.Type), target,
		strconv.FormatInt(int64(e.Size), 10), strconv.FormatUint(uint64(e.Mode|e.SpecialBits()), 8), e.Owner, e.Group,
		strconv.FormatInt(t.Unix(), 10), strconv.Itoa(t.Nanosecond()))
}

// infoOf gives the facts of an entry that is no link.
func infoOf(key string, e *wire.EntryInfo) *remotefs.Info {
	in := &remotefs.Info{
		Version: version(key, e), Type: remotefs.TypeOther, Size: -1,
		Mode: int(e.Mode | e.SpecialBits()), ModTime: e.ModTime(), Owner: e.Owner, Group: e.Group,
	}
	switch {
	case e.IsLink(): // it leads nowhere, or in a loop
		in.Mode = -1
	case e.Type == wire.TypeFile:
		in.Type, in.Size = remotefs.TypeFile, int64(e.Size)
	case e.Type == wire.TypeDirectory:
		in.Type = remotefs.TypeDirectory
	}
	return in
}

// linkInfo gives the facts of a name itself, of a link without its text.
func linkInfo(key string, e *wire.EntryInfo) *remotefs.Info {
	in := infoOf(key, e)
	if e.IsLink() {
		in.Type, in.Size, in.Mode = remotefs.TypeSymlink, int64(e.Size), 0o777
	}
	return in
}
