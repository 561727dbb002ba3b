package ssh

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/afield-dev/afield/pkg/fault"
)

// dialer makes connections to one host.
type dialer struct {
	settings Settings
	secrets  secrets
	resolve  func(ctx context.Context, host string, port int, user string) (Settings, error)
	environ  []string
	dir      string
}

// link is an authenticated connection.
type link struct {
	client      *ssh.Client
	wire        *wire
	method      string // by which we were let in
	fingerprint string
	through     []*link // jump hosts
}

func (l *link) Close() error {
	err := l.client.Close()
	for _, j := range slices.Backward(l.through) {
		j.Close()
	}
	return err
}

// dial connects and authenticates within the connect timeout. A server that
// closes before it says anything may be overrun (MaxStartups): that is tried
// again as long as there is time.
func (d *dialer) dial(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, d.settings.ConnectTimeout, errConnectTimeout)
	defer cancel()
	through, err := d.jumps(ctx)
	if err != nil {
		return nil, err
	}
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		l, err := d.dialOnce(ctx, through)
		if err == nil {
			l.through = through
			return l, nil
		}
		var early *closedEarly
		if !errors.As(err, &early) || !sleep(ctx, wait/2+rand.N(wait)) {
			closeAll(through)
			return nil, err
		}
	}
}

var errConnectTimeout = errors.New("no answer within the connect timeout")

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func closeAll(links []*link) {
	for _, l := range slices.Backward(links) {
		l.Close()
	}
}

// jumps connects to the jump hosts in their order, each through the one before.
func (d *dialer) jumps(ctx context.Context) ([]*link, error) {
	var through []*link
	for _, target := range d.settings.Jumps {
		user, host, port := splitTarget(target)
		s, err := d.resolve(ctx, host, port, user)
		if err == nil {
			s.Jumps = nil
			hop := &dialer{settings: s, secrets: d.secrets, environ: d.environ, dir: d.dir}
			var l *link
			if l, err = hop.dialOnce(ctx, through); err == nil {
				through = append(through, l)
				continue
			}
		}
		closeAll(through)
		return nil, jumpFailed(err, d.settings.Alias, target)
	}
	return through, nil
}

// jumpFailed says which jump host failed; the code stays.
func jumpFailed(err error, alias, target string) error {
	var f *fault.Error
	if !errors.As(err, &f) {
		return err
	}
	out := *f
	out.Message = "jump host " + target + " on the way to " + alias + ": " + f.Message
	return &out
}

// closedEarly is a connection that the server closed before it let us begin.
type closedEarly struct{ err error }

func (e *closedEarly) Error() string { return "the server closed the connection at once" }
func (e *closedEarly) Unwrap() error { return e.err }

// dialOnce makes one connection, through the last of the jump hosts if there are
// any.
func (d *dialer) dialOnce(ctx context.Context, through []*link) (*link, error) {
	s := d.settings
	conn, err := d.open(ctx, through)
	if err != nil {
		return nil, d.unreachable(ctx, err)
	}
	w := &wire{Conn: conn}
	w.heard.Store(time.Now().UnixNano())
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	keys, err := newHostKeys(s)
	if err != nil {
		stop()
		conn.Close()
		return nil, err
	}
	a := &auth{settings: s, secrets: d.secrets}
	defer a.close()
	c, chans, reqs, err := ssh.NewClientConn(w, s.Address(), clientConfig(s, keys, a))
	if !stop() && err == nil {
		c.Close()
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		return nil, d.handshakeFailed(ctx, err, w, keys, a)
	}
	return &link{client: ssh.NewClient(c, chans, reqs), wire: w, method: a.used, fingerprint: keys.fingerprint}, nil
}

