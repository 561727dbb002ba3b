package keeper

import (
	"context"
	"errors"
	"sync"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/fault"
)

// pool gives worlds to callers: the one that all share, or one for each.
type pool struct {
	shared bool
	open   func(ctx context.Context, c Caller) (backend.World, error)

	mu   sync.Mutex
	all  map[*lease]bool
	base *lease // the shared one; nil until somebody asks, and after it has failed
}

// lease is a world with the count of those who use it.
type lease struct {
	pool  *pool
	ready chan struct{} // closed when world or err is there
	world backend.World
	err   error

	// Under the pool's lock.
	users int
	stale bool // nobody is given it any more
}

// take gives a world to a caller, who gives it back by drop. A shared one is
// opened once, whichever caller asked first and whether or not it still waits.
func (p *pool) take(ctx context.Context, c Caller) (*lease, error) {
	p.mu.Lock()
	l := p.base
	if l == nil || l.stale {
		l = &lease{pool: p, ready: make(chan struct{})}
		if p.all == nil {
			p.all = map[*lease]bool{}
		}
		p.all[l] = true
		if p.shared {
			p.base = l
			l.users++ // the pool itself
		}
		go l.begin(c)
	}
	l.users++
	p.mu.Unlock()
	select {
	case <-l.ready:
	case <-ctx.Done():
		l.drop()
		return nil, fault.Aborted(ctx, fault.FSAborted, "open", "")
	}
	if l.err != nil {
		l.drop()
		return nil, l.err
	}
	return l, nil
}

// begin opens the world.
func (l *lease) begin(c Caller) {
	l.world, l.err = l.pool.open(context.Background(), c)
	close(l.ready)
	if l.err != nil {
		l.pool.discard(l)
	}
}

// use counts one more user of a world that the caller has.
func (l *lease) use() *lease {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	l.users++
	return l
}

// drop gives the world back; the last one to do so closes it.
func (l *lease) drop() {
	p := l.pool
	p.mu.Lock()
	l.users--
	last := l.users == 0
	if last {
		delete(p.all, l)
	}
	p.mu.Unlock()
	if last {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), shutTime)
			defer cancel()
			l.close(ctx)
		}()
	}
}

func (l *lease) close(ctx context.Context) error {
	<-l.ready
	if l.world == nil {
		return nil
	}
	return l.world.Close(ctx)
}

// discard makes the pool open a new world for the next caller.
func (p *pool) discard(l *lease) {
	p.mu.Lock()
	first := p.base == l && !l.stale
	if first {
		l.stale, p.base = true, nil
	}
	p.mu.Unlock()
	if first {
		l.drop()
	}
}

// failed is told the errors that callers get: after one that says that the world
// or the way to it is gone, the next caller gets a new one.
func (p *pool) failed(err error) {
	switch fault.CodeOf(err) {
	case fault.BackendWorldGone, fault.BackendUnreachable, fault.BackendAuthFailed, fault.BackendProtocol,
		fault.ExecTransportLost, fault.ExecTransportCorrupt, fault.ExecDisposing,
		fault.PluginCrashed, fault.PluginProtocol:
	default:
		return
	}
	p.mu.Lock()
	l := p.base
	p.mu.Unlock()
	if l != nil {
		p.discard(l)
	}
}

// shut closes all worlds.
func (p *pool) shut(ctx context.Context) error {
	p.mu.Lock()
	var leases []*lease
	for l := range p.all {
		leases = append(leases, l)
	}
	p.mu.Unlock()
	var errs []error
	for _, l := range leases {
		errs = append(errs, l.close(ctx))
	}
	return errors.Join(errs...)
}

// connected reports whether a world is open.
func (p *pool) connected() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.all {
		select {
		case <-l.ready:
			return true
		default:
		}
	}
	return false
}
