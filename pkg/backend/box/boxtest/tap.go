package boxtest

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// tap passes the frames of one session between a client and the inside of its
// box, writes them down, and lets a fault strike.
type tap struct {
	server *Server
	box    string
	fault  SessionFault
	client *websocket.Conn
	inside *websocket.Conn // nil: nothing is started
	ctx    context.Context
	end    context.CancelFunc
	hold   chan struct{} // closed by Release
	once   sync.Once
}

// relay serves one exec session.
func (s *Server) relay(b *box, w http.ResponseWriter, r *http.Request) {
	t := &tap{server: s, box: b.data.ID, hold: make(chan struct{})}
	if f, _ := r.Context().Value(faultKey{}).(*SessionFault); f != nil {
		t.fault = *f
	}
	t.ctx, t.end = context.WithCancel(context.Background())
	defer t.end()
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true,
		CompressionMode: websocket.CompressionContextTakeover,
		OnPingReceived:  func(context.Context, []byte) bool { return !t.fault.NoPong }})
	if err != nil {
		return
	}
	t.client = conn
	conn.SetReadLimit(-1)
	defer t.cut()
	s.track(t, true)
	defer s.track(t, false)
	if t.fault.Silent || t.fault.Started != nil {
		t.pretend()
		return
	}
	t.inside, _, err = websocket.Dial(t.ctx, "http://box/exec-session", &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return b.dial(ctx) }}}})
	if err != nil {
		return
	}
	t.inside.SetReadLimit(-1)
	var both sync.WaitGroup
	both.Add(2)
	go func() { defer both.Done(); t.pass("client", t.client, t.inside) }()
	go func() { defer both.Done(); t.pass("server", t.inside, t.client) }()
	both.Wait()
}

func (s *Server) track(t *tap, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if on {
		s.sessions[t] = true
	} else {
		delete(s.sessions, t)
	}
}

// Sessions counts the open sessions.
func (s *Server) Sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}

// CutSessions drops the sockets of all sessions.
func (s *Server) CutSessions() {
	s.each(func(t *tap) { t.cut() })
}

// Release lets held sessions go on.
func (s *Server) Release() {
	s.each(func(t *tap) { t.once.Do(func() { close(t.hold) }) })
}

func (s *Server) each(f func(*tap)) {
	s.mu.Lock()
	var all []*tap
	for t := range s.sessions {
		all = append(all, t)
	}
	s.mu.Unlock()
	for _, t := range all {
		f(t)
	}
}

// cut drops both sockets.
func (t *tap) cut() {
	t.end()
	_ = t.client.CloseNow()
	if t.inside != nil {
		_ = t.inside.CloseNow()
	}
}

// pretend answers with the texts of the fault and writes the client's frames
// down.
func (t *tap) pretend() {
	for _, text := range t.fault.Started {
		t.server.record(Record{Kind: "server", Box: t.box, Body: cutText([]byte(text))})
		if t.client.Write(t.ctx, websocket.MessageText, []byte(text)) != nil {
			return
		}
	}
	for {
		kind, text, err := t.client.Read(t.ctx)
		if err != nil {
			return
		}
		if kind == websocket.MessageText {
			t.server.record(Record{Kind: "client", Box: t.box, Body: cutText(text)})
		}
	}
}

// pass moves the frames of one direction until it ends, and then ends the
// other.
func (t *tap) pass(from string, src, dst *websocket.Conn) {
	defer t.cut()
	for {
		kind, text, err := src.Read(t.ctx)
		if err != nil {
			return
		}
		r := Record{Kind: from, Box: t.box, Body: cutText(text)}
		name := r.FrameType()
		if name == "stdout" || name == "stderr" {
			r.Body = strings.Clone(r.Body[:min(len(r.Body), 120)]) // the rest is freed
		}
		if !t.strike(from, name) {
			return
		}
		if from == "client" {
			t.server.record(r)
			if name == t.fault.Drop {
				continue
			}
		}
		if err := dst.Write(t.ctx, kind, text); err != nil {
			return
		}
		if from == "server" {
			t.server.record(r)
			if !t.after(name) {
				return
			}
		}
	}
}

// strike applies what comes before a frame; false ends the session.
func (t *tap) strike(from, name string) bool {
	side := t.fault.From
	if side == "" {
		side = "server"
	}
	if from == side && t.fault.CutAt == name && name != "" {
		if t.fault.After == 0 {
			return false
		}
		t.fault.After--
	}
	if from != "server" {
		return true
	}
	if t.fault.Hold && name == "started" {
		select {
		case <-t.hold:
		case <-t.ctx.Done():
			return false
		}
	}
	if t.fault.Stall == name && name != "" {
		<-t.ctx.Done()
		return false
	}
	if t.fault.Delay > 0 {
		time.Sleep(t.fault.Delay)
	}
	return true
}

// after sends what a fault adds behind a frame of the server.
func (t *tap) after(name string) bool {
	var extra []string
	switch name {
	case "started":
		extra = t.fault.Inject
	case "exit":
		extra = t.fault.AfterExit
	}
	for _, text := range extra {
		if t.client.Write(t.ctx, websocket.MessageText, []byte(text)) != nil {
			return false
		}
	}
	return true
}
