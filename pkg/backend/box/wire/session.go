package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

// Session is one program in a box, over a WebSocket of its own. The service
// ends the program's tree when the socket closes; nobody can attach again.
//
// Serve is called once and reads until the end; the other methods may run at
// the same time as it and as each other. The owner calls Close.
type Session struct {
	// PID is the program's id in the box.
	PID    int
	ExecID string

	conn   *websocket.Conn
	reader *frameReader
	trace  func(string, int64)
	// life ends when Close is called or the connection is given up.
	life       context.Context
	end        context.CancelFunc
	terminated sync.Once
	exited     atomic.Bool
	lastFrame  atomic.Int64 // ns since start of the process
	ponged     atomic.Bool
	pings      sync.WaitGroup
}

// errStart ends a handshake that takes too long.
var errStart = errors.New("the exec session did not start in time")

// Open starts a program. An end of ctx counts until the start frame is sent;
// from then on the caller gets the session or the reason why there is none, and
// stops what comes late itself (RS-3). One limit, Config.StartLimit, bounds
// dialling, the upgrade and the answer "started" together; frames other than
// the expected one are skipped and do not extend it. Client.Close ends it too.
func (c *Client) Open(ctx context.Context, id string, start Start) (*Session, error) {
	path, err := boxPath(id, "/exec-session")
	if err != nil {
		return nil, err
	}
	start.Type = "start"
	text, err := json.Marshal(start)
	if err != nil {
		return nil, &Error{Text: err.Error(), Err: err}
	}
	hand, cancel := context.WithTimeoutCause(c.life, c.cfg.StartLimit, errStart)
	defer cancel()
	conn, err := c.dialFor(ctx, hand, path)
	if err != nil {
		return nil, err
	}
	s := newSession(conn, c.cfg.Trace)
	if err := s.handshake(hand, text); err != nil {
		s.Close()
		if cause := context.Cause(hand); cause != nil {
			err = &Error{Sent: true, Text: cause.Error(), Err: cause, Slow: errors.Is(cause, errStart)}
		}
		return nil, c.asError(err)
	}
	s.pings.Add(1)
	go s.ping(c.cfg.PingEvery)
	return s, nil
}

// dialFor dials within hand and as long as ctx lasts.
func (c *Client) dialFor(ctx, hand context.Context, path string) (*websocket.Conn, error) {
	both, cancel := context.WithCancelCause(hand)
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	defer stop()
	conn, err := c.dial(both, path)
	if err == nil && ctx.Err() != nil {
		_ = conn.CloseNow()
		return nil, &Error{Text: context.Cause(ctx).Error(), Err: context.Cause(ctx)}
	}
	return conn, err
}

func (c *Client) dial(ctx context.Context, path string) (*websocket.Conn, error) {
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { sent.Store(true) },
	})
	header := http.Header{}
	c.authorise(header)
	conn, resp, err := websocket.Dial(ctx, c.url(path, nil), &websocket.DialOptions{HTTPClient: c.http, HTTPHeader: header})
	c.trace("GET "+path, 0)
	switch {
	case err == nil:
		conn.SetReadLimit(-1)
		return conn, nil
	case resp != nil && resp.StatusCode != http.StatusSwitchingProtocols:
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
		return nil, c.refused(resp, body)
	default:
		return nil, c.failed(ctx, err, sent.Load())
	}
}

// asError makes sure that what leaves the package is an *Error.
func (c *Client) asError(err error) error {
	var e *Error
	if errors.As(err, &e) {
		e.Text = c.clean(e.Text)
		return e
	}
	return &Error{Sent: true, Text: c.clean(err.Error()), Err: err, Corrupt: errors.Is(err, errCorrupt)}
}

func newSession(conn *websocket.Conn, trace func(string, int64)) *Session {
	life, end := context.WithCancel(context.Background())
	s := &Session{conn: conn, reader: newFrameReader(), life: life, end: end, trace: trace}
	s.lastFrame.Store(time.Now().UnixNano())
	return s
}

// handshake sends the start frame and waits for its confirmation.
func (s *Session) handshake(ctx context.Context, start []byte) error {
	if err := s.conn.Write(ctx, websocket.MessageText, start); err != nil {
		return err
	}
	for {
		frame, ok, err := s.next(ctx, func(Stream, []byte) {})
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		return s.started(frame)
	}
}

