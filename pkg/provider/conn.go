package provider

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/afield-dev/afield/pkg/fault"
)

// Protocol is the number that both sides must have in common.
const Protocol = 1

// Hello is the first message of each side (plugins.md 33). Fields of the other
// side stay empty.
type Hello struct {
	Protocol   int             `json:"protocol"`
	Name       string          `json:"name,omitempty"`   // of the caller
	Plugin     string          `json:"plugin,omitempty"` // of the serving side
	Version    string          `json:"version"`
	Providers  []HelloProvider `json:"providers,omitempty"`
	Window     int             `json:"window"`
	MaxStreams int             `json:"maxStreams"`
	Features   []string        `json:"features,omitempty"`
}

// HelloProvider is a provider that the serving side offers.
type HelloProvider struct {
	Name     string   `json:"name"`
	Services []string `json:"services"`
	Level    string   `json:"level"` // "contract" or "driver"
	Features []string `json:"features"`
}

// Handler serves one call. It ends the stream with Finish or Fail; a stream
// that it leaves open is failed when it returns. Calls run at the same time.
type Handler func(s *Stream)

// Conn is one connection, of the caller (Call) or of the serving side (its
// handler). All methods may run at the same time.
type Conn struct {
	rw     io.ReadWriteCloser
	out    *sender
	window int
	serve  Handler // nil on the caller's side
	log    func(Log)
	failed func(error) // may be nil

	mu      sync.Mutex
	streams map[uint32]*Stream
	lastID  uint32
	peer    *Hello
	greeted chan struct{} // closed when the peer's HELLO has come
	err     error         // why the connection ended
	goAway  bool

	life   context.Context // ends when the connection is lost
	endAll context.CancelFunc
	calls  sync.WaitGroup
	closed chan struct{} // closed when nothing runs any more
}

// Log is a LOG message of the serving side.
type Log struct {
	Level  string         `json:"level"`
	Msg    string         `json:"msg"`
	Fields map[string]any `json:"fields"`
}

// Options of a connection.
type Options struct {
	// Hello is what we say. Window and MaxStreams get their defaults.
	Hello Hello
	// Serve makes this the serving side.
	Serve Handler
	// Log takes the peer's LOG messages; may be nil. It must not wait.
	Log func(Log)
	// Failed is told the errors that calls end with on the serving side; may be
	// nil. It must not wait.
	Failed func(error)
}

// NewConn starts a connection on a duplex stream behind the start line, sends
// HELLO, and owns rw. The peer's HELLO is not waited for.
func NewConn(rw io.ReadWriteCloser, o Options) *Conn {
	h := o.Hello
	h.Protocol = Protocol
	if h.Window == 0 {
		h.Window = DefaultWindow
	}
	if h.MaxStreams == 0 {
		h.MaxStreams = MaxStreams
	}
	c := &Conn{
		rw: rw, out: newSender(rw), window: h.Window, serve: o.Serve, log: o.Log, failed: o.Failed,
		streams: map[uint32]*Stream{}, greeted: make(chan struct{}), closed: make(chan struct{}),
	}
	c.life, c.endAll = context.WithCancel(context.Background())
	body, _ := json.Marshal(h)
	c.out.queue(Frame{Kind: KindHello, Body: body})
	go c.run()
	return c
}

// run reads until the connection ends, then ends everything on it.
func (c *Conn) run() {
	go func() {
		if err := c.out.run(); err != nil {
			c.rw.Close()
		}
	}()
	err := c.readAll()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // an end here is no end of anybody's content
	}
	c.shutdown(err)
	c.calls.Wait()
	c.out.close()
	<-c.out.done
	c.rw.Close()
	close(c.closed)
}

// readAll hands frames on. It never waits for a consumer of content.
func (c *Conn) readAll() error {
	for {
		f, err := ReadFrame(c.rw)
		if err == nil {
			err = c.dispatch(f)
		}
		if errors.Is(err, ErrProtocol) {
			body, _ := json.Marshal(map[string]string{"code": string(fault.PluginProtocol), "message": clip(err.Error())})
			c.out.queue(Frame{Kind: KindGoAway, Body: body})
		}
		if err != nil {
			return err
		}
	}
}

func (c *Conn) dispatch(f Frame) error {
	if f.Kind > lastCritical {
		return nil
	}
	if c.Peer() == nil && f.Kind != KindHello {
		return protocolError("frame kind %d before HELLO", f.Kind)
	}
	switch {
	case f.Kind == KindCall:
		return c.accept(f)
	case f.Stream != 0:
		return c.deliver(f)
	}
	switch f.Kind {
	case KindHello:
		return c.greet(f.Body)
	case KindPing:
		return c.out.queue(Frame{Kind: KindPong, Body: f.Body})
	case KindPong:
		return nil
	case KindLog:
		return c.takeLog(f.Body)
	case KindGoAway:
		c.mu.Lock()
		c.goAway = true
		c.mu.Unlock()
		return nil
	}
	return protocolError("frame kind %d on stream 0", f.Kind)
}

