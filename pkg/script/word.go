package script

import "strings"

// Word encodes v as one word that every shell leaves alone between single
// quotes: "=" and the text itself where it is plain, "%" and the text with
// octal escapes otherwise. A NUL cannot be carried.
func Word(v string) string {
	if isPlain(v) {
		return "=" + v
	}
	var b strings.Builder
	b.Grow(len(v) + len(v)/4 + 16)
	b.WriteByte('%')
	for i := range len(v) {
		c := v[i]
		if plain(c) {
			b.WriteByte(c)
			continue
		}
		b.WriteString(`\0`)
		b.WriteByte('0' + c>>6)
		b.WriteByte('0' + c>>3&7)
		b.WriteByte('0' + c&7)
	}
	return b.String()
}

func isPlain(v string) bool {
	for i := range len(v) {
		if !plain(v[i]) {
			return false
		}
	}
	return true
}

// plain reports whether c may stand between single quotes in every shell.
func plain(c byte) bool {
	return c >= ' ' && c < 0x7f && c != '\'' && c != '!' && c != '\\'
}
