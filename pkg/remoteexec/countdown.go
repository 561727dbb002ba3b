package remoteexec

import (
	"context"
	"time"
)

// ticks is into how many parts a countdown divides its time.
const ticks = 20

// Countdown gives a context that ends d from now, as long as this process gets
// its turn: time in which it does not run at all counts as one part of d at
// most. A drain must not cut off bytes that lie ready and only wait for their
// reader's turn. The caller calls the function when it needs no more of it.
func Countdown(d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		t := time.NewTicker(max(d/ticks, 1))
		defer t.Stop()
		for range ticks {
			select {
			case <-t.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, cancel
}
