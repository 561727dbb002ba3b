package mount

import (
	"context"
	"errors"
	"strings"
	"unicode"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/mount/ledger"
)

// ledgerFault gives an error of the store its code.
func ledgerFault(ctx context.Context, err error, session string) error {
	switch {
	case fault.CodeOf(err) != "":
		return err
	case ctx.Err() != nil:
		return fault.Aborted(ctx, fault.FSAborted, "mount", session)
	case errors.Is(err, ledger.ErrBusy):
		return fault.Wrap(err, fault.FSIOError, "mount", session, "cannot use session %s: another process holds it", session).
			WithHint("try again, or wait longer with --lock-timeout").WithRetry(fault.RetrySafe)
	}
	return fault.Wrap(err, fault.FSIOError, "mount", session, "cannot use the ledger of session %s: %s", session, err).
		WithHint("put AFIELD_STATE_DIR on a local disk that can be written")
}

// foldCase gives one spelling for all that differ in case only.
func foldCase(s string) string { return strings.ToLower(s) }

// swapCase gives the other case of a path component, or false if it has no
// letters: what a probe for case folding looks up.
func swapCase(name string) (string, bool) {
	swapped := strings.Map(func(r rune) rune {
		if unicode.IsUpper(r) {
			return unicode.ToLower(r)
		}
		return unicode.ToUpper(r)
	}, name)
	return swapped, swapped != name
}

// IsBusy reports whether an error says that another process holds the session.
func IsBusy(err error) bool { return errors.Is(err, ledger.ErrBusy) }
