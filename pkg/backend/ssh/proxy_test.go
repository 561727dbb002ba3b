package ssh_test

import (
	"fmt"
	"net"
	"sync/atomic"
	"testing"
)

// proxy stands between client and server: it can cut the connection after a
// number of bytes from the client, and go silent.
type proxy struct {
	l      net.Listener
	target int
	mute   atomic.Bool
	// cutAfter, if positive, is how many bytes of the next connection's client are
	// still passed on once armed.
	cutAfter atomic.Int64
	armed    atomic.Bool
	passed   atomic.Int64
}

func startProxy(t testing.TB, target int) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{l: l, target: target}
	t.Cleanup(func() { l.Close() })
	go p.serve()
	return p
}

func (p *proxy) port() int { return p.l.Addr().(*net.TCPAddr).Port }

func (p *proxy) serve() {
	for {
		c, err := p.l.Accept()
		if err != nil {
			return
		}
		up, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", p.target))
		if err != nil {
			c.Close()
			continue
		}
		both := func() { c.Close(); up.Close() }
		go func() { defer both(); p.copy(up, c, true) }()
		go func() { defer both(); p.copy(c, up, false) }()
	}
}

// copy passes bytes on; those of the client count.
func (p *proxy) copy(to, from net.Conn, count bool) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && !p.mute.Load() {
			if count && p.armed.Load() {
				left := p.cutAfter.Load() - p.passed.Load()
				if int64(n) >= left {
					to.Write(buf[:max(0, left)])
					p.armed.Store(false)
					return
				}
				p.passed.Add(int64(n))
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
