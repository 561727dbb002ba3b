package plugin

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/afield-dev/afield/pkg/fault"
)

// Bounds of one path in a plugin (U-1).
const (
	maxComponent = 255
	maxPath      = 1024
	maxDepth     = 32
)

// checkPath holds a path below the root of a plugin against U-1. It gives the
// reason of a refusal, or "".
func checkPath(path string) string {
	switch {
	case path == "":
		return "the path is empty"
	case len(path) > maxPath:
		return "the path is longer than 1024 bytes"
	case !utf8.ValidString(path):
		return "the path is not UTF-8"
	}
	parts := strings.Split(path, "/")
	if len(parts) > maxDepth {
		return "the path is deeper than 32"
	}
	for _, part := range parts {
		if reason := checkComponent(part); reason != "" {
			return reason
		}
	}
	return ""
}

func checkComponent(part string) string {
	switch {
	case part == "":
		return "the path is absolute or has an empty component"
	case part == "." || part == "..":
		return "the path has a component . or .."
	case len(part) > maxComponent:
		return "a component is longer than 255 bytes"
	case strings.ContainsAny(part, `\:`):
		return "the path has a backslash or a colon"
	case strings.ContainsFunc(part, unicode.IsControl):
		return "the path has a control character"
	case strings.HasSuffix(part, ".") || strings.HasSuffix(part, " "):
		return "a component ends in a dot or a blank"
	case isReserved(part):
		return "the name is reserved on Windows"
	}
	return ""
}

// isReserved reports whether Windows takes the name for a device, with or
// without an extension.
func isReserved(part string) bool {
	stem, _, _ := strings.Cut(part, ".")
	stem = strings.ToUpper(strings.TrimRight(stem, " "))
	switch stem {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	digit, ok := strings.CutPrefix(stem, "COM")
	if !ok {
		digit, ok = strings.CutPrefix(stem, "LPT")
	}
	switch digit {
	case "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "\u00b9", "\u00b2", "\u00b3":
		return ok
	}
	return false
}

// folded gives what two paths share that some file system takes for one (U-4).
func folded(path string) string {
	for i := 0; i < len(path); i++ {
		if path[i] >= utf8.RuneSelf {
			return norm.NFD.String(strings.Map(foldRune, norm.NFD.String(path)))
		}
	}
	return strings.ToLower(path)
}

// foldRune gives the lowest rune of those that differ in case only.
func foldRune(r rune) rune {
	low := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		low = min(low, next)
	}
	if 'A' <= low && low <= 'Z' {
		low += 'a' - 'A'
	}
	return low
}

// names holds the paths of one tree apart.
type names struct{ seen map[string]name }

type name struct {
	path string
	file bool
	made bool // a member of its own, and not only the parent of one
}

// add takes a path of a member and gives the directories that it needs and
// nobody has named yet, outermost first.
func (n *names) add(path string, file bool) (missing []string, err error) {
	if n.seen == nil {
		n.seen = map[string]name{}
	}
	for i, r := range path {
		if r != '/' {
			continue
		}
		fresh, err := n.addOne(name{path[:i], false, false})
		if err != nil {
			return nil, err
		}
		if fresh {
			missing = append(missing, path[:i])
		}
	}
	fresh, err := n.addOne(name{path, file, true})
	if fresh && !file {
		missing = append(missing, path)
	}
	return missing, err
}

func (n *names) addOne(x name) (fresh bool, err error) {
	key := folded(x.path)
	old, known := n.seen[key]
	switch {
	case !known:
	case old.path != x.path:
		return false, invalidMember(x.path, "it differs from %q by case or form only", old.path)
	case old.file != x.file:
		return false, invalidMember(x.path, "it is a file and a directory")
	case old.made && x.made:
		return false, invalidMember(x.path, "it is there twice")
	case old.made || !x.made:
		return false, nil
	}
	n.seen[key] = x
	return !known, nil
}

// invalidMember refuses a whole archive or directory for one of its paths.
func invalidMember(path, reason string, args ...any) *fault.Error {
	e := fault.New(fault.PluginArchiveInvalid, "unpack", path, reason, args...)
	e.Message = "the plugin is refused: " + quotePath(path) + ": " + e.Message
	return e
}

// quotePath shows a path that may hold anything.
func quotePath(path string) string {
	if len(path) > 200 {
		path = path[:200] + "…"
	}
	return `"` + strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError || unicode.Is(unicode.Bidi_Control, r) {
			return '?'
		}
		return r
	}, path) + `"`
}
