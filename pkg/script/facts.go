package script

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Facts are what the world says of an entry.
type Facts struct {
	RawMode uint32 // type and permissions as in stat(2)
	Size    int64
	ModTime time.Time
	Owner   string
	Group   string
	// Version is a token of device, inode, size, and the times of the last
	// modification and of the last change with all digits the world has.
	Version string
}

// The types of entries in RawMode.
const (
	typeMask      = 0xf000
	typeRegular   = 0x8000
	typeDirectory = 0x4000
	typeLink      = 0xa000
)

// IsRegular reports whether the entry is a regular file.
func (f *Facts) IsRegular() bool { return f.RawMode&typeMask == typeRegular }

// IsDirectory reports whether the entry is a directory.
func (f *Facts) IsDirectory() bool { return f.RawMode&typeMask == typeDirectory }

// IsLink reports whether the entry is a symbolic link.
func (f *Facts) IsLink() bool { return f.RawMode&typeMask == typeLink }

// Perm gives the permission bits with setuid, setgid and sticky.
func (f *Facts) Perm() int { return int(f.RawMode & 0o7777) }

// parseFacts reads the fields of the programs' format: mode in hex, device,
// inode, size, two times of three words each, and more. Empty means absent: nil.
func parseFacts(s string) (*Facts, error) {
	if s == "" {
		return nil, nil
	}
	w := strings.Fields(s)
	if len(w) < 10 {
		return nil, fmt.Errorf("facts %.80q have too few fields", s)
	}
	f := &Facts{Version: w[1] + ":" + w[2] + ":" + w[3] + ":" + w[4] + "T" + w[5] + ":" + w[7] + "T" + w[8]}
	mode, err := strconv.ParseUint(w[0], 16, 32)
	if err != nil {
		return nil, fmt.Errorf("facts %.80q: %w", s, err)
	}
	f.RawMode = uint32(mode)
	if f.Size, err = strconv.ParseInt(w[3], 10, 64); err != nil {
		return nil, fmt.Errorf("facts %.80q: %w", s, err)
	}
	if f.ModTime, err = time.Parse("2006-01-02 15:04:05 -0700", w[4]+" "+w[5]+" "+w[6]); err != nil {
		return nil, fmt.Errorf("facts %.80q: %w", s, err)
	}
	f.ModTime = f.ModTime.UTC()
	if len(w) >= 14 {
		f.Owner, f.Group, _ = strings.Cut(strings.Join(w[13:], " "), "/")
	}
	return f, nil
}
