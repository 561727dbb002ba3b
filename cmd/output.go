package cmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/afield-dev/afield/pkg/fault"
)

// writeJSON writes one document and a newline. HTML is not escaped: the reader
// is a program.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// failure is the error line of --json. Absent facts are null.
type failure struct {
	Code      *fault.Code `json:"code"`
	Message   string      `json:"message"`
	Op        *string     `json:"op"`
	Path      *string     `json:"path"`
	Backend   *string     `json:"backend"`
	Hint      *string     `json:"hint"`
	Retryable *bool       `json:"retryable"`
	Exit      int         `json:"exit"`
}

func newFailure(err error, status int) failure {
	f := failure{Message: err.Error(), Exit: status}
	var e *fault.Error
	if !errors.As(err, &e) {
		return f
	}
	f.Code, f.Op, f.Path = &e.Code, orNull(e.Op), orNull(e.Path)
	f.Backend, f.Hint = orNull(e.Backend), orNull(e.Hint)
	if e.Retry != fault.RetryUnknown {
		retryable := e.Retry == fault.RetrySafe
		f.Retryable = &retryable
	}
	return f
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// writeFailure writes one line for a script or for a person: what was tried, on
// what, why, and the next step.
func writeFailure(w io.Writer, err error, status int, asJSON bool) {
	f := newFailure(err, status)
	if asJSON {
		writeJSON(w, map[string]failure{"error": f})
		return
	}
	line := "afield: " + oneLine(f.Message)
	if f.Code != nil {
		line += " [" + string(*f.Code) + "]"
	}
	if f.Hint != nil && !strings.Contains(f.Message, *f.Hint) {
		line += "\n  hint: " + oneLine(*f.Hint)
	}
	fmt.Fprintln(w, line)
}

// oneLine keeps a message on one line and its control characters visible.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7F {
			return '\uFFFD'
		}
		return r
	}, strings.ReplaceAll(s, "\n", " "))
}

// note writes a line of diagnostics, unless --quiet forbids it.
func (a *app) note(format string, args ...any) {
	if !a.flags.quiet {
		fmt.Fprintln(a.Err, "afield: "+oneLine(a.mask(fmt.Sprintf(format, args...))))
	}
}

// octal gives permission bits as scripts see them: "0644".
func octal(mode int) string { return fmt.Sprintf("%04o", mode) }
