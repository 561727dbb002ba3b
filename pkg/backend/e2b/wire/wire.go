// Package wire is the protocol of the E2B service: the REST control plane that
// makes and ends sandboxes, and the daemon inside each sandbox that serves
// files and processes by Connect RPC (JSON codec) and a small file API.
//
// It imports nothing of ours, so that a stand-in server can be built on the
// same messages and be held to the published protocol by the official clients.
// Clients may be used from several goroutines; every call takes a context and
// ends with it.
package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Port is the port of the daemon inside a sandbox.
const Port = 49983

// Headers of the daemon's requests.
const (
	HeaderSandboxID   = "E2b-Sandbox-Id"
	HeaderSandboxPort = "E2b-Sandbox-Port"
	HeaderAccessToken = "X-Access-Token"
	HeaderAPIKey      = "X-API-Key"
	HeaderKeepalive   = "Keepalive-Ping-Interval"
	HeaderTimeout     = "Connect-Timeout-Ms"
	HeaderNextToken   = "X-Next-Token"
	HeaderMetadata    = "X-Metadata-"
)

// MetadataXattr is the prefix of the extended attributes that hold a file's
// metadata.
const MetadataXattr = "user.e2b."

// Codes of Connect that the daemon uses.
const (
	CodeInvalidArgument    = "invalid_argument"
	CodeUnauthenticated    = "unauthenticated"
	CodePermissionDenied   = "permission_denied"
	CodeNotFound           = "not_found"
	CodeAlreadyExists      = "already_exists"
	CodeFailedPrecondition = "failed_precondition"
	CodeUnimplemented      = "unimplemented"
	CodeInternal           = "internal"
	CodeDeadlineExceeded   = "deadline_exceeded"
	CodeCanceled           = "canceled"
	CodeUnknown            = "unknown"
	CodeUnavailable        = "unavailable"
)

// Int64 is an int64 in JSON: written as text, read as text or number.
type Int64 int64

// MarshalJSON writes decimal text.
func (n Int64) MarshalJSON() ([]byte, error) {
	return []byte(`"` + strconv.FormatInt(int64(n), 10) + `"`), nil
}

// UnmarshalJSON reads decimal text or a number.
func (n *Int64) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseInt(strings.Trim(string(b), `"`), 10, 64)
	*n = Int64(v)
	return err
}

// Error is an answer that refuses.
type Error struct {
	Method string // what was asked, for messages
	Status int    // of HTTP; 200 when a stream ended with an error
	// Code is the Connect code; one made from the status when the answer came
	// from in front of the daemon (Edge).
	Code    string
	Message string
	// ErrorCode is the control plane's own word, an open set.
	ErrorCode string
	// Edge: the answer was not made by the RPC layer, so that Status and not
	// Code tells what it means.
	Edge bool
	// RetryAfter is the header's value in seconds, -1 without one.
	RetryAfter int
}

// Error gives the method, the status and the message.
func (e *Error) Error() string {
	text := e.Message
	if text == "" {
		text = "no explanation"
	}
	return fmt.Sprintf("%s: %s (HTTP %d, %s)", e.Method, text, e.Status, e.Code)
}

// CodeOf gives the Connect code of err, or "".
func CodeOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// StatusOf gives the HTTP status of err, or 0.
func StatusOf(err error) int {
	var e *Error
	if errors.As(err, &e) {
		return e.Status
	}
	return 0
}

// errorBody is the body of a refusal: Connect's, the control plane's, or that
// of a proxy in front; the kind of "code" tells them apart.
type errorBody struct {
	Code      json.RawMessage `json:"code"`
	Message   string          `json:"message"`
	ErrorCode string          `json:"error_code"`
}

// newError makes the Error of an answer.
func newError(method string, status int, body []byte, retryAfter string) *Error {
	e := &Error{Method: method, Status: status, Edge: true, RetryAfter: -1}
	if n, err := strconv.Atoi(retryAfter); err == nil && n >= 0 {
		e.RetryAfter = n
	}
	var b errorBody
	if json.Unmarshal(body, &b) == nil {
		e.Message, e.ErrorCode = b.Message, b.ErrorCode
		var code string
		if json.Unmarshal(b.Code, &code) == nil && code != "" {
			e.Code, e.Edge = code, false
			return e
		}
	} else {
		e.Message = firstLine(body)
	}
	e.Code = codeOfStatus(status)
	return e
}

func firstLine(body []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(body)), "\n")
	return line[:min(len(line), 300)]
}

// codeOfStatus is the table that Connect prescribes for answers without a code.
func codeOfStatus(status int) string {
	switch status {
	case 400:
		return CodeInternal
	case 401:
		return CodeUnauthenticated
	case 403:
		return CodePermissionDenied
	case 404:
		return CodeUnimplemented
	case 429, 502, 503, 504:
		return CodeUnavailable
	}
	return CodeUnknown
}
