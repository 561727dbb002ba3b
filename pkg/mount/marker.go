package mount

import (
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"
	"unicode"

	"github.com/afield-dev/afield/pkg/mount/ledger"
)

// displayPath gives a path relative to cwd, absolute outside it (mount.md 10).
func displayPath(p, cwd string) string {
	if !path.IsAbs(p) {
		p = path.Join(cwd, p)
	}
	if p == cwd {
		return "."
	}
	if below, ok := strings.CutPrefix(p, strings.TrimSuffix(cwd, "/")+"/"); ok && cwd != "" {
		return below
	}
	return p
}

// headPath gives a path for a marker. One that could be read as the end of the
// marker is written as a JSON string, so that no file name forges one.
func headPath(p string) string {
	if !strings.ContainsAny(p, `]"`) && strings.IndexFunc(p, breaksLine) < 0 {
		return p
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.Encode(p)
	return escapeControls(strings.TrimSuffix(b.String(), "\n"), `\u%04x`)
}

// breaksLine holds for what a terminal or a reader may take for the end of a
// line, or acts on.
func breaksLine(r rune) bool {
	return unicode.IsControl(r) || r == 0x2028 || r == 0x2029
}

func escapeControls(s, format string) string {
	var b strings.Builder
	for _, r := range s {
		if breaksLine(r) {
			fmt.Fprintf(&b, format, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// shellPath gives a path as one word of a POSIX shell; one with control
// characters in the $'…' form, so that it stays on its line.
func shellPath(p string) string {
	plain := func(r rune) bool {
		return r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_./@%+=:,-", r))
	}
	switch {
	case p != "" && strings.IndexFunc(p, func(r rune) bool { return !plain(r) }) < 0:
		return p
	case strings.IndexFunc(p, breaksLine) < 0:
		return "'" + strings.ReplaceAll(p, "'", `'\''`) + "'"
	}
	var b strings.Builder
	for _, c := range []byte(p) {
		switch {
		case c == '\'' || c == '\\':
			b.WriteString(`\` + string(c))
		case c < ' ' || c >= 0x7F:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	return "$'" + b.String() + "'"
}

// rangeText names up to three ranges; false if there are more.
func rangeText(ranges []ledger.Range) (string, bool) {
	if len(ranges) > 3 {
		return "", false
	}
	words := make([]string, len(ranges))
	for i, r := range ranges {
		words[i] = "L" + strconv.Itoa(r.Start)
		if r.End > r.Start {
			words[i] += "-" + strconv.Itoa(r.End)
		}
	}
	return strings.Join(words, ", "), true
}

// haveText says what of a file is mounted.
func haveText(ranges []ledger.Range, total int) string {
	ranges = ledger.Normalize(ranges)
	if len(ranges) == 0 {
		return fmt.Sprintf("none of %d", total)
	}
	if text, ok := rangeText(ranges); ok {
		return fmt.Sprintf("%s of %d", text, total)
	}
	return fmt.Sprintf("%d of %d lines in %d ranges", ledger.CountLines(ranges), total, len(ranges))
}

// sendsText says what an answer sends.
func sendsText(ranges []ledger.Range) string {
	ranges = ledger.Normalize(ranges)
	if len(ranges) == 0 {
		return "nothing"
	}
	if text, ok := rangeText(ranges); ok {
		return text
	}
	return fmt.Sprintf("%d lines in %d ranges", ledger.CountLines(ranges), len(ranges))
}

// label is what all markers of a file say of it.
type label struct {
	path    string // as shown
	hash    string
	total   int
	session string // to name in the hint; "" if the environment does
}

func (l label) head(mounted []ledger.Range) string {
	return fmt.Sprintf("[mount %s @%s: %s]", headPath(l.path), l.hash[:8], haveText(mounted, l.total))
}

func (l label) dedupe(mounted []ledger.Range) string {
	hint := "afield mount forget " + shellPath(l.path)
	if strings.HasPrefix(l.path, "-") {
		hint = "afield mount forget -- " + shellPath(l.path)
	}
	if l.session != "" {
		hint += " --session " + l.session
	}
	return l.head(mounted) + " unchanged, already sent; if it is not above, run: " + hint
}

func (l label) increment(mounted, sent []ledger.Range) string {
	return l.head(mounted) + " adds " + sendsText(sent)
}

func (l label) changed(grew bool, mounted, sent []ledger.Range, change *Change) string {
	verb := " changed on disk"
	if grew {
		verb = " grew"
	}
	if change == nil {
		return l.head(mounted) + verb + "; sends " + sendsText(sent)
	}
	return fmt.Sprintf("%s%s: +%d -%d, %d kept; sends %s", l.head(mounted), verb,
		change.Added, change.Removed, change.Unchanged, sendsText(sent))
}
