package e2btest

import (
	"context"
	"time"

	"github.com/afield-dev/afield/pkg/backend/e2b/wire"
)

// subscriber is a client that reads a program's events. One that does not read
// holds up the program.
type subscriber struct {
	events chan wire.ProcessEvent
	gone   chan struct{}
}

// publish gives an event to all who listen, waiting for each; without
// listeners it is lost.
func (p *process) publish(ev wire.ProcessEvent) {
	p.mu.Lock()
	subs := make([]*subscriber, 0, len(p.subs))
	for s := range p.subs {
		subs = append(subs, s)
	}
	p.mu.Unlock()
	for _, s := range subs {
		select {
		case s.events <- ev:
		case <-s.gone:
		}
	}
}

func (p *process) subscribe() (*subscriber, *wire.EndEvent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &subscriber{events: make(chan wire.ProcessEvent), gone: make(chan struct{})}
	if p.ended == nil {
		p.subs[s] = true
	}
	return s, p.ended
}

func (p *process) unsubscribe(s *subscriber) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.subs, s)
	close(s.gone)
}

// forward sends a program's events to a client until the end.
func (c *call) forward(p *process, s *subscriber, ended *wire.EndEvent, send func(any) error) error {
	if err := send(wire.StartResponse{Event: wire.ProcessEvent{Start: &wire.StartEvent{PID: uint32(p.pid)}}}); err != nil {
		return err
	}
	if ended != nil {
		return send(wire.StartResponse{Event: wire.ProcessEvent{End: ended}})
	}
	tick := time.NewTicker(c.keepalive)
	defer tick.Stop()
	for {
		ev := wire.ProcessEvent{Keepalive: &struct{}{}}
		select {
		case ev = <-s.events:
		case <-tick.C:
		case <-c.ctx.Done():
			return context.Cause(c.ctx)
		}
		if err := send(wire.StartResponse{Event: ev}); err != nil || ev.End != nil {
			return err
		}
	}
}
