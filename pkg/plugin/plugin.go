// Package plugin installs what adds providers to afield: self-contained
// archives, checked before anything in them counts, kept by the digest of their
// tree, and listed for one profile in one file whose replacement is the commit
// (plugins.md part D).
//
// Nothing of an archive is ever executed but the start check of its provider,
// after every other check has passed. Failures are *fault.Error; one before the
// commit leaves the profile's file as it was.
package plugin

import "strings"

// ValidID reports whether id names a plugin or a provider: 1 to 32 of a-z, 0-9
// and dash, beginning with a letter or digit.
func ValidID(id string) bool {
	return id != "" && len(id) <= 32 && id[0] != '-' && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}
