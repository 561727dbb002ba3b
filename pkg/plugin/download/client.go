// Package download fetches documents and archives over HTTP under fixed rules
// (plugins.md 23): https, http only where the caller allows it, at most five
// redirects, credentials for the address they belong to only, bounds of size
// and time, and no bytes after a failure that could be taken for a whole.
package download

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
)

// Client fetches. The zero value has the limits of plugins.md 23, the roots of
// the system and the proxies of the environment. Its methods may run at the same
// time.
type Client struct {
	Roots    *x509.CertPool // nil = the system's
	Insecure bool           // certificates are not checked: npm's strict-ssl=false
	// Proxy gives the proxy of an address; nil = the environment's.
	Proxy func(*url.URL) (*url.URL, error)

	FirstByte time.Duration // 0 = 30 s
	Idle      time.Duration // without a byte; 0 = 60 s
	Whole     time.Duration // 0 = 15 min
	Pause     time.Duration // before the second try, twice that before the third; 0 = 300 ms
}

// Request is one download.
type Request struct {
	URL    string
	Accept string
	// Credential gives the Authorization header for an address, "" = none. It is
	// asked for the address itself, and after a redirect only while host and
	// scheme stay.
	Credential func(*url.URL) string
	// Plain allows http to any host, as a digest that the caller gave does.
	Plain bool
	// Max is the most bytes that are accepted.
	Max int64
	// Begin is told the size before the first byte, -1 where it is not known;
	// may be nil.
	Begin func(size int64)
}

const (
	tries     = 3
	redirects = 5
)

// Get writes the body of a request to w. A failure before the first byte of the
// body is tried again where that can help, at most three times in all.
//
// PLUGIN_NOT_FOUND: 404 or 410. PLUGIN_TOO_LARGE. PLUGIN_SOURCE_INVALID: an
// address that may not be used. PLUGIN_FETCH_FAILED: the rest, with the host
// named.
func (c *Client) Get(ctx context.Context, r Request, w io.Writer) error {
	u, err := url.Parse(r.URL)
	if err != nil || u.Host == "" || u.User != nil || !usable(u, r.Plain) {
		return fault.New(fault.PluginSourceInvalid, "fetch", r.URL, "the address %q cannot be used: it must be https (http only to this machine) and hold no password", redacted(r.URL))
	}
	whole, cancel := context.WithTimeoutCause(ctx, or(c.Whole, 15*time.Minute), errors.New("the download took too long"))
	defer cancel()
	client := c.http()
	defer client.CloseIdleConnections()
	for try := 1; ; try++ {
		again, err := c.once(whole, client, u, r, w)
		if err == nil || !again || try == tries {
			return explain(ctx, whole, err)
		}
		select {
		case <-time.After(or(c.Pause, 300*time.Millisecond) << (try - 1)):
		case <-whole.Done():
			return explain(ctx, whole, err)
		}
	}
}

// explain names a cancelled call as what it is.
func explain(ctx, whole context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return fault.Aborted(ctx, fault.FSAborted, "fetch", "")
	}
	if err != nil && whole.Err() != nil {
		return fault.Wrap(err, fault.PluginFetchFailed, "fetch", "", "%s: %s", err, context.Cause(whole))
	}
	return err
}

// redacted gives an address without what could be a password.
func redacted(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "(malformed)"
	}
	if u.User != nil {
		u.User = url.User("***")
	}
	return u.String()
}

func or(d, standard time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return standard
}

func usable(u *url.URL, plain bool) bool {
	return u.Scheme == "https" || u.Scheme == "http" && (plain || IsLoopback(u.Hostname()))
}

// IsLoopback reports whether a host name means this machine.
func IsLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

func (c *Client) http() *http.Client {
	proxy := http.ProxyFromEnvironment
	if c.Proxy != nil {
		proxy = func(r *http.Request) (*url.URL, error) { return c.Proxy(r.URL) }
	}
	limit := or(c.FirstByte, 30*time.Second)
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy: proxy, DialContext: (&net.Dialer{Timeout: limit}).DialContext, TLSHandshakeTimeout: limit,
			ResponseHeaderTimeout: limit, ForceAttemptHTTP2: true, DisableCompression: true,
			TLSClientConfig: &tls.Config{RootCAs: c.Roots, InsecureSkipVerify: c.Insecure},
		},
	}
}

