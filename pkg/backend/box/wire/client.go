// Package wire speaks the protocol of Upstash Box: JSON over HTTP for boxes,
// snapshots, short commands and files, and one WebSocket for each exec session.
// It knows nothing of contracts, profiles or terminals.
//
// A Client may be used from several goroutines. Its errors are *Error; the
// account key is never part of one.
package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// DefaultBaseURL is the address of the service.
const DefaultBaseURL = "https://us-east-1.box.upstash.com"

// Time limits of one request.
const (
	dialLimit   = 10 * time.Second
	headerLimit = 60 * time.Second  // a paused box must wake
	execLimit   = 120 * time.Second // far below the service's own cut of about five minutes
	// maxReply bounds a JSON answer: the largest range of a file in base64, with
	// room to spare.
	maxReply = 64 << 20
)

// Config says how to reach the service.
type Config struct {
	// BaseURL is DefaultBaseURL when empty; one trailing slash is removed.
	BaseURL string
	// Key is the account key.
	Key string
	// UserAgent is sent with every request.
	UserAgent string
	// AllowInsecure permits http to a host that is not a loopback address.
	AllowInsecure bool
	// RequestTimeout bounds one ordinary request; 0 = the limits above.
	RequestTimeout time.Duration
	// Sleep waits between tries; nil = a timer.
	Sleep func(context.Context, time.Duration) error
	// Trace is called once for each round trip with the bytes that it moved;
	// may be nil.
	Trace func(step string, bytes int64)
	// StartLimit bounds the handshake of a session; 0 = 30 s.
	StartLimit time.Duration
	// PingEvery is the cadence of pings on a session; 0 = 30 s.
	PingEvery time.Duration
}

// Client is a connection to one account.
type Client struct {
	cfg  Config
	base *url.URL
	http *http.Client
	// life ends with Close and takes the handshakes of sessions with it.
	life context.Context
	end  context.CancelCauseFunc
}

// New checks the address and gives a client. Nothing is sent.
func New(cfg Config) (*Client, error) {
	if cfg.BaseURL == "" {
		cfg.BaseURL = DefaultBaseURL
	}
	base, err := url.Parse(strings.TrimSuffix(cfg.BaseURL, "/"))
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return nil, errors.New("the base URL must be an http or https address")
	}
	if base.Scheme == "http" && !cfg.AllowInsecure && !loopback(base.Hostname()) {
		return nil, errors.New("the base URL must be https: the account key would travel in clear")
	}
	if cfg.Sleep == nil {
		cfg.Sleep = sleep
	}
	if cfg.StartLimit == 0 {
		cfg.StartLimit = 30 * time.Second
	}
	if cfg.PingEvery == 0 {
		cfg.PingEvery = 30 * time.Second
	}
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: dialLimit}).DialContext,
		TLSHandshakeTimeout: dialLimit,
		MaxIdleConnsPerHost: 16,
		IdleConnTimeout:     90 * time.Second,
		DisableCompression:  true,
		ForceAttemptHTTP2:   true,
	}
	c := &Client{cfg: cfg, base: base, http: &http.Client{Transport: transport, CheckRedirect: sameOrigin}}
	c.life, c.end = context.WithCancelCause(context.Background())
	return c, nil
}

var errClosed = errors.New("the connection to the service is closed")

// Close ends the handshakes of sessions and drops idle connections. Sessions
// that have started are closed by their owners.
func (c *Client) Close() {
	c.end(errClosed)
	c.http.CloseIdleConnections()
}

