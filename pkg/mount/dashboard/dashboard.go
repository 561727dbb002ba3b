// Package dashboard serves one page that shows a session's ledger live. The
// page, its script and its style are embedded; it loads nothing from elsewhere
// and changes nothing.
package dashboard

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	_ "embed" // the page
	"encoding/base64"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/afield-dev/afield/pkg/mount"
	"github.com/afield-dev/afield/pkg/mount/ledger"
)

var (
	//go:embed page.html
	pageHTML []byte
	//go:embed page.css
	pageCSS []byte
	//go:embed page.js
	pageJS []byte
)

// policy lets the page load its own script and style and nothing else, and lets
// nobody put it in a frame.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
	"img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Server shows one session.
type Server struct {
	Store   *ledger.Store
	Session string
	Config  mount.Config
	// Token is the secret part of the URL; NewToken makes one.
	Token string
	// Wait bounds the wait for the session's lock.
	Wait time.Duration
}

// NewToken gives 128 random bits for a URL.
func NewToken() string {
	var b [16]byte
	rand.Read(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// Path is the page's path: the URL is http://ADDRESS followed by it.
func (s *Server) Path() string { return "/" + s.Token + "/" }

// Serve answers on l until ctx ends, which is no error. Streams end with it.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	h := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 10 * time.Second,
		MaxHeaderBytes:    16 << 10,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { h.Close() })
	defer stop()
	if err := h.Serve(l); ctx.Err() == nil {
		return err
	}
	return nil
}

// ServeHTTP answers GET and HEAD below the token's path, to callers of the same
// origin.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	name, ok := s.below(r.URL.Path)
	switch {
	case !ok:
		http.Error(w, "not found", http.StatusNotFound)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "read-only", http.StatusMethodNotAllowed)
	case !sameOrigin(r):
		http.Error(w, "only from the page itself", http.StatusForbidden)
	case name == "events":
		s.events(w, r)
	default:
		serveFile(w, r, name)
	}
}

// below gives the part of a path behind the token.
func (s *Server) below(path string) (string, bool) {
	token, name, ok := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return name, ok && subtle.ConstantTimeCompare([]byte(token), []byte(s.Token)) == 1
}

// secure sets the headers of every answer.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// sameOrigin refuses other pages: what they load, and hosts that name this
// address by a name of theirs.
func sameOrigin(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" {
		if u, err := url.Parse(origin); err != nil || u.Host != r.Host {
			return false
		}
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "cross-site", "same-site":
		if r.Header.Get("Sec-Fetch-Mode") != "navigate" {
			return false
		}
	}
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	return host == "localhost" || net.ParseIP(strings.Trim(host, "[]")) != nil
}

func serveFile(w http.ResponseWriter, r *http.Request, name string) {
	var body []byte
	switch name {
	case "":
		body = pageHTML
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
	case "page.css":
		body = pageCSS
		w.Header().Set("Content-Type", "text/css; charset=utf-8")
	case "page.js":
		body = pageJS
		w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
	default:
		http.Error(w, "not found", http.StatusNotFound)
		return
	}
	if r.Method == http.MethodGet {
		w.Write(body)
	}
}
