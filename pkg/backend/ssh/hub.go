package ssh

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/afield-dev/afield/pkg/fault"
)

// maxConns bounds the connections to one host; each carries as many sessions as
// the server allows (MaxSessions).
const maxConns = 32

// hub is the connections to one host. A session that the server refuses goes to
// another connection; when there are enough of them, it waits for one that ends.
// All methods may run at the same time.
type hub struct {
	dialer *dialer
	trace  func(step string, roundTrips int, bytes int64)

	dialing chan struct{} // holds one token: one handshake at a time

	mu     sync.Mutex
	conns  []*conn
	freed  chan struct{} // closed and renewed when room appears
	spare  *spare        // one that is opened in advance, or nil
	closed bool
}

// conn is one connection of the hub.
type conn struct {
	*link
	dead chan struct{}

	// Under the hub's lock.
	open  int   // sessions
	limit int   // sessions that the server allows, as far as we know
	used  bool  // it has carried a session
	why   error // after dead
}

func newHub(d *dialer, trace func(string, int, int64)) *hub {
	if trace == nil {
		trace = func(string, int, int64) {}
	}
	h := &hub{dialer: d, trace: trace, freed: make(chan struct{}), dialing: make(chan struct{}, 1)}
	h.dialing <- struct{}{}
	return h
}

// reserve gives a connection with room for a session, and takes the room.
func (h *hub) reserve(ctx context.Context) (*conn, error) {
	for {
		c, freed, full, err := h.pick()
		if c != nil || err != nil {
			return c, err
		}
		if !full {
			if err := h.grow(ctx); err != nil {
				return nil, err
			}
			continue
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (h *hub) pick() (c *conn, freed chan struct{}, full bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, nil, false, fault.New(fault.BackendUnreachable, "connect", h.dialer.settings.Alias, "the connection is closed")
	}
	for _, c := range h.conns {
		if c.open < c.limit {
			c.open++
			return c, nil, false, nil
		}
	}
	return nil, h.freed, len(h.conns) >= maxConns, nil
}

// wake tells those who wait that there may be room.
func (h *hub) wake() {
	close(h.freed)
	h.freed = make(chan struct{})
}

// release gives the room of a session back.
func (h *hub) release(c *conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c.open--
	h.wake()
}

// refused notes that the server takes no further session on c. It reports whether
// the server takes none at all.
func (h *hub) refused(c *conn) (none bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c.open--
	c.limit = c.open
	if c.open > 0 {
		return false
	}
	// What it has left to do keeps the place: a program of a closed session.
	h.conns = slices.DeleteFunc(h.conns, func(o *conn) bool { return o == c })
	go c.Close()
	return !c.used
}

// grow makes one more connection, unless somebody else just did.
func (h *hub) grow(ctx context.Context) error {
	select {
	case <-h.dialing:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { h.dialing <- struct{}{} }()
	if h.hasRoom() {
		return nil
	}
	l, err := h.dialer.dial(ctx)
	if err != nil {
		return err
	}
	h.trace("connect", handshakeRoundTrips*(1+len(l.through)), 0)
	c := &conn{link: l, dead: make(chan struct{}), limit: 1 << 16}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		go l.Close()
		return fault.New(fault.BackendUnreachable, "connect", h.dialer.settings.Alias, "the connection is closed")
	}
	h.conns = append(h.conns, c)
	h.wake()
	go h.watch(c)
	return nil
}

// handshakeRoundTrips are those of a handshake with one key, TCP's included.
const handshakeRoundTrips = 7

func (h *hub) hasRoom() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed || slices.ContainsFunc(h.conns, func(c *conn) bool { return c.open < c.limit })
}

// watch waits for the end of a connection and ends one whose peer is silent.
func (h *hub) watch(c *conn) {
	ended := make(chan error, 1)
	go func() { ended <- c.client.Wait() }()
	tick := time.NewTicker(h.dialer.settings.Keepalive)
	defer tick.Stop()
	asking := make(chan struct{}, 1)
	for {
		select {
		case err := <-ended:
			h.bury(c, err)
			return
		case <-tick.C:
			if silent := time.Since(time.Unix(0, c.wire.heard.Load())); silent > h.dialer.settings.DeadPeer {
				h.bury(c, errSilent)
				c.wire.Close()
				c.Close()
				return
			}
			select {
			case asking <- struct{}{}:
				go func() { c.client.SendRequest("keepalive@openssh.com", true, nil); <-asking }()
			default:
			}
		}
	}
}

var errSilent = errors.New("the host shows no sign of life")

// bury takes a dead connection out.
func (h *hub) bury(c *conn, why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c.why = why
	close(c.dead)
	h.conns = slices.DeleteFunc(h.conns, func(o *conn) bool { return o == c })
	h.wake()
}

// lost is the error of a session whose connection has ended.
func (h *hub) lost(c *conn) error {
	s := h.dialer.settings
	why := "was lost"
	select {
	case <-c.dead:
		h.mu.Lock()
		if errors.Is(c.why, errSilent) {
			why = "was lost: no sign of life for " + s.DeadPeer.String()
		}
		h.mu.Unlock()
	case <-time.After(time.Second):
		// The channel ended and the connection did not: the server closed it.
		why = "was closed by the server"
	}
	return fault.Wrap(errLost, fault.ExecTransportLost, "", s.Alias, "the connection to %s %s", s.Alias, why)
}

// errLost marks the loss of a connection whatever code the error has.
var errLost = errors.New("connection lost")

// close ends all connections and refuses new ones. It may be called twice.
func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	conns := slices.Clone(h.conns)
	h.wake()
	h.mu.Unlock()
	for _, c := range conns {
		c.Close()
	}
}

