package provider

import (
	"errors"
	"strings"

	"github.com/afield-dev/afield/pkg/fault"
)

// maxMessage bounds the text of an error, in bytes (plugins.md 37).
const maxMessage = 1024

// errEnded is the cause of a stream's context after its END.
var errEnded = errors.New("the call has ended")

// wireError is an error on the wire (plugins.md 37).
type wireError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Op      string `json:"op,omitempty"`
	Path    string `json:"path,omitempty"`
	Hint    string `json:"hint,omitempty"`
	Retry   string `json:"retry"`
	Errno   string `json:"errno,omitempty"` // name of the system error, at driver level
}

// words are the codes of the protocol that differ from those of the command
// line.
var words = [...]struct {
	wire string
	code fault.Code
}{
	{"CONFIG_INVALID", fault.ProfileInvalid},
	{"AUTH_FAILED", fault.BackendAuthFailed},
	{"UNREACHABLE", fault.BackendUnreachable},
	{"RATE_LIMITED", fault.BackendRateLimited},
	{"UNSUPPORTED", fault.BackendUnsupported},
	{"world-gone", fault.BackendWorldGone},
	{"internal", fault.BackendInternal},
	{"EXISTS", fault.FSNotObserved},
	{"NO_SUCH_GROUP", fault.ExecSignalNotDelivered},
}

// encodeError gives the wire form of an error: file codes as they are, kinds of
// processes in their own spelling.
func encodeError(err error) wireError {
	var e *fault.Error
	if !errors.As(err, &e) {
		return wireError{Code: "internal", Message: clip(err.Error()), Retry: "no"}
	}
	return wireError{Code: wireCode(e.Code), Message: clip(e.Message), Op: e.Op, Path: e.Path, Hint: e.Hint, Retry: retryWord(e.Retry)}
}

func wireCode(code fault.Code) string {
	for _, w := range words {
		if w.code == code && w.code != fault.FSNotObserved && w.code != fault.ExecSignalNotDelivered {
			return w.wire
		}
	}
	if kind, ok := strings.CutPrefix(string(code), "EXEC_"); ok {
		return strings.ReplaceAll(strings.ToLower(kind), "_", "-")
	}
	for _, prefix := range [...]string{"FS_", "SEARCH_", "BACKEND_", "PLUGIN_", string(fault.Usage)} {
		if strings.HasPrefix(string(code), prefix) {
			return string(code)
		}
	}
	return "internal"
}

// decode gives the error of a wire form. A code that the protocol does not know
// becomes BACKEND_INTERNAL.
func (w *wireError) decode() error {
	e := fault.New(w.code(), w.Op, w.Path, "%s", clip(w.Message))
	e.Hint = w.Hint
	if n := errnoNamed(w.Errno); n != 0 {
		e.Err = n
	}
	switch w.Retry {
	case "safe":
		e.Retry = fault.RetrySafe
	case "unknown":
		e.Retry = fault.RetryUnknown
	}
	return e
}

func (w *wireError) code() fault.Code {
	for _, x := range words {
		if x.wire == w.Code {
			return x.code
		}
	}
	for _, code := range fault.Codes() {
		if wireCode(code) == w.Code {
			return code
		}
	}
	return fault.BackendInternal
}

func retryWord(r fault.Retry) string {
	switch r {
	case fault.RetrySafe:
		return "safe"
	case fault.RetryUnknown:
		return "unknown"
	}
	return "no"
}

// clip keeps a message on one line and within its bound.
func clip(s string) string {
	s = strings.ToValidUTF8(strings.ReplaceAll(s, "\n", " "), "\uFFFD")
	if len(s) > maxMessage {
		s = strings.ToValidUTF8(s[:maxMessage], "")
	}
	return s
}