// greet takes the peer's HELLO.
func (c *Conn) greet(body []byte) error {
	h := &Hello{}
	if err := json.Unmarshal(body, h); err != nil {
		return protocolError("a malformed HELLO")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.peer != nil:
		return protocolError("a second HELLO")
	case h.Protocol != Protocol:
		return protocolError("the peer speaks protocol %d, we speak %d", h.Protocol, Protocol)
	case h.Window < MinWindow || h.Window > MaxWindow:
		return protocolError("a window of %d bytes", h.Window)
	}
	c.peer = h
	for _, s := range c.streams {
		s.widen(h.Window)
	}
	close(c.greeted)
	return nil
}

// widen corrects the credit of a stream that was opened before the peer's HELLO
// named its window.
func (s *Stream) widen(window int) {
	for _, o := range s.out {
		o.mu.Lock()
		o.credit += window - MinWindow
		o.cond.Broadcast()
		o.mu.Unlock()
	}
}

// peerWindow is the credit of a new port. Until the peer has said more it is
// the least that it can be.
func (c *Conn) peerWindow() int {
	if c.peer == nil {
		return MinWindow
	}
	return c.peer.Window
}

func (c *Conn) takeLog(body []byte) error {
	var l Log
	if json.Unmarshal(body, &l) != nil {
		return protocolError("a malformed LOG")
	}
	if c.log != nil {
		c.log(l)
	}
	return nil
}

// deliver gives a frame to its stream. Frames of an ended stream are late and
// dropped; those of one that never was are a mistake.
func (c *Conn) deliver(f Frame) error {
	c.mu.Lock()
	s, last := c.streams[f.Stream], c.lastID
	c.mu.Unlock()
	switch {
	case s != nil:
		return s.receive(f)
	case f.Stream%2 == 0 || f.Stream > last:
		return protocolError("frame kind %d on stream %d, which does not exist", f.Kind, f.Stream)
	case f.Kind == KindEnd:
		return protocolError("a second END on stream %d", f.Stream)
	}
	return nil
}

// Peer gives the peer's HELLO, nil before it has come.
func (c *Conn) Peer() *Hello {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.peer
}

// Greeted waits for the peer's HELLO, the end of the connection, or of ctx.
func (c *Conn) Greeted(ctx context.Context) (*Hello, error) {
	select {
	case <-c.greeted:
		return c.Peer(), nil
	case <-c.closed:
		return nil, c.Err()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// shutdown ends every stream: the caller's calls fail, the serving side's are
// cancelled.
func (c *Conn) shutdown(err error) {
	c.mu.Lock()
	if c.err == nil {
		c.err = err
	}
	lost := c.lost()
	streams := make([]*Stream, 0, len(c.streams))
	for _, s := range c.streams {
		streams = append(streams, s)
	}
	c.mu.Unlock()
	c.endAll()
	for _, s := range streams {
		if s.caller {
			s.settle(nil, lost)
			continue
		}
		s.cancel(lost)
		for p := range s.in {
			s.in[p].end(lost)
			s.out[p].fail(lost)
		}
	}
}

// lost is the error of calls on a connection that has ended. The caller holds
// mu.
func (c *Conn) lost() error {
	if errors.Is(c.err, ErrProtocol) {
		return fault.Wrap(c.err, fault.PluginProtocol, "", "", "%s", c.err).WithRetry(fault.RetryUnknown)
	}
	return fault.Wrap(c.err, fault.PluginCrashed, "", "", "the connection to the provider ended: %s", c.err).WithRetry(fault.RetryUnknown)
}

// Err is why the connection ended, nil while it lives.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		return nil
	}
	return c.lost()
}

// Close ends the connection: open calls fail or are cancelled. It returns when
// nothing of it runs any more.
func (c *Conn) Close() error {
	c.abandon(io.ErrClosedPipe)
	<-c.closed
	return nil
}

// abandon ends the connection for a reason of ours.
func (c *Conn) abandon(err error) {
	c.mu.Lock()
	if c.err == nil {
		c.err = err
	}
	c.mu.Unlock()
	c.rw.Close()
}

// Closed is closed when the connection has ended and nothing of it runs.
func (c *Conn) Closed() <-chan struct{} { return c.closed }
