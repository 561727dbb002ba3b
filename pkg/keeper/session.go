package keeper

import (
	"context"
	"encoding/json"
	"path"
	"sync"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/provider"
)

// session is one caller's connection.
type session struct {
	k      *keeper
	mu     sync.Mutex
	worlds map[string]*lease
}

// open gives the caller a world. What it starts there ends with its connection,
// by the rules of the protocol; the world itself stays.
func (s *session) open(ctx context.Context, p provider.OpenParams) (backend.World, provider.Opened, error) {
	c := Caller{Cwd: string(p.Cwd)}
	if b, err := json.Marshal(p.Config); err == nil {
		json.Unmarshal(b, &c)
	}
	l, err := s.k.pool.take(ctx, c)
	if err != nil {
		return nil, provider.Opened{}, err
	}
	cwd, err := l.world.Cwd(ctx)
	if err != nil {
		l.drop()
		return nil, provider.Opened{}, err
	}
	if s.k.Setup.AnyCwd {
		cwd = within(cwd, c.Cwd)
	}
	s.mu.Lock()
	s.worlds[p.World] = l
	s.mu.Unlock()
	return &borrowed{l.world, l}, provider.Describe(l.world, cwd), nil
}

// within joins a caller's directory to that of the world.
func within(base, dir string) string {
	if path.IsAbs(dir) {
		return path.Clean(dir)
	}
	return path.Join(base, dir)
}

// borrowed is a world that its user does not end.
type borrowed struct {
	backend.World
	lease *lease
}

// Close gives the world back.
func (b *borrowed) Close(context.Context) error {
	b.lease.drop()
	return nil
}

// world gives a world that the caller has opened.
func (s *session) world(id string) (*lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.worlds[id]; l != nil {
		return l, nil
	}
	return nil, fault.New(fault.BackendWorldGone, "open", "", "there is no world %q on this connection", id)
}

// handler puts the keeper's own methods in front of those of the protocol.
func (s *session) handler(next provider.Handler) provider.Handler {
	return func(x *provider.Stream) {
		if f := s.own(x); f != nil {
			f(x)
			return
		}
		next(x)
	}
}
