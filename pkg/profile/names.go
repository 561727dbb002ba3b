package profile

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// DefaultName is the profile that exists without a file.
const DefaultName = "default"

// ValidName reports whether name is a profile name: a-z, 0-9, dot, underscore
// and dash, beginning with a letter or digit, at most 64 characters, and not
// ending in .plugins (plugins.md 13).
func ValidName(name string) bool {
	return name != "" && len(name) <= 64 && !strings.ContainsAny(name[:1], "._-") &&
		strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789._-") == "" &&
		!strings.HasSuffix(name, ".plugins") && name != "node_modules"
}

// nameRule is the hint for a refused name.
const nameRule = "a name has 1 to 64 of a-z 0-9 . _ -, begins with a letter or digit, and does not end in .plugins"

// file gives the path of a profile below a configuration directory.
func file(dir, name string) string { return filepath.Join(dir, "profiles", name+".yaml") }

// UserFile gives the path of a profile of the user.
func (p Places) UserFile(name string) string { return file(p.Config, name) }

// Names lists the profiles that a system or user file makes, and the default,
// in byte order. Files with other names are left out.
func (p Places) Names() []string {
	names := []string{DefaultName}
	for _, dir := range []string{p.System, p.Config} {
		if dir == "" {
			continue
		}
		found, _ := os.ReadDir(filepath.Join(dir, "profiles"))
		for _, f := range found {
			if name, ok := strings.CutSuffix(f.Name(), ".yaml"); ok && ValidName(name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