// open makes the byte stream to the server.
func (d *dialer) open(ctx context.Context, through []*link) (net.Conn, error) {
	switch {
	case len(through) > 0:
		return through[len(through)-1].client.DialContext(ctx, "tcp", d.settings.Address())
	case d.settings.ProxyCommand != "":
		return d.proxy()
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", d.settings.Address())
}

// clientConfig puts AES-GCM first, which is twice as fast as the default here.
func clientConfig(s Settings, keys *hostKeys, a *auth) *ssh.ClientConfig {
	c := &ssh.ClientConfig{
		User: s.User, Auth: a.methods(), HostKeyCallback: keys.check,
		HostKeyAlgorithms: keys.algorithms(), ClientVersion: "SSH-2.0-afield",
	}
	c.Ciphers, c.MACs, c.KeyExchanges = s.Ciphers, s.MACs, s.KeyExchanges
	supported := ssh.SupportedAlgorithms()
	c.Ciphers = known(c.Ciphers, supported.Ciphers)
	c.MACs = known(c.MACs, supported.MACs)
	c.KeyExchanges = known(c.KeyExchanges, supported.KeyExchanges)
	if gcm := []string{"aes128-gcm@openssh.com", "aes256-gcm@openssh.com"}; len(c.Ciphers) == 0 {
		c.Ciphers = append(gcm, slices.DeleteFunc(supported.Ciphers, func(n string) bool { return slices.Contains(gcm, n) })...)
	}
	return c
}

// known keeps the algorithms that the library has; OpenSSH's own default list is
// longer, and then the order is ours.
func known(wanted, supported []string) []string {
	if len(wanted) == 0 || slices.Contains(wanted, "chacha20-poly1305@openssh.com") {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(wanted), func(n string) bool { return !slices.Contains(supported, n) })
}

// unreachable is the error of a stream that could not be made.
func (d *dialer) unreachable(ctx context.Context, err error) error {
	s := d.settings
	var dns *net.DNSError
	why, hint := "is not reachable", "check that the host is up and the port right"
	switch {
	case ctx.Err() != nil && !errors.Is(context.Cause(ctx), errConnectTimeout):
		return fault.Aborted(ctx, fault.FSAborted, "connect to "+s.Alias, "")
	case errors.As(err, &dns):
		why, hint = "does not resolve", "check the name of the host, or its HostName in the SSH configuration"
	case errors.Is(err, syscall.ECONNREFUSED):
		why, hint = "refuses the connection", "check that an SSH server listens on this port"
	case ctx.Err() != nil, isTimeout(err):
		why, hint = "does not answer within "+s.ConnectTimeout.String(), "check the network, or raise connectTimeoutMs"
	}
	return fault.Wrap(err, fault.BackendUnreachable, "connect", s.Alias, "%s (%s) %s", s.Alias, s.Address(), why).
		WithHint("%s", hint).WithRetry(fault.RetrySafe)
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

// handshakeFailed tells apart why a handshake failed by how far it came.
func (d *dialer) handshakeFailed(ctx context.Context, err error, w *wire, keys *hostKeys, a *auth) error {
	s := d.settings
	var typed *fault.Error
	var none *ssh.AlgorithmNegotiationError
	switch {
	case errors.As(err, &typed):
		return typed
	case ctx.Err() != nil:
		return d.unreachable(ctx, err)
	case errors.As(err, &none):
		return fault.Wrap(err, fault.BackendProtocol, "connect", s.Alias, "%s and we share no %s; it offers %v", s.Alias, none.What, none.RequestedAlgorithms).
			WithHint("enable a current algorithm on the server")
	case keys.seen:
		return a.refused(err)
	case w.received.Load() == 0:
		return &closedEarly{d.unreachable(ctx, err)}
	}
	return fault.Wrap(err, fault.BackendProtocol, "connect", s.Alias, "%s (%s) does not speak SSH as expected: %v", s.Alias, s.Address(), err)
}

// wire is the stream of a connection. It notes when the peer was heard last.
type wire struct {
	net.Conn
	received atomic.Int64
	heard    atomic.Int64 // time of the last bytes, UnixNano
}

func (w *wire) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if n > 0 {
		w.received.Add(int64(n))
		w.heard.Store(time.Now().UnixNano())
	}
	return n, err
}

// proxy runs the ProxyCommand of the user's configuration and talks through its
// input and output.
func (d *dialer) proxy() (net.Conn, error) {
	cmd := exec.Command("/bin/sh", "-c", "exec "+d.settings.ProxyCommand)
	cmd.Env, cmd.Dir = d.environ, d.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &proxyConn{in: in, out: out, cmd: cmd}, nil
}

// proxyConn is the stream through a ProxyCommand. It has no deadlines.
type proxyConn struct {
	in   io.WriteCloser
	out  io.ReadCloser
	cmd  *exec.Cmd
	once sync.Once
}

func (p *proxyConn) Read(b []byte) (int, error)  { return p.out.Read(b) }
func (p *proxyConn) Write(b []byte) (int, error) { return p.in.Write(b) }

// Close ends the command and its children.
func (p *proxyConn) Close() error {
	p.once.Do(func() {
		p.in.Close()
		syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		p.out.Close()
		go p.cmd.Wait()
	})
	return nil
}

func (p *proxyConn) LocalAddr() net.Addr              { return proxyAddr{} }
func (p *proxyConn) RemoteAddr() net.Addr             { return proxyAddr{} }
func (p *proxyConn) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (p *proxyConn) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (p *proxyConn) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }

// proxyAddr stands for an address that nobody knows.
type proxyAddr struct{}

func (proxyAddr) Network() string { return "proxy" }
func (proxyAddr) String() string  { return "0.0.0.0:0" }
