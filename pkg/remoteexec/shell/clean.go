package shell

import "strings"

// Clean makes the output of a terminal line-oriented (TS-12): CSI, OSC and
// two-byte escapes and BEL are removed, CR LF and a lone CR become LF, and what
// is no UTF-8 becomes U+FFFD.
func Clean(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c == 0x1b:
			i += escape(s[i:])
			continue
		case c == '\r':
			b.WriteByte('\n')
			if i+1 < len(s) && s[i+1] == '\n' {
				i++
			}
		case c == 0x07:
		default:
			b.WriteByte(c)
		}
		i++
	}
	return strings.ToValidUTF8(b.String(), "\uFFFD")
}

// escape gives the length of the escape sequence at the beginning of s; one that
// is not finished reaches to the end.
func escape(s string) int {
	if len(s) < 2 {
		return len(s)
	}
	switch s[1] {
	case '[': // CSI: up to a byte of 0x40 to 0x7e
		for i := 2; i < len(s); i++ {
			if s[i] >= 0x40 && s[i] <= 0x7e {
				return i + 1
			}
		}
		return len(s)
	case ']', 'P', '^', '_': // strings: up to BEL or ST
		for i := 2; i < len(s); i++ {
			if s[i] == 0x07 {
				return i + 1
			}
			if s[i] == 0x1b && i+1 < len(s) && s[i+1] == '\\' {
				return i + 2
			}
		}
		return len(s)
	}
	return 2
}
