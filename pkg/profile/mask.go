package profile

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// masked stands for a value that is not shown, whatever its length.
const masked = "***"

// minMasked is the length from which a resolved secret is masked: shorter ones
// would blank out ordinary text.
const minMasked = 6

// addMasks notes the forms in which a secret must not be shown: as it is, in
// base64 at each alignment, and percent-encoded.
func (s *Secrets) addMasks(secret string) {
	if len(secret) < minMasked {
		return
	}
	forms := []string{secret, url.QueryEscape(secret), url.PathEscape(secret), percentEncoded(secret), quotedInside(secret)}
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for shift := range 3 {
			forms = append(forms, alignedBase64(enc, secret, shift))
		}
	}
	for _, form := range forms {
		if len(form) >= minMasked && !slices.Contains(s.masks, form) {
			s.masks = append(s.masks, form)
		}
	}
	slices.SortFunc(s.masks, func(a, b string) int { return len(b) - len(a) })
}

// alignedBase64 gives the characters that stand for the secret whole when shift
// bytes come before it in the encoded text.
func alignedBase64(enc *base64.Encoding, secret string, shift int) string {
	text := enc.EncodeToString([]byte(strings.Repeat("\x00", shift) + secret))
	first := (shift*8 + 5) / 6
	last := (shift + len(secret)) * 8 / 6
	return text[first:last]
}

func percentEncoded(secret string) string {
	var b strings.Builder
	for i := range len(secret) {
		fmt.Fprintf(&b, "%%%02X", secret[i])
	}
	return b.String()
}

// quotedInside is the form that messages with quoted text contain.
func quotedInside(secret string) string {
	quoted := strconv.Quote(secret)
	return quoted[1 : len(quoted)-1]
}

// Mask gives text with every resolved secret replaced. It is for text from a
// provider: errors, log records, captured diagnostics; not for output of the
// executed program, which is data.
func (s *Secrets) Mask(text string) string {
	s.mu.Lock()
	masks := s.masks
	s.mu.Unlock()
	for _, m := range masks {
		text = strings.ReplaceAll(text, m, masked)
	}
	return text
}