func (s *Session) started(frame serverFrame) error {
	switch frame.Type {
	case "started":
		pid, ok := integer(frame.PID)
		if !ok || pid <= 0 {
			return &Error{Sent: true, Corrupt: true, Text: "the exec session started without a usable process id"}
		}
		s.PID, s.ExecID = pid, frame.ExecID
		if s.trace != nil {
			s.trace("session started", 0)
		}
		return nil
	case "error":
		return &Error{Sent: true, Session: true, Text: frame.Message}
	default:
		return &Error{Sent: true, Corrupt: true, Text: "the exec session ended before it started"}
	}
}

// next reads one frame. Binary frames are ignored.
func (s *Session) next(ctx context.Context, out func(Stream, []byte)) (serverFrame, bool, error) {
	kind, r, err := s.conn.Reader(ctx)
	if err != nil {
		return serverFrame{}, false, err
	}
	s.lastFrame.Store(time.Now().UnixNano())
	if kind != websocket.MessageText {
		_, err := io.Copy(io.Discard, r)
		return serverFrame{}, false, err
	}
	return s.reader.read(r, out)
}

// Errors of Serve.
var (
	// ErrLost: the connection ended without an exit report.
	ErrLost = errors.New("the connection to the exec session was lost")
	// ErrCorrupt: a frame cannot be understood and matters.
	ErrCorrupt = errors.New("the exec session broke the protocol")
)

// Serve reads until the exit report and gives the code. out takes the output in
// order, in pieces that are valid until it returns. Output after the exit is
// ignored. The error is ErrLost or ErrCorrupt, wrapped.
func (s *Session) Serve(out func(Stream, []byte)) (int, error) {
	for {
		frame, ok, err := s.next(s.life, out)
		switch {
		case errors.Is(err, errCorrupt):
			return 0, fmt.Errorf("%w: %w", ErrCorrupt, err)
		case err != nil:
			return 0, fmt.Errorf("%w: %w", ErrLost, err)
		case !ok || frame.Type == "started":
			continue
		case frame.Type == "error":
			return 0, fmt.Errorf("%w: %s", ErrLost, frame.Message)
		}
		code, ok := integer(frame.Code)
		if !ok || code < 0 || code > 255 {
			return 0, fmt.Errorf("%w: exit report %q", ErrCorrupt, frame.Code)
		}
		s.exited.Store(true)
		return code, nil
	}
}

// Write sends input in pieces. It blocks while the connection takes no more.
func (s *Session) Write(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		piece := p[n:min(len(p), n+stdinPiece)]
		if err := s.send(s.life, clientFrame{Type: "stdin", Data: piece}); err != nil {
			return n, err
		}
		n += len(piece)
	}
	return n, nil
}

// CloseStdin ends the input.
func (s *Session) CloseStdin() error { return s.send(s.life, clientFrame{Type: "stdin_close"}) }

// Resize gives the terminal another size.
func (s *Session) Resize(rows, cols int) error {
	return s.send(s.life, clientFrame{Type: "resize", Rows: rows, Cols: cols})
}

// Signal sends a signal, named without SIG, to the whole tree.
func (s *Session) Signal(name string) error {
	return s.send(s.life, clientFrame{Type: "signal", Signal: name})
}

// Terminate asks for TERM, the grace and KILL on the whole tree. The server
// heeds the first request only, and only the first is sent.
func (s *Session) Terminate(grace time.Duration) (err error) {
	s.terminated.Do(func() {
		err = s.send(s.life, clientFrame{Type: "terminate", GraceMs: grace.Milliseconds()})
	})
	return err
}

func (s *Session) send(ctx context.Context, f clientFrame) error {
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return s.conn.Write(ctx, websocket.MessageText, text)
}

// Close closes the socket, which ends the program's tree if it lives, and waits
// for what was started here. It may be called twice. After an exit report the
// peers part politely; the wait for that is bounded.
func (s *Session) Close() {
	s.end()
	_ = s.conn.CloseNow()
	s.pings.Wait()
}

// ping keeps a quiet connection open and gives up one whose far side has
// answered pings before and has been silent for two cadences.
func (s *Session) ping(every time.Duration) {
	defer s.pings.Done()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-s.life.Done():
			return
		case <-tick.C:
		}
		ctx, cancel := context.WithTimeout(s.life, every)
		err := s.conn.Ping(ctx)
		cancel()
		silent := time.Since(time.Unix(0, s.lastFrame.Load()))
		switch {
		case err == nil:
			s.ponged.Store(true)
		case s.ponged.Load() && silent > 2*every:
			s.end()
			_ = s.conn.CloseNow()
			return
		}
	}
}