// open opens a session on some connection. A connection that turns out to be
// dead before anything was asked of it is replaced once.
func (h *hub) open(ctx context.Context) (*session, error) {
	for again := true; ; {
		c, err := h.reserve(ctx)
		if err != nil {
			return nil, err
		}
		s, err := h.openOn(ctx, c)
		var no *ssh.OpenChannelError
		switch {
		case err == nil:
			return s, nil
		case errors.As(err, &no):
			if h.refused(c) {
				return nil, fault.Wrap(err, fault.BackendUnsupported, "connect", h.dialer.settings.Alias,
					"%s lets us in and opens no session: %s", h.dialer.settings.Alias, no.Message).
					WithHint("raise MaxSessions on the server")
			}
		default:
			h.release(c)
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if !again {
				return nil, h.lost(c)
			}
			again = false
			<-c.dead
		}
	}
}

// openOn opens a session on c. If ctx ends first, the late session is closed.
func (h *hub) openOn(ctx context.Context, c *conn) (*session, error) {
	type opened struct {
		ch   ssh.Channel
		reqs <-chan *ssh.Request
		err  error
	}
	got := make(chan opened, 1)
	go func() {
		ch, reqs, err := c.client.OpenChannel("session", nil)
		got <- opened{ch, reqs, err}
	}()
	select {
	case o := <-got:
		if o.err != nil {
			return nil, o.err
		}
		h.mu.Lock()
		c.used = true
		h.mu.Unlock()
		return newSession(h, c, o.ch, o.reqs), nil
	case <-ctx.Done():
		go func() {
			if o := <-got; o.err == nil {
				go ssh.DiscardRequests(o.reqs)
				o.ch.Close()
			}
		}()
		return nil, context.Cause(ctx)
	}
}

// spare is a session that is being opened in advance.
type spare struct {
	opened chan *session // gives it, or nil after a failure
	beside bool          // a request is under way meanwhile, so nobody waits for it
}

// prepare opens a session in advance, so that the next call saves a round trip.
// Where the server allows only few sessions it does nothing.
func (h *hub) prepare(beside bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || h.spare != nil || len(h.conns) != 1 || h.conns[0].limit < 4 || h.conns[0].open+1 >= h.conns[0].limit {
		return
	}
	c := h.conns[0]
	c.open++
	next := &spare{make(chan *session, 1), beside}
	h.spare = next
	go func() {
		s, err := h.openOn(context.Background(), c)
		if err != nil {
			h.release(c)
		}
		next.opened <- s // nil after a failure
	}()
}

// session gives the prepared session, or a new one.
func (h *hub) session(ctx context.Context) (*session, error) {
	h.mu.Lock()
	next := h.spare
	h.spare = nil
	h.mu.Unlock()
	if next != nil {
		s, err := next.take(ctx)
		if err != nil {
			return nil, err
		}
		if s != nil && !s.ended() {
			if !next.beside {
				h.trace("open session", 1, 0)
			}
			return s, nil
		}
	}
	s, err := h.open(ctx)
	if err == nil {
		h.trace("open session", 1, 0)
	}
	return s, err
}

// take waits for the session. One that comes after ctx has ended is closed.
func (n *spare) take(ctx context.Context) (*session, error) {
	select {
	case s := <-n.opened:
		return s, nil
	case <-ctx.Done():
		go func() {
			if s := <-n.opened; s != nil {
				s.close()
			}
		}()
		return nil, context.Cause(ctx)
	}
}
