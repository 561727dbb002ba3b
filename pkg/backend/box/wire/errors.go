package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Error is a failed request.
type Error struct {
	// Status is that of the HTTP answer; 0 = there was none.
	Status int
	// Text is one line: the server's own words or ours, never with the key.
	Text string
	// RetryAfter is what the server asked for; 0 = nothing.
	RetryAfter time.Duration
	// Sent: a connection was there, so that the request may have been acted on
	// although no answer came. With a Status it has been seen.
	Sent bool
	// Corrupt: the answer does not fit the protocol.
	Corrupt bool
	// Session: the message of an "error" frame of an exec session.
	Session bool
	// Slow: our own limit for the request passed.
	Slow bool
	Err  error
}

// Error gives the text.
func (e *Error) Error() string { return e.Text }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Unknown reports whether the request may have taken effect: it was sent, and
// no answer says what became of it. The service also answers 500 when a command
// outlives its limit and runs on.
func (e *Error) Unknown() bool {
	return e.Sent && (e.Status == 0 || e.Corrupt || e.Status >= 500)
}

// StatusOf gives the HTTP status of err, or 0.
func StatusOf(err error) int {
	var e *Error
	if errors.As(err, &e) {
		return e.Status
	}
	return 0
}

// errSlow ends a request that takes longer than its limit.
var errSlow = errors.New("the service did not answer in time")

// failed makes the error of a request without an answer.
func (c *Client) failed(ctx context.Context, err error, sent bool) *Error {
	e := &Error{Sent: sent, Err: err, Text: c.clean(err.Error())}
	if cause := context.Cause(ctx); cause != nil {
		e.Err, e.Text = cause, cause.Error()
		e.Slow = errors.Is(cause, errSlow) || errors.Is(cause, errStart)
	}
	return e
}

// refused makes the error of an answer that is not a success.
func (c *Client) refused(resp *http.Response, body []byte) *Error {
	return &Error{
		Status:     resp.StatusCode,
		Text:       c.clean(serverText(resp.StatusCode, body)),
		RetryAfter: parseRetryAfter(resp.Header.Get("Retry-After"), time.Now()),
		Sent:       true,
	}
}

// serverText gives the words of an error body.
func serverText(status int, body []byte) string {
	var reply struct {
		Error   any `json:"error"`
		Message any `json:"message"`
	}
	if json.Unmarshal(body, &reply) == nil {
		for _, v := range []any{reply.Error, reply.Message} {
			if s, ok := v.(string); ok && s != "" {
				return s
			}
		}
	}
	return fmt.Sprintf("Request failed with status %d", status)
}

// clean makes one line of bounded length without the key.
func (c *Client) clean(s string) string {
	if c.cfg.Key != "" {
		s = strings.ReplaceAll(s, c.cfg.Key, "***")
	}
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
	if len(s) > 400 {
		s = strings.ToValidUTF8(s[:400], "") + "…"
	}
	return s
}

// parseRetryAfter reads seconds or an HTTP date.
func parseRetryAfter(s string, now time.Time) time.Duration {
	if s == "" {
		return 0
	}
	if n, err := strconv.ParseInt(s, 10, 32); err == nil {
		return time.Duration(max(n, 0)) * time.Second
	}
	if t, err := http.ParseTime(s); err == nil {
		return max(t.Sub(now), 0)
	}
	return 0
}

// maxWait bounds one wait between tries, whatever the server asks for.
const maxWait = 30 * time.Second

// retryAfter says whether a failed call may be repeated after its try-th try,
// and when. A GET is repeated three times. A POST is repeated only when nothing
// of it was sent, or when the server refused to look at it (429).
func retryAfter(method string, err error, try int) (time.Duration, bool) {
	waits := [...]time.Duration{250 * time.Millisecond, time.Second, 3 * time.Second}
	var e *Error
	if try >= len(waits) || !errors.As(err, &e) || e.Corrupt || e.Slow {
		return 0, false
	}
	wait := waits[try]
	if e.RetryAfter > 0 {
		wait = min(e.RetryAfter, maxWait)
	}
	switch e.Status {
	case http.StatusTooManyRequests:
		return wait, true
	case 0:
		return wait, method == http.MethodGet || !e.Sent
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return wait, method == http.MethodGet
	}
	return 0, false
}
