package remoteexec

import (
	"strings"
	"unicode/utf8"
)

// Decoder turns a byte stream into text as a reader of a terminal needs it:
// characters that are split between two reads come out whole, and what is no
// UTF-8 becomes one U+FFFD for each maximal invalid part (CR-6, TT-9). The zero
// value is ready.
type Decoder struct{ rest []byte }

// Decode gives the text of what is complete. end says that nothing follows.
func (d *Decoder) Decode(p []byte, end bool) string {
	all := append(d.rest, p...)
	text, held := decodeText(all, end)
	d.rest = append([]byte(nil), all[len(all)-held:]...)
	return text
}

// decodeText decodes p; unless final, an unfinished character at the end is
// left out, and held is its length in bytes, at most 3.
func decodeText(p []byte, final bool) (text string, held int) {
	if !final {
		held = unfinished(p)
		p = p[:len(p)-held]
	}
	if utf8.Valid(p) {
		return string(p), held
	}
	var b strings.Builder
	b.Grow(len(p))
	for len(p) > 0 {
		r, n := utf8.DecodeRune(p)
		if r == utf8.RuneError && n == 1 {
			n = invalidPart(p)
		}
		b.WriteRune(r)
		p = p[n:]
	}
	return b.String(), held
}

// unfinished is the length of the first part of a character at the end of p.
func unfinished(p []byte) int {
	for n := 1; n <= min(3, len(p)); n++ {
		tail := p[len(p)-n:]
		if utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}

// invalidPart is the length of the maximal invalid part at the start of p: the
// longest beginning of a well-formed character, or one byte.
func invalidPart(p []byte) int {
	low, high, more := secondByte(p[0])
	n := 1
	for ; n <= more && n < len(p) && p[n] >= low && p[n] <= high; n++ {
		low, high = 0x80, 0xBF
	}
	return n
}

// secondByte gives the range of the byte that may follow a lead byte, and how
// many bytes follow in all.
func secondByte(lead byte) (low, high byte, more int) {
	switch {
	case lead >= 0xC2 && lead <= 0xDF:
		return 0x80, 0xBF, 1
	case lead == 0xE0:
		return 0xA0, 0xBF, 2
	case lead == 0xED:
		return 0x80, 0x9F, 2
	case lead >= 0xE1 && lead <= 0xEF:
		return 0x80, 0xBF, 2
	case lead == 0xF0:
		return 0x90, 0xBF, 3
	case lead >= 0xF1 && lead <= 0xF3:
		return 0x80, 0xBF, 3
	case lead == 0xF4:
		return 0x80, 0x8F, 3
	default:
		return 0, 0, 0
	}
}
