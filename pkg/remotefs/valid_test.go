package remotefs

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// borders gives, for every kind of sequence, the ones at its borders, right
// and wrong.
func borders() []string {
	all := []string{"a", "\x7f", "\x00", "\x80", "\xbf", "\xc2\x80", "\xdf\xbf", "\xed\x9f\xbf", "\xee\x80\x80",
		"\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf0\x8f\xbf\xbf", "\xf5\x80\x80\x80"}
	for first := 0xC0; first <= 0xFF; first++ {
		for _, second := range []byte{0x7F, 0x80, 0x9F, 0xA0, 0xBF, 0xC0} {
			all = append(all, string([]byte{byte(first), second}), string([]byte{byte(first), second, 0x80}),
				string([]byte{byte(first), second, 0xBF}), string([]byte{byte(first), second, 0xC0}))
		}
	}
	return all
}

// validText says the same as the standard library: every kind of sequence at
// each place of a vector and across its end, beside each kind of neighbour.
func TestValidTextSaysTheSame(t *testing.T) {
	runs := []string{"", strings.Repeat("a", 40), strings.Repeat("\u044f", 12), strings.Repeat("\u5929", 12), "\u5929\u044fa"}
	for _, s := range borders() {
		for pad := range 40 {
			for _, run := range runs {
				sample := strings.Repeat("x", pad) + run + s + run
				if got, want := validText([]byte(sample)), utf8.ValidString(sample); got != want {
					t.Fatalf("%q: %v, want %v", sample, got, want)
				}
			}
		}
	}
	for _, a := range borders() {
		for _, b := range borders() {
			sample := strings.Repeat("x", 29) + a + b + "x" + strings.Repeat("\u5929", 12)
			if got, want := validText([]byte(sample)), utf8.ValidString(sample); got != want {
				t.Fatalf("%q: %v, want %v", sample, got, want)
			}
		}
	}
}

func FuzzValidText(f *testing.F) {
	for _, s := range borders() {
		f.Add([]byte("\u5929\u5929" + s + "\u044f\u044f\u044f\u044f\u044f" + s + "abcdefgh"))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		if got, want := validText(p), utf8.Valid(p); got != want {
			t.Fatalf("%q: %v, want %v", p, got, want)
		}
	})
}
