package mount

import (
	"unicode/utf8"

	"github.com/afield-dev/afield/pkg/mount/ledger"
)

// Estimate guesses the tokens of a text: one for each code point of the common
// CJK blocks, one for every four others, at least one (mount.md 5).
func Estimate(text string) int { return estimate([]byte(text)) }

func estimate(text []byte) int {
	cjk, other := 0, 0
	for i := 0; i < len(text); {
		if text[i] < utf8.RuneSelf {
			other++
			i++
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		if isCJK(r) {
			cjk++
		} else {
			other++
		}
		i += size
	}
	return max(1, cjk+(other+3)/4)
}

func isCJK(r rune) bool {
	return r >= 0x3000 && r <= 0x30FF || r >= 0x3400 && r <= 0x4DBF || r >= 0x4E00 && r <= 0x9FFF ||
		r >= 0xAC00 && r <= 0xD7AF || r >= 0xF900 && r <= 0xFAFF || r >= 0xFF00 && r <= 0xFFEF
}

// weights are the tokens of the lines of a window.
type weights struct {
	start int
	lines []int
}

// of sums the tokens of ranges; what lies outside the window counts nothing.
func (w weights) of(ranges ...ledger.Range) int {
	sum := 0
	for _, r := range ranges {
		for n := max(r.Start, w.start); n <= min(r.End, w.start+len(w.lines)-1); n++ {
			sum += w.lines[n-w.start]
		}
	}
	return sum
}
