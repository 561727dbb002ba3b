package mount

import (
	"regexp"
	"strings"
)

// excluded reports whether a glob matches the whole identity path: * is any run
// without a slash, ** any run, ? one character but a slash (mount.md 10).
func excluded(globs []string, path string) bool {
	for _, g := range globs {
		if matchGlob(g, path) {
			return true
		}
	}
	return false
}

func matchGlob(glob, path string) bool {
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	for len(glob) > 0 {
		switch {
		case strings.HasPrefix(glob, "**"):
			b.WriteString(".*")
			glob = glob[2:]
			continue
		case glob[0] == '*':
			b.WriteString("[^/]*")
		case glob[0] == '?':
			b.WriteString("[^/]")
		default:
			n := strings.IndexAny(glob, "*?")
			if n < 0 {
				n = len(glob)
			}
			b.WriteString(regexp.QuoteMeta(glob[:n]))
			glob = glob[n:]
			continue
		}
		glob = glob[1:]
	}
	b.WriteString(`\z`)
	re, err := regexp.Compile(b.String())
	return err == nil && re.MatchString(path)
}