// Origin is the address that requests go to, without credentials.
func (c *Client) Origin() string { return c.base.Scheme + "://" + c.base.Host + c.base.Path }

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// sameOrigin refuses a redirect that would hand the key to somebody else.
func sameOrigin(req *http.Request, via []*http.Request) error {
	first := via[0].URL
	if req.URL.Scheme != first.Scheme || req.URL.Host != first.Host {
		return errors.New("the service redirects to another origin")
	}
	if len(via) >= 5 {
		return errors.New("too many redirects")
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// call is one request.
type call struct {
	method string
	path   string // below /v2/box, escaped
	query  url.Values
	body   []byte
	ctype  string // of body
	limit  time.Duration
}

// json makes a call with a JSON body.
func jsonCall(method, path string, body any) (call, error) {
	b, err := json.Marshal(body)
	return call{method: method, path: path, body: b, ctype: "application/json"}, err
}

// do sends a call, repeats it where that is safe, and decodes the answer into
// out, which may be nil.
func (c *Client) do(ctx context.Context, k call, out any) error {
	body, err := c.bytes(ctx, k)
	if err != nil {
		return err
	}
	if out == nil || len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	if err := json.Unmarshal(body, out); err != nil {
		return &Error{Status: http.StatusOK, Sent: true, Corrupt: true, Err: err,
			Text: "the service answered something that does not fit the protocol"}
	}
	return nil
}

// bytes sends a call with its repetitions and gives the body of the answer.
func (c *Client) bytes(ctx context.Context, k call) ([]byte, error) {
	for try := 0; ; try++ {
		body, err := c.once(ctx, k)
		if err == nil {
			return body, nil
		}
		wait, again := retryAfter(k.method, err, try)
		if !again || ctx.Err() != nil {
			return nil, err
		}
		if serr := c.cfg.Sleep(ctx, wait); serr != nil {
			return nil, err
		}
	}
}

// once sends a call one time.
func (c *Client) once(ctx context.Context, k call) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.limit(k), errSlow)
	defer cancel()
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { sent.Store(true) },
	})
	req, err := c.request(ctx, k)
	if err != nil {
		return nil, &Error{Text: err.Error(), Err: err}
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.failed(ctx, err, sent.Load())
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxReply+1))
	c.trace(k.method+" "+k.path, int64(len(k.body)+len(body)))
	switch {
	case resp.StatusCode/100 != 2:
		return nil, c.refused(resp, body)
	case err != nil:
		return nil, c.failed(ctx, err, true)
	case len(body) > maxReply:
		return nil, &Error{Status: resp.StatusCode, Sent: true, Corrupt: true, Text: "the answer is too large"}
	}
	return body, nil
}

func (c *Client) limit(k call) time.Duration {
	d := k.limit
	if d == 0 {
		d = headerLimit
	}
	if c.cfg.RequestTimeout > 0 {
		d = c.cfg.RequestTimeout
	}
	return d
}

func (c *Client) request(ctx context.Context, k call) (*http.Request, error) {
	var body io.Reader
	if k.body != nil {
		body = bytes.NewReader(k.body)
	}
	req, err := http.NewRequestWithContext(ctx, k.method, c.url(k.path, k.query), body)
	if err != nil {
		return nil, err
	}
	if k.ctype != "" {
		req.Header.Set("Content-Type", k.ctype)
	}
	c.authorise(req.Header)
	return req, nil
}

func (c *Client) url(path string, query url.Values) string {
	u := c.Origin() + "/v2/box" + path
	if len(query) > 0 {
		u += "?" + query.Encode()
	}
	return u
}

func (c *Client) authorise(h http.Header) {
	h.Set("X-Box-Api-Key", c.cfg.Key)
	if c.cfg.UserAgent != "" {
		h.Set("User-Agent", c.cfg.UserAgent)
	}
}

func (c *Client) trace(step string, n int64) {
	if c.cfg.Trace != nil {
		c.cfg.Trace(step, n)
	}
}

// boxPath gives the path of a box's route. The id is checked and escaped.
func boxPath(id string, rest ...string) (string, error) {
	if !ValidID(id) {
		return "", &Error{Text: fmt.Sprintf("%q is not the id of a box", id)}
	}
	return "/" + url.PathEscape(id) + strings.Join(rest, ""), nil
}

// ValidID reports whether id has the form of a box's id or name.
func ValidID(id string) bool {
	for i := 0; i < len(id); i++ {
		c := id[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-') {
			return false
		}
	}
	return id != "" && id != "." && id != ".."
}
