package remotefs

import (
	"path"
	"strings"

	"github.com/afield-dev/afield/pkg/fault"
)

// Blank reports whether nothing is left of a path after the blank characters of
// remotefs.md 2.1 are removed from both ends. strings.TrimSpace knows another
// set: U+0085 is a legal name here, and U+FEFF is blank.
func Blank(p string) bool {
	return strings.TrimFunc(p, isBlank) == ""
}

func isBlank(r rune) bool {
	switch {
	case r >= 0x09 && r <= 0x0D, r == 0x20, r == 0xA0, r == 0x1680, r >= 0x2000 && r <= 0x200A:
		return true
	}
	return r == 0x2028 || r == 0x2029 || r == 0x202F || r == 0x205F || r == 0x3000 || r == 0xFEFF
}

// checkPath holds the rules that precede any I/O (remotefs.md 2.1, S-1).
func checkPath(op, p string) error {
	if Blank(p) {
		return fault.New(fault.FSNotFound, op, p, "file_path must be a non-empty string")
	}
	if strings.IndexByte(p, 0) >= 0 {
		return fault.New(fault.FSNotFound, op, p, "cannot %s %q: a path cannot hold a NUL byte", op, p)
	}
	return nil
}

// join is the lexical step of remotefs.md 2.2. A relative cwd is joined to the
// world's default directory (S-2).
func join(defaultCwd, cwd, p string) string {
	switch {
	case path.IsAbs(p):
		return path.Clean(p)
	case cwd == "":
		return path.Join(defaultCwd, p)
	case path.IsAbs(cwd):
		return path.Join(cwd, p)
	}
	return path.Join(defaultCwd, cwd, p)
}

// PathContains reports whether child is parent or lies below it; both are made
// clean by text first.
func PathContains(parent, child string) bool {
	parent, child = path.Clean(parent), path.Clean(child)
	return parent == child || strings.HasPrefix(child, strings.TrimSuffix(parent, "/")+"/")
}

const upperHex = "0123456789ABCDEF"

// PathURL encodes an absolute path by the set of remotefs.md 2.5 (S-4), which
// neither url.PathEscape nor url.URL.String produces.
func PathURL(p string) string {
	var b strings.Builder
	b.WriteString("file://")
	for i := 0; i < len(p); i++ {
		if c := p[i]; c == '/' || isPlainInURL(c) {
			b.WriteByte(c)
		} else {
			b.WriteByte('%')
			b.WriteByte(upperHex[c>>4])
			b.WriteByte(upperHex[c&15])
		}
	}
	return b.String()
}

func isPlainInURL(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		strings.IndexByte("-_.!~*'()", c) >= 0
}
