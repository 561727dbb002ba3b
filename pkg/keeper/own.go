package keeper

import (
	"os"

	"github.com/afield-dev/afield/pkg/provider"
)

// own gives the function for a method of the keeper's own; nil for one of the
// protocol.
func (s *session) own(x *provider.Stream) func(*provider.Stream) {
	switch x.Method {
	case "keeper.status":
		return func(x *provider.Stream) { x.Finish(s.k.status()) }
	case "keeper.stop":
		return func(x *provider.Stream) {
			s.k.log.Info("asked to stop")
			x.Finish(struct{}{})
			s.k.end()
		}
	}
	return nil
}

func (k *keeper) status() Status {
	k.mu.Lock()
	callers := k.callers - 1
	k.mu.Unlock()
	return Status{
		ID: k.Setup.ID, PID: os.Getpid(), Backend: k.Setup.Provider, Version: k.Version, StartedAt: k.began,
		IdleMs: k.Setup.Idle.Milliseconds(), Callers: callers, Held: k.book.count(), Connected: k.pool.connected(),
		Socket: k.Setup.Socket, Log: k.Setup.Log,
	}
}