// once tries once. again says that another try may help: nothing was written.
func (c *Client) once(ctx context.Context, client *http.Client, u *url.URL, r Request, w io.Writer) (again bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	resp, err := c.follow(ctx, client, u, r)
	if err != nil {
		var f *fault.Error
		return !errors.As(err, &f), failed(u, err)
	}
	defer resp.Body.Close()
	if err := statusError(resp); err != nil {
		return resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests, err
	}
	if resp.ContentLength > r.Max {
		return false, tooLarge(u, r.Max)
	}
	if r.Begin != nil {
		r.Begin(resp.ContentLength)
	}
	return false, c.copy(cancel, resp, r.Max, w)
}

// follow sends the request and goes where it is redirected.
func (c *Client) follow(ctx context.Context, client *http.Client, u *url.URL, r Request) (*http.Response, error) {
	first := u
	for range redirects + 1 {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
		if err != nil {
			return nil, err
		}
		req.Header.Set("User-Agent", "afield")
		if r.Accept != "" {
			req.Header.Set("Accept", r.Accept)
		}
		if r.Credential != nil && u.Host == first.Host && u.Scheme == first.Scheme {
			if value := r.Credential(u); value != "" {
				req.Header.Set("Authorization", value)
			}
		}
		resp, err := client.Do(req)
		if err != nil || !isRedirect(resp.StatusCode) {
			return resp, err
		}
		resp.Body.Close()
		if u, err = target(resp, first); err != nil {
			return nil, err
		}
	}
	return nil, fault.New(fault.PluginFetchFailed, "fetch", "", "%s redirects more than %d times", first.Host, redirects)
}

func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// target gives where a redirect leads: never from https to http, and from http
// to no other machine without https (case 57).
func target(resp *http.Response, first *url.URL) (*url.URL, error) {
	u, err := resp.Location()
	if err != nil || u.User != nil {
		return nil, fault.New(fault.PluginFetchFailed, "fetch", "", "%s redirects to nowhere", first.Host)
	}
	if u.Scheme != "https" && (first.Scheme == "https" || !usable(u, false)) {
		return nil, fault.New(fault.PluginFetchFailed, "fetch", "", "%s redirects to %s, which is not https", first.Host, u.Scheme+"://"+u.Host)
	}
	return u, nil
}

func failed(u *url.URL, err error) error {
	var f *fault.Error
	if errors.As(err, &f) {
		return err
	}
	var inner *url.Error
	if errors.As(err, &inner) {
		err = inner.Err
	}
	return fault.Wrap(err, fault.PluginFetchFailed, "fetch", "", "cannot fetch from %s: %s", u.Host, err).WithRetry(fault.RetrySafe)
}

func tooLarge(u *url.URL, limit int64) error {
	return fault.New(fault.PluginTooLarge, "fetch", "", "%s has more than the %d bytes that are accepted", u.Host+u.Path, limit)
}

func statusError(resp *http.Response) error {
	host := resp.Request.URL.Host
	switch s := resp.StatusCode; {
	case s == http.StatusOK:
		return nil
	case s == http.StatusNotFound || s == http.StatusGone:
		return fault.New(fault.PluginNotFound, "fetch", "", "%s has nothing at %s", host, resp.Request.URL.Path)
	case s == http.StatusUnauthorized || s == http.StatusForbidden:
		return fault.New(fault.PluginFetchFailed, "fetch", "", "%s refuses us: %s", host, resp.Status).
			WithHint("check the credentials for %s", host)
	default:
		return fault.New(fault.PluginFetchFailed, "fetch", "", "%s answers %s", host, resp.Status).WithRetry(fault.RetrySafe)
	}
}

// copy moves the body, as long as something of it keeps coming.
func (c *Client) copy(cancel context.CancelCauseFunc, resp *http.Response, limit int64, w io.Writer) error {
	idle := or(c.Idle, 60*time.Second)
	stuck := fmt.Errorf("no byte came for %s", idle)
	watch := time.AfterFunc(idle, func() { cancel(stuck) })
	defer watch.Stop()
	u := resp.Request.URL
	body := &source{r: resp.Body, read: func() { watch.Reset(idle) }}
	n, err := io.CopyBuffer(struct{ io.Writer }{w}, io.LimitReader(body, limit+1), make([]byte, 128<<10))
	switch {
	case errors.Is(context.Cause(resp.Request.Context()), stuck):
		return failed(u, stuck)
	case body.err != nil:
		return failed(u, fmt.Errorf("the connection ended after %d bytes: %w", n, body.err))
	case err != nil:
		return fault.Wrap(err, fault.PluginIO, "fetch", "", "cannot keep what was fetched: %s", err)
	case n > limit:
		return tooLarge(u, limit)
	}
	return nil
}

// source remembers that reading, not writing, has failed.
type source struct {
	r    io.Reader
	read func()
	err  error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.read()
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}
