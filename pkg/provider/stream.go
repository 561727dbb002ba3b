package provider

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
)

// maxEvents bounds the events of a stream that nobody has taken yet.
const maxEvents = 256

// Stream is one call on a connection, seen from either side. Content flows on
// ports, events and the one END beside it. Its methods may run at the same
// time, reads and writes of one port by one goroutine each.
type Stream struct {
	conn   *Conn
	id     uint32
	caller bool
	in     [portCount]*inbox
	out    [portCount]*outbox
	events chan Event

	// Method and Params are what the caller asked for, on the serving side.
	Method string
	Params json.RawMessage

	ctx    context.Context // ends with CANCEL, CLOSE of the connection, or END
	cancel context.CancelCauseFunc

	once   sync.Once
	ended  chan struct{}
	result json.RawMessage
	err    error
}

// Event is something that happened on a stream.
type Event struct {
	Name   string
	Fields json.RawMessage // the whole body
}

func newStream(c *Conn, id uint32, caller bool) *Stream {
	s := &Stream{conn: c, id: id, caller: caller, ended: make(chan struct{}), events: make(chan Event, maxEvents)}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	for p := range s.in {
		s.in[p], s.out[p] = newInbox(c.window), newOutbox(c.peerWindow())
	}
	return s
}

// ID is the number of the stream; calls about it name it as "of".
func (s *Stream) ID() uint32 { return s.id }

// Context ends when the caller cancels the call or the connection is lost. The
// serving side watches it.
func (s *Stream) Context() context.Context { return s.ctx }

// untilCancelled gives a context that ends with CANCEL or the connection, but
// not with the END of the call.
func (s *Stream) untilCancelled() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(s.conn.life)
	stop := context.AfterFunc(s.ctx, func() {
		if cause := context.Cause(s.ctx); cause != errEnded {
			cancel(cause)
		}
	})
	return ctx, func() { stop(); cancel(errEnded) }
}

// Reader gives the content of a port. Reading gives credit back to the peer;
// closing it tells the peer that no more is wanted.
func (s *Stream) Reader(p Port) io.ReadCloser { return portReader{s, p} }

// Writer sends content on a port. Writing waits for credit, and once the call
// is cancelled it fails instead of waiting; closing it is the end of the port's
// content.
func (s *Stream) Writer(p Port) io.WriteCloser { return portWriter{s, p} }

type portReader struct {
	s *Stream
	p Port
}

func (r portReader) Read(b []byte) (int, error) {
	n, credit, err := r.s.in[r.p].take(b)
	if credit > 0 {
		r.s.conn.out.queue(Frame{Stream: r.s.id, Kind: KindWindow, Port: r.p,
			Body: binary.BigEndian.AppendUint32(nil, uint32(credit))})
	}
	return n, err
}

func (r portReader) Close() error {
	if r.s.in[r.p].shut() {
		return r.s.conn.out.queue(Frame{Stream: r.s.id, Kind: KindClose, Port: r.p})
	}
	return nil
}

// refuse tells the peer that no more is wanted on a port, and ends it for the
// reader behind what has arrived.
func (s *Stream) refuse(p Port) error {
	if s.in[p].stop() {
		return s.conn.out.queue(Frame{Stream: s.id, Kind: KindClose, Port: p})
	}
	return nil
}

type portWriter struct {
	s *Stream
	p Port
}

func (w portWriter) Write(b []byte) (int, error) {
	sent := 0
	for sent < len(b) {
		n, err := w.s.out[w.p].acquire(len(b) - sent)
		if err != nil {
			return sent, err
		}
		if err := w.s.conn.out.send(Frame{Stream: w.s.id, Kind: KindData, Port: w.p, Body: b[sent : sent+n]}); err != nil {
			return sent, err
		}
		sent += n
	}
	return sent, nil
}

func (w portWriter) Close() error {
	if !w.s.out[w.p].finish() {
		return nil
	}
	return w.s.conn.out.send(Frame{Stream: w.s.id, Kind: KindData, Port: w.p, FIN: true})
}

// Events gives what happened, in order. It is closed at the end of the stream.
func (s *Stream) Events() <-chan Event { return s.events }

// Ended is closed when the stream has its result or its error.
func (s *Stream) Ended() <-chan struct{} { return s.ended }

