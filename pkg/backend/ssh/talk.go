package ssh

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/script"
)

// talk runs a call that takes content. ctx counts until committed is called.
func (sh *shell) talk(ctx context.Context, c script.Call, f func(s *session, a *script.Answer, committed func()) error) error {
	s, a, err := sh.start(ctx, c)
	if err != nil {
		return err
	}
	defer s.close()
	var once sync.Once
	over := make(chan struct{})
	defer close(over)
	stop := context.AfterFunc(ctx, func() {
		// Whoever sends content looks at ctx himself and lets the program clean up;
		// one that is stuck is cut off.
		select {
		case <-over:
		case <-time.After(time.Second):
			s.close()
		}
	})
	committed := func() { once.Do(func() { stop() }) }
	defer committed()
	err = f(s, a, committed)
	if err != nil {
		s.giveUp()
	}
	var known *fault.Error
	var content *contentFailed
	var refused *script.Failure
	if err == nil || errors.As(err, &known) || errors.As(err, &refused) || errors.As(err, &content) {
		return sh.moved(refused, err)
	}
	if ctx.Err() == nil && errors.Is(err, script.ErrNoMarker) && !sh.plain.Load() {
		sh.plain.Store(true)
		return sh.talk(ctx, c, f)
	}
	if end := s.end(context.Background()); errors.Is(end, errLost) && ctx.Err() == nil {
		return end
	}
	return sh.explain(ctx, s, err)
}
