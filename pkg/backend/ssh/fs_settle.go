package ssh

import (
	"context"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
	"github.com/afield-dev/afield/pkg/script"
)

// settling is a write whose answer was lost.
type settling struct {
	key, folder string
	complete    bool // all of the content may have arrived
	size        int64
	sum         string
}

// settle looks what became of a write whose connection was lost around its
// commit (S-13). It never publishes again.
func (d *shellFiles) settle(ctx context.Context, w settling, cause error) (remotefs.WriteResult, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*d.sh.dialer.settings.ConnectTimeout)
	defer cancel()
	c := script.Settle(w.key, w.folder)
	var now script.Settled
	err := d.sh.ask(ctx, c, func(a *script.Answer) (err error) {
		now, err = script.ReadSettle(a, c)
		return err
	})
	switch {
	case err == nil && !now.Staged && now.Facts != nil && now.Size == w.size && now.Sum == w.sum:
		return remotefs.WriteResult{Key: w.key, Operation: remotefs.OpUpdate, Version: now.Facts.Version, Bytes: w.size}, nil
	case !w.complete, err == nil && now.Staged:
		return remotefs.WriteResult{}, &fault.Error{Code: fault.FSIOError, Retry: fault.RetrySafe, Err: cause,
			Message: "cannot write " + quoted(w.key) + ": " + cause.Error() + " before the commit; nothing has changed"}
	}
	return remotefs.WriteResult{}, &fault.Error{Code: fault.FSIOError, Retry: fault.RetryUnknown, Err: cause,
		Message: "cannot write " + quoted(w.key) + ": " + cause.Error() + "; whether the write took effect is unknown",
		Hint:    "read the file before trying again"}
}

func quoted(s string) string { return `"` + s + `"` }
