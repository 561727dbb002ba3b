package cmd

import (
	"strings"
	"unicode/utf8"
)

// unfinishedTail is the number of bytes at the end of b that begin a character
// and do not finish it.
func unfinishedTail(b []byte) int {
	for n := 1; n <= min(3, len(b)); n++ {
		if tail := b[len(b)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}

// lossyText gives bytes as text and, where they are not UTF-8, as Base64 too.
func lossyText(b []byte) (string, *string) {
	if utf8.Valid(b) {
		return string(b), nil
	}
	return strings.ToValidUTF8(string(b), "\uFFFD"), base64OrNull(b)
}
