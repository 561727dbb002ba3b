package box

import (
	"context"
	"errors"
	"net/http"

	"github.com/afield-dev/afield/pkg/backend/box/wire"
	"github.com/afield-dev/afield/pkg/fault"
)

// world makes an error about the world, without a path.
func world(err error, code fault.Code, format string, args ...any) *fault.Error {
	e := fault.Wrap(err, code, "", "", format, args...)
	e.Backend = name
	return e
}

// remote gives the error of a failed request. The caller has dealt with the
// meanings of 404 that are its own.
func remote(err error) error {
	var e *wire.Error
	switch {
	case err == nil || fault.CodeOf(err) != "":
		return err
	case errors.Is(err, wire.ErrCreation), errors.Is(err, wire.ErrNotReady):
		return world(err, fault.BackendUnreachable, "box: %s; it has been deleted again", err).
			WithHint("try again; another size, runtime or snapshot may help").WithRetry(fault.RetrySafe)
	case !errors.As(err, &e):
		return err
	}
	switch {
	case e.Corrupt:
		return world(err, fault.BackendProtocol, "box: %s", e.Text).WithRetry(retry(e))
	case e.Status == http.StatusUnauthorized, e.Status == http.StatusForbidden:
		return world(err, fault.BackendAuthFailed, "box refused the API key: %s", e.Text).
			WithHint("check UPSTASH_BOX_API_KEY, or apiKey in the profile's row")
	case e.Status == http.StatusPaymentRequired:
		return world(err, fault.BackendQuota, "the box account's limit is reached: %s", e.Text).
			WithHint("`afield sandbox list` shows the boxes, `afield sandbox gc` ends those that nobody uses")
	case e.Status == http.StatusNotFound:
		return gone(err)
	case e.Status == http.StatusConflict:
		return world(err, fault.BackendConflict, "box: %s", e.Text).
			WithHint("choose another name, or set reuse: true in the profile's row")
	case e.Status == http.StatusRequestEntityTooLarge:
		return world(err, fault.FSTooLarge, "the content is above the service's limit: %s", e.Text)
	case e.Status == http.StatusTooManyRequests:
		return world(err, fault.BackendRateLimited, "box asks for fewer requests: %s", e.Text).
			WithHint("try again later; `afield sandbox list` shows the boxes that count").WithRetry(fault.RetrySafe)
	case e.Status/100 == 4:
		return world(err, fault.BackendProtocol, "box refused the request: %s", e.Text)
	}
	return unreachable(err, e)
}

// unreachable is the error of a service that fails or does not answer.
func unreachable(err error, e *wire.Error) error {
	text := "box cannot be reached: %s"
	if e.Status != 0 {
		text = "box failed: %s"
	}
	if e.Slow {
		text = "box: %s"
	}
	return world(err, fault.BackendUnreachable, text, e.Text).WithRetry(retry(e)).
		WithHint("try again; if it lasts, check the network and baseUrl in the profile's row")
}

func retry(e *wire.Error) fault.Retry {
	if e.Unknown() {
		return fault.RetryUnknown
	}
	return fault.RetrySafe
}

// gone is the error of a box that does not exist any more.
func gone(err error) *fault.Error {
	return world(err, fault.BackendWorldGone, "the box does not exist or has been deleted").
		WithHint("`afield sandbox list` shows what there is; `afield sandbox create` makes a new one")
}

// aborted gives the error of a call whose ctx has ended before anything was
// done.
func aborted(ctx context.Context, op string) error {
	return fault.Aborted(ctx, fault.ExecCancelled, op, "")
}

// needsForm is the error of a row that names no box.
func needsForm() error {
	return world(nil, fault.ProfileInvalid, "the profile names no box to use").
		WithHint("set sandbox: ID, create: true or perCommand: true in its row; `afield sandbox create` prints an id")
}
