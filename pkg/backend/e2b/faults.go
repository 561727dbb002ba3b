package e2b

import (
	"errors"
	"io/fs"
	"net"
	"net/http"

	"github.com/afield-dev/afield/pkg/backend/e2b/wire"
	"github.com/afield-dev/afield/pkg/fault"
)

// refused gives the error of an answer or a connection that says something of
// the world as a whole, and nil for one that is about the call: the daemon's
// own refusals and connections that broke under way.
func refused(err error) *fault.Error {
	var e *wire.Error
	if !errors.As(err, &e) {
		return unreachable(err)
	}
	if !e.Edge && e.Code != wire.CodeUnavailable && e.Code != wire.CodeUnauthenticated {
		return nil
	}
	switch {
	case e.Status == http.StatusBadGateway:
		return gone(err)
	case e.Status == http.StatusUnauthorized, e.Status == http.StatusForbidden, e.Code == wire.CodeUnauthenticated:
		return world(err, fault.BackendAuthFailed, "e2b refused us: %s", detail(e)).
			WithHint("check the API key and the user of the profile's row")
	case e.Status == http.StatusTooManyRequests && e.RetryAfter >= 0:
		return world(err, fault.BackendRateLimited, "e2b asks for fewer requests: %s", detail(e)).
			WithHint("try again in %d s", e.RetryAfter).WithRetry(fault.RetrySafe)
	case e.Status == http.StatusTooManyRequests:
		return world(err, fault.BackendQuota, "the limit of the e2b account is reached: %s", detail(e)).
			WithHint("end sandboxes that are not needed: `afield sandbox list`, `afield sandbox gc`").WithRetry(fault.RetrySafe)
	case e.Status == http.StatusConflict:
		return world(err, fault.BackendConflict, "the e2b sandbox is changing its state: %s", detail(e)).
			WithHint("try again in a moment").WithRetry(fault.RetrySafe)
	case e.Status == http.StatusServiceUnavailable, e.Status == http.StatusGatewayTimeout:
		return world(err, fault.BackendUnreachable, "e2b does not answer: %s", detail(e)).
			WithHint("try again later").WithRetry(fault.RetryUnknown)
	}
	return nil
}

// unreachable gives the error of a connection that could not be made.
func unreachable(err error) *fault.Error {
	var op *net.OpError
	var dns *net.DNSError
	if errors.As(err, &dns) || errors.As(err, &op) && op.Op == "dial" {
		return world(err, fault.BackendUnreachable, "e2b cannot be reached: %s", innermost(err)).
			WithHint("check the network, and apiUrl, sandboxUrl and domain of the profile's row").WithRetry(fault.RetrySafe)
	}
	return nil
}

// gone is the error of a sandbox that no longer exists.
func gone(err error) *fault.Error {
	return world(err, fault.BackendWorldGone, "the e2b sandbox no longer exists or is paused").
		WithHint("`afield sandbox list` shows what there is; `afield sandbox create` makes a new one")
}

// world makes an error about the world, without a path.
func world(err error, code fault.Code, format string, args ...any) *fault.Error {
	e := fault.Wrap(err, code, "", "", format, args...)
	e.Backend = name
	return e
}

// detail is the server's own words for people; nothing decides by them.
func detail(e *wire.Error) string {
	if e.Message != "" {
		return e.Message
	}
	return "HTTP " + http.StatusText(e.Status)
}

func innermost(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}

// fileError gives the error of a call about a file as the contract's core
// expects it: something about the world, or a system error, or FS_IO_ERROR with
// the server's words.
func fileError(err error) error {
	if err == nil || fault.CodeOf(err) != "" {
		return err
	}
	if f := refused(err); f != nil {
		return f
	}
	var e *wire.Error
	if !errors.As(err, &e) {
		return err
	}
	if isAbsent(e) {
		return fs.ErrNotExist
	}
	if e.Status == http.StatusInsufficientStorage {
		return errors.New("no space left in the sandbox")
	}
	return errors.New(detail(e))
}

// isAbsent reports whether an answer says that there is nothing of that name.
func isAbsent(err error) bool {
	var e *wire.Error
	return fault.CodeOf(err) == "" && errors.As(err, &e) && (e.Code == wire.CodeNotFound || e.Edge && e.Status == http.StatusNotFound)
}

// isInternal reports whether the daemon met a system error that it does not
// name.
func isInternal(err error) bool {
	var e *wire.Error
	return fault.CodeOf(err) == "" && errors.As(err, &e) && !e.Edge && e.Code == wire.CodeInternal
}
