package keeper

import (
	"encoding/json"
	"os"

	"github.com/afield-dev/afield/pkg/provider"
)

// own gives the function for a method of the keeper's own; nil for one of the
// protocol.
func (s *session) own(x *provider.Stream) func(*provider.Stream) {
	switch x.Method {
	case "exec.spawn", "term.open":
		var p struct {
			Hold json.RawMessage `json:"hold"`
		}
		if json.Unmarshal(x.Params, &p) != nil || p.Hold == nil {
			return nil
		}
		return s.hold
	case "keeper.status":
		return func(x *provider.Stream) { x.Finish(s.k.status()) }
	case "keeper.stop":
		return func(x *provider.Stream) {
			s.k.log.Info("asked to stop")
			x.Finish(struct{}{})
			s.k.end()
		}
	case "held.list":
		return s.list
	}
	if f := heldMethod(x.Method); f != nil {
		return s.about(f)
	}
	return nil
}

// heldMethod gives the function for a method about one held program.
func heldMethod(name string) func(*provider.Stream, *held, heldParams) (any, error) {
	switch name {
	case "held.read":
		return heldRead
	case "held.write":
		return heldWrite
	case "held.attach":
		return heldAttach
	case "held.wait":
		return heldWait
	case "held.drop":
		return heldDrop
	case "held.stop":
		return heldStop
	case "held.close":
		return heldClose
	case "held.resize":
		return heldResize
	case "held.inspect":
		return heldInspect
	case "held.signal":
		return heldSignal
	case "held.screen":
		return heldScreen
	case "held.run":
		return heldRun
	}
	return nil
}

func (s *session) list(x *provider.Stream) {
	list := []Info{}
	for _, h := range s.k.book.known() {
		list = append(list, h.info())
	}
	x.Finish(heldList{list})
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