// Result waits for the END of the call and decodes its result into v, which may
// be nil. When ctx ends first the call is cancelled, and Result still waits for
// the END that the serving side owes; one that does not come in cancelWait ends
// the connection.
func (s *Stream) Result(ctx context.Context, v any) error {
	select {
	case <-s.ended:
	case <-ctx.Done():
		s.Cancel()
		s.awaitEnd()
	}
	if s.err != nil || v == nil {
		return s.err
	}
	if err := json.Unmarshal(s.result, v); err != nil {
		return fault.Wrap(err, fault.PluginProtocol, s.Method, "", "the provider's result of %s is malformed: %s", s.Method, err)
	}
	return nil
}

// cancelWait is how long a cancelled call may take to end.
const cancelWait = 10 * time.Second

func (s *Stream) awaitEnd() {
	timer := time.NewTimer(cancelWait)
	defer timer.Stop()
	select {
	case <-s.ended:
	case <-timer.C:
		s.conn.abandon(protocolError("the peer did not end a cancelled call within %s", cancelWait))
		<-s.ended
	}
}

// Cancel tells the serving side that the result is not wanted any more.
func (s *Stream) Cancel() error {
	return s.conn.out.queue(Frame{Stream: s.id, Kind: KindCancel})
}

// Emit sends an event: name and the fields of v, an object.
func (s *Stream) Emit(name string, v map[string]any) error {
	body := map[string]any{"e": name}
	for k, x := range v {
		body[k] = x
	}
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return s.conn.out.queue(Frame{Stream: s.id, Kind: KindEvent, Body: b})
}

// Finish ends the call with a result. All content has been written by then.
func (s *Stream) Finish(result any) error {
	b, err := json.Marshal(result)
	if err != nil {
		return s.Fail(fmt.Errorf("result of %s: %w", s.Method, err))
	}
	return s.end(b)
}

// Fail ends the call with an error.
func (s *Stream) Fail(err error) error {
	sent := s.failWith(encodeError(err))
	if sent != errEnded && s.conn.failed != nil {
		s.conn.failed(err)
	}
	return sent
}

// failWith ends the call with the wire form of an error.
func (s *Stream) failWith(e wireError) error {
	b, _ := json.Marshal(map[string]any{"error": e})
	return s.end(b)
}

// end sends END once and forgets the stream.
func (s *Stream) end(body []byte) error {
	err := errEnded
	s.once.Do(func() {
		err = s.conn.out.queue(Frame{Stream: s.id, Kind: KindEnd, Body: body})
		s.conn.forget(s.id)
		s.release(errEnded)
	})
	return err
}

// receive takes a frame for this stream from the connection's reader.
func (s *Stream) receive(f Frame) error {
	switch f.Kind {
	case KindData:
		return s.in[f.Port].put(f.Body, f.FIN)
	case KindWindow:
		return s.out[f.Port].grant(f.Body)
	case KindClose:
		s.out[f.Port].refuse()
		return nil
	case KindCancel:
		if s.caller {
			return protocolError("CANCEL from the serving side")
		}
		s.cancel(context.Canceled)
		for _, o := range s.out {
			o.hurry()
		}
		return nil
	case KindEvent:
		return s.takeEvent(f.Body)
	case KindEnd:
		return s.takeEnd(f.Body)
	}
	return protocolError("frame kind %d on stream %d", f.Kind, s.id)
}

func (s *Stream) takeEvent(body []byte) error {
	var e struct {
		Name string `json:"e"`
	}
	if err := json.Unmarshal(body, &e); err != nil || !s.caller {
		return protocolError("a malformed EVENT")
	}
	select {
	case s.events <- Event{e.Name, body}:
		return nil
	default:
		return protocolError("more than %d events wait on stream %d", maxEvents, s.id)
	}
}

func (s *Stream) takeEnd(body []byte) error {
	if !s.caller {
		return protocolError("END from the caller")
	}
	var failed struct {
		Error *wireError `json:"error"`
	}
	if err := json.Unmarshal(body, &failed); err != nil {
		return protocolError("a malformed END")
	}
	var err error
	if failed.Error != nil {
		err = failed.Error.decode()
	}
	s.settle(body, err)
	return nil
}

// settle gives the stream its result, once, and wakes everybody who waits.
func (s *Stream) settle(result json.RawMessage, err error) {
	s.once.Do(func() {
		s.conn.forget(s.id)
		s.result, s.err = result, err
		s.release(err)
	})
}

// release wakes readers and writers: nothing flows any more. err nil means a
// plain end.
func (s *Stream) release(err error) {
	s.cancel(errEnded)
	for p := range s.in {
		in := err
		if in == errEnded {
			in = nil
		}
		s.in[p].end(in)
		s.out[p].fail(io.ErrClosedPipe)
	}
	close(s.events)
	close(s.ended)
}
