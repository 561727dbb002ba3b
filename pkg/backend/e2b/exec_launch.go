package e2b

import (
	"bytes"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// launch gives the words that start argv with its environment: argv itself, a
// wrapper that removes names, or the arguments of a private file that sets
// values, which then is the second result. Names of credentials that the
// sandbox carries are removed too (EN-1), unless they are set explicitly.
func launch(argv []string, set map[string]string, remove, scrub []string) (words []string, file []byte) {
	remove = slices.Clone(remove)
	for _, n := range scrub {
		if _, ok := set[n]; !ok && !slices.Contains(remove, n) {
			remove = append(remove, n)
		}
	}
	if len(set) > 0 || slices.ContainsFunc(argv, notText) {
		return launchFile(argv, set, remove)
	}
	if len(remove) == 0 {
		return argv, nil
	}
	// env takes a first operand with = for an assignment; nice does not (EN-10).
	return append(append(unsetWords(remove), "nice", "-n", "0"), argv...), nil
}

func notText(s string) bool { return !utf8.ValidString(s) }

func unsetWords(names []string) []string {
	words := []string{"env"}
	for _, n := range names {
		words = append(words, "-u", n)
	}
	return words
}

// launchFile gives a script for sh that removes itself, sets and removes, and
// becomes the program. Arguments that are text stay positional parameters, so
// that the list of processes names the program.
func launchFile(argv []string, set map[string]string, remove []string) (words []string, file []byte) {
	var b bytes.Buffer
	b.WriteString("rm -f -- \"$0\" || exit 126\n")
	if slices.ContainsFunc(argv, notText) {
		b.WriteString("set --")
		b.WriteString(quoted(argv) + "\n")
		argv = nil
	}
	var drop, assign []string // what sh itself cannot do
	for _, n := range sorted(slices.Clone(remove)) {
		if settable(n) {
			b.WriteString("unset " + n + "\n")
		} else {
			drop = append(drop, "-u", n)
		}
	}
	names := sorted(slices.Collect(maps.Keys(set)))
	if len(drop) > 0 || slices.ContainsFunc(names, func(n string) bool { return !settable(n) }) {
		b.WriteString("e=$(command -v env) && n=$(command -v nice) || exit 126\n")
	}
	for _, n := range names {
		if settable(n) {
			b.WriteString("export " + n + "=" + quote(set[n]) + "\n")
		} else {
			assign = append(assign, n+"="+set[n])
		}
	}
	if len(drop)+len(assign) == 0 {
		b.WriteString("exec \"$@\"\n")
		return argv, b.Bytes()
	}
	b.WriteString(`exec "$e"` + quoted(drop) + " --" + quoted(assign) + ` "$n" -n 0 "$@"` + "\n")
	return argv, b.Bytes()
}

// quoted makes shell words, each with a blank before it.
func quoted(words []string) string {
	text := ""
	for _, w := range words {
		text += " " + quote(w)
	}
	return text
}

// settable reports whether every sh can export the name, and does so without
// giving it a meaning of its own.
func settable(name string) bool {
	switch name {
	case "IFS", "OPTIND", "PPID", "UID", "EUID", "GROUPS", "SHELLOPTS", "BASHOPTS", "LINENO", "e", "n", "_":
		return false
	}
	for i, c := range []byte(name) {
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != "" && !strings.HasPrefix(name, "BASH")
}

// quote makes one shell word.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// newBytes gives a reader that http can send again.
func newBytes(p []byte) io.Reader { return bytes.NewReader(p) }

// searchPath is the PATH that a program starts with (LK-6).
func searchPath(prep *setup, set map[string]string, remove []string) string {
	if v, ok := set["PATH"]; ok {
		return v
	}
	if slices.Contains(remove, "PATH") {
		return ""
	}
	return prep.Path
}

// candidates are the paths at which a program may be. Empty elements of the
// search path mean the base (LK-7), and a name with a separator is relative to
// it.
func (r *Runner) candidates(command, search, base string) []string {
	if path.IsAbs(command) {
		return []string{command}
	}
	if strings.Contains(command, "/") {
		return []string{path.Join(base, command)}
	}
	var out []string
	for _, dir := range strings.Split(search, ":") {
		if !path.IsAbs(dir) {
			dir = path.Join(base, dir)
		}
		out = append(out, path.Join(dir, command))
	}
	return out
}
