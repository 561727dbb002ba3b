package ssh

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/script"
)

// session is one channel on which one program runs.
type session struct {
	hub  *hub
	conn *conn
	ssh.Channel

	exited chan struct{} // the program's end is known
	closed chan struct{} // nothing more comes

	// Valid after exited or closed.
	status int    // -1 without exit status
	signal string // "TERM", …; "" without

	stderr tail
	once   sync.Once
}

func newSession(h *hub, c *conn, ch ssh.Channel, reqs <-chan *ssh.Request) *session {
	s := &session{hub: h, conn: c, Channel: ch, status: -1, exited: make(chan struct{}), closed: make(chan struct{})}
	go s.follow(reqs)
	return s
}

// follow takes the facts of the program's end. They are facts of the server
// (OC-3); neither of them is a lost connection.
func (s *session) follow(reqs <-chan *ssh.Request) {
	for r := range reqs {
		switch r.Type {
		case "exit-status":
			var m struct{ Status uint32 }
			if ssh.Unmarshal(r.Payload, &m) == nil && s.known() == false {
				s.status = int(m.Status)
				close(s.exited)
			}
		case "exit-signal":
			var m struct {
				Signal     string
				CoreDumped bool
				Message    string
				Lang       string
			}
			if ssh.Unmarshal(r.Payload, &m) == nil && m.Signal != "" && s.known() == false {
				s.signal = m.Signal
				close(s.exited)
			}
		}
		if r.WantReply {
			r.Reply(false, nil)
		}
	}
	close(s.closed)
	s.hub.release(s.conn)
}

func (s *session) known() bool {
	select {
	case <-s.exited:
		return true
	default:
		return false
	}
}

// ended reports whether the server has closed the session.
func (s *session) ended() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// close gives the session up. It may be called twice.
func (s *session) close() { s.once.Do(func() { s.Channel.Close() }) }

// giveUp ends the input of a program that awaits content, so that it cleans up,
// waits for its end as long as that is decent, and closes the session.
func (s *session) giveUp() {
	s.CloseWrite()
	select {
	case <-s.exited:
	case <-s.closed:
	case <-time.After(s.hub.dialer.settings.ConnectTimeout):
	}
	s.close()
}

// exec asks for a command line. No answer is awaited: what comes shows it.
func (s *session) exec(line string) error {
	_, err := s.SendRequest("exec", false, ssh.Marshal(struct{ Command string }{line}))
	return err
}

// end waits for the program's end: nil if it ended with status 0, errLost if
// nobody knows.
func (s *session) end(ctx context.Context) error {
	select {
	case <-s.exited:
	case <-s.closed:
		if !s.known() {
			return s.hub.lost(s.conn)
		}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if s.status != 0 {
		return &endedBadly{status: s.status, signal: s.signal, stderr: s.stderr.String()}
	}
	return nil
}

// endedBadly is a helper program that failed as a whole.
type endedBadly struct {
	status int
	signal string
	stderr string
}

func (e *endedBadly) Error() string {
	if line := firstLine(e.stderr, errors.New("")); line != "" {
		return line
	}
	if e.signal != "" {
		return "the helper in the world was ended by SIG" + e.signal
	}
	return "the helper in the world failed"
}

// tail keeps the beginning of what a helper says on its error stream.
type tail struct {
	mu  sync.Mutex
	buf strings.Builder
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf.Write(p[:min(len(p), max(0, 4096-t.buf.Len()))])
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}

// shell is the helper channel: it runs the programs of package script.
type shell struct {
	*hub
	// plain: the login shell forbids exec, as restricted ones do.
	plain atomic.Bool
	// home is remembered of the host and proven by each program; "" = nothing is.
	home string
	// forget drops what is remembered.
	forget func()
}

// start runs a call on a session of its own and gives its answer. The caller
// closes the session.
func (sh *shell) start(ctx context.Context, c script.Call) (*session, *script.Answer, error) {
	s, err := sh.session(ctx)
	if err != nil {
		return nil, nil, err
	}
	go io.Copy(&s.stderr, s.Stderr())
	if err := sh.send(s, c); err != nil {
		s.close()
		return nil, nil, err
	}
	return s, script.NewAnswer(s), nil
}

// send asks for the program of a call, and opens the session of the next one
// beside it.
func (sh *shell) send(s *session, c script.Call) error {
	c.Home = sh.home
	if err := s.exec(c.Line(!sh.plain.Load())); err != nil {
		return sh.lost(s.conn)
	}
	sh.trace(c.Name, 1, 0)
	sh.prepare(true)
	return nil
}

// ask runs a call and reads its whole answer. A login shell that forbids exec is
// found out once.
func (sh *shell) ask(ctx context.Context, c script.Call, read func(*script.Answer) error) error {
	err := sh.askOnce(ctx, c, read)
	if errors.Is(err, script.ErrNoMarker) && !sh.plain.Load() && ctx.Err() == nil {
		sh.plain.Store(true)
		if again := sh.askOnce(ctx, c, read); !errors.Is(again, script.ErrNoMarker) {
			return again
		}
		sh.plain.Store(false)
	}
	return err
}

func (sh *shell) askOnce(ctx context.Context, c script.Call, read func(*script.Answer) error) error {
	s, a, err := sh.start(ctx, c)
	if err != nil {
		return err
	}
	defer s.close()
	defer context.AfterFunc(ctx, s.close)()
	return sh.explain(ctx, s, read(a))
}

// explain finds why an answer could not be read: the caller's cancellation, a
// lost connection, a world without a shell.
func (sh *shell) explain(ctx context.Context, s *session, err error) error {
	var refused *script.Failure
	if err == nil || errors.As(err, &refused) {
		return sh.moved(refused, err)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	switch end := s.end(ctx); {
	case errors.Is(end, errLost):
		return end
	case errors.Is(err, script.ErrNoMarker):
		sh.forget()
		return sh.noShell(s, err)
	}
	return fault.Wrap(err, fault.BackendProtocol, "", sh.dialer.settings.Alias, "the answer of %s cannot be read: %v", sh.dialer.settings.Alias, err)
}

// moved gives err, or what it means that the login's home is not the remembered
// one: nothing was done, and the next command asks again.
func (sh *shell) moved(refused *script.Failure, err error) error {
	if refused == nil || refused.Kind != script.Moved {
		return err
	}
	sh.forget()
	return fault.Wrap(err, fault.BackendConflict, "connect", sh.dialer.settings.Alias,
		"the home directory of %s on %s is not the one that is remembered", sh.dialer.settings.User, sh.dialer.settings.Alias).
		WithHint("run the command again; nothing was done").WithRetry(fault.RetrySafe)
}

// noShell is the error of a login that does not run our helper.
func (sh *shell) noShell(s *session, err error) error {
	said := ""
	if line := firstLine(s.stderr.String(), errors.New("")); line != "" {
		said = ": " + line
	}
	return fault.Wrap(err, fault.BackendUnsupported, "connect", sh.dialer.settings.Alias,
		"%s gives no shell that runs a command%s", sh.dialer.settings.Alias, said).
		WithHint("try: ssh %s true", sh.dialer.settings.Alias)
}
