package provider

import (
	"encoding/json"
	"io"

	"github.com/afield-dev/afield/pkg/fault"
)

// accept begins a call on the serving side.
func (c *Conn) accept(f Frame) error {
	var body call
	switch {
	case c.serve == nil:
		return protocolError("CALL from the serving side")
	case json.Unmarshal(f.Body, &body) != nil || body.Method == "" || body.ParamBytes < 0 || body.ParamBytes > maxParams:
		return protocolError("a malformed CALL")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case f.Stream%2 == 0 || f.Stream <= c.lastID:
		return protocolError("CALL on stream %d", f.Stream)
	case len(c.streams) >= MaxStreams:
		return protocolError("more than %d streams", MaxStreams)
	}
	c.lastID = f.Stream
	s := newStream(c, f.Stream, false)
	s.Method, s.Params = body.Method, body.Params
	c.streams[f.Stream] = s
	c.calls.Add(1)
	go func() {
		defer c.calls.Done()
		if err := s.readParams(body.ParamBytes); err != nil {
			s.Fail(err)
			return
		}
		c.serve(s)
		s.Fail(fault.New(fault.BackendInternal, s.Method, "", "%s ended without a result", s.Method))
	}()
	return nil
}

// readParams takes parameters that did not fit into the CALL.
func (s *Stream) readParams(n int) error {
	if n == 0 {
		return nil
	}
	s.Params = make([]byte, n)
	if _, err := io.ReadFull(s.Reader(PortInput), s.Params); err != nil {
		return fault.Wrap(err, fault.BackendProtocol, s.Method, "", "the parameters of %s did not arrive whole", s.Method)
	}
	return nil
}

// Call opens a stream. It fails when the connection has ended or too many
// streams are open.
func (c *Conn) Call(method string, params any) (*Stream, error) {
	p, err := json.Marshal(params)
	if err != nil {
		return nil, fault.Wrap(err, fault.BackendInternal, method, "", "%s: %s", method, err)
	}
	if len(p) <= maxInline {
		return c.open(method, call{Method: method, Params: p})
	}
	if len(p) > maxParams {
		return nil, fault.New(fault.FSTooLarge, method, "", "parameters of %d bytes are over the protocol's limit of %d", len(p), maxParams)
	}
	s, err := c.open(method, call{Method: method, ParamBytes: len(p)})
	if err != nil {
		return nil, err
	}
	_, err = s.Writer(PortInput).Write(p)
	return s, err
}

// call is the body of CALL. Parameters that do not fit come as the first
// ParamBytes bytes on the input port instead.
type call struct {
	Method     string          `json:"m"`
	Params     json.RawMessage `json:"p,omitempty"`
	ParamBytes int             `json:"pn,omitempty"`
}

const (
	maxInline = MaxBody - 1024 // of parameters in the CALL itself, in bytes
	maxParams = 8 << 20        // of parameters at all
)

// open sends CALL.
func (c *Conn) open(method string, body call) (*Stream, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, fault.Wrap(err, fault.BackendInternal, method, "", "%s: %s", method, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.err != nil:
		return nil, c.lost()
	case c.goAway:
		return nil, fault.New(fault.BackendUnreachable, method, "", "the provider takes no more calls").WithRetry(fault.RetrySafe)
	case len(c.streams) >= MaxStreams:
		return nil, fault.New(fault.BackendConflict, method, "", "more than %d calls at once", MaxStreams).WithRetry(fault.RetrySafe)
	}
	c.lastID += 1 + c.lastID%2
	s := newStream(c, c.lastID, true)
	s.Method = method
	c.streams[s.id] = s
	return s, c.out.queue(Frame{Stream: s.id, Kind: KindCall, Body: b})
}

// forget drops an ended stream.
func (c *Conn) forget(id uint32) {
	c.mu.Lock()
	delete(c.streams, id)
	c.mu.Unlock()
}
