package remotefs

import (
	"errors"

	"github.com/afield-dev/afield/pkg/fault"
)

// Advise appends the next step to the message of a refused guard, for people
// (remotefs.md 16). The code stays and err is kept as the cause; no other error
// is changed.
func Advise(err error) error {
	var e *fault.Error
	if !errors.As(err, &e) {
		return err
	}
	more := *e
	more.Err = err
	switch e.Code {
	case fault.FSStaleVersion:
		more.Message += " — re-read the file, then retry"
	case fault.FSNotObserved:
		more.Message += " — read the file, then retry"
	default:
		return err
	}
	return &more
}
