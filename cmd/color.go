package cmd

import (
	"strings"
	"unicode"
)

// color is the parameter of an SGR escape sequence.
type color string

const (
	red   color = "31"
	green color = "32"
	blue  color = "1;34"
	cyan  color = "36"
)

// paint colours s for stdout, where colour is wanted.
func (a *app) paint(c color, s string) string {
	if !a.wantsColor() {
		return s
	}
	return "\x1b[" + string(c) + "m" + s + "\x1b[0m"
}

// wantsColor reports whether stdout gets colour: as --color says, else on a
// terminal that is not dumb, unless NO_COLOR is set.
func (a *app) wantsColor() bool {
	switch a.flags.color {
	case "always":
		return true
	case "never":
		return false
	}
	return a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb" && a.Terminal(a.Out)
}

// visible shows a name on a terminal without letting it drive the terminal.
func visible(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return '?'
		}
		return r
	}, name)
}
