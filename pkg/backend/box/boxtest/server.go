// Package boxtest is a stand-in for the Upstash Box service on this machine:
// its routes and its session protocol over real processes, real terminals and
// real files. Each box is a process in namespaces of its own, with a
// /workspace/home and a /tmp that nobody else sees. Every failure that a client
// must survive can be asked for (Fault), and every request and frame is written
// down (Journal).
//
// The package knows the published protocol and nothing of the client.
package boxtest

import (
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Options of a server.
type Options struct {
	// Key is the account key; "" = "box_test".
	Key string
	// Polls is how often a new box answers "creating" before it is ready.
	Polls int
	// Cutoff is the limit of a buffered command; 0 = none.
	Cutoff time.Duration
	// Share is a directory of this machine, outside /tmp, that every box sees under
	// its own path; "" = none.
	Share string
}

// Server is one account of the service. Its methods may run at the same time.
type Server struct {
	opts    Options
	scratch string
	http    *http.Server
	addr    string
	served  sync.WaitGroup

	mu        sync.Mutex
	boxes     []*box
	snapshots []*snapshot
	number    int
	shift     time.Duration // of the clock
	faults    []*Fault
	journal   []Record
	sessions  map[*tap]bool
}

// New starts a server on a loopback port. The program must have called Main.
func New(opts Options) (*Server, error) {
	if opts.Key == "" {
		opts.Key = "box_test"
	}
	scratch, err := scratchDir()
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(scratch, 0o711); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{opts: opts, scratch: scratch, addr: l.Addr().String(), sessions: map[*tap]bool{}}
	s.http = &http.Server{Handler: s.handler()}
	s.served.Add(1)
	go func() {
		defer s.served.Done()
		_ = s.http.Serve(l)
	}()
	return s, nil
}

// scratchDir lies in memory where it can, so that flushing costs nothing.
func scratchDir() (string, error) {
	if dir, err := os.MkdirTemp("/dev/shm", "boxtest"); err == nil {
		return dir, nil
	}
	return os.MkdirTemp("", "boxtest")
}

// URL is the base URL of the service.
func (s *Server) URL() string { return "http://" + s.addr }

// Key is the account key.
func (s *Server) Key() string { return s.opts.Key }

// Close ends every box and removes their files.
func (s *Server) Close() {
	s.CutSessions()
	_ = s.http.Close()
	s.mu.Lock()
	boxes := s.boxes
	s.mu.Unlock()
	for _, b := range boxes {
		b.halt()
	}
	s.served.Wait()
	_ = os.RemoveAll(s.scratch)
}

// Isolation says how boxes are kept apart on this machine, or why they cannot
// be: "root", "user namespace", or an error.
func Isolation() (string, error) {
	if os.Geteuid() == 0 {
		return "root", nil
	}
	if out, err := exec.Command("unshare", "-Urmp", "--fork", "true").CombinedOutput(); err != nil {
		return "", fmt.Errorf("user namespaces are not available: %s", strings.TrimSpace(string(out)))
	}
	return "user namespace", nil
}

// Now is the time of the service.
func (s *Server) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now()
}

func (s *Server) now() time.Time { return time.Now().Add(s.shift) }

// Advance moves the clock; boxes whose time is over are deleted.
func (s *Server) Advance(d time.Duration) {
	s.mu.Lock()
	s.shift += d
	now := float64(s.now().Unix())
	var over []*box
	for _, b := range s.boxes {
		if b.data.ExpiresAt > 0 && b.data.ExpiresAt <= now && b.data.Status != "deleted" {
			b.data.Status = "deleted"
			over = append(over, b)
		}
	}
	s.mu.Unlock()
	for _, b := range over {
		b.halt()
	}
}

// handler is the way of a request: written down, struck by a fault, checked for
// the key, then served.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	s.addLifecycle(mux)
	s.addSnapshots(mux)
	s.addConfig(mux)
	mux.HandleFunc("/v2/box/{id}/{rest...}", s.inside)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { refuse(w, http.StatusNotFound, "Not found") })
	guarded := s.faulty(s.keyed(mux))
	root := http.NewServeMux()
	s.addControl(root)
	root.Handle("/", guarded)
	return root
}

// keyed refuses a request without the key of the account.
func (s *Server) keyed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("X-Box-Api-Key")
		if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok && key == "" {
			key = bearer
		}
		if subtle.ConstantTimeCompare([]byte(key), []byte(s.opts.Key)) != 1 {
			refuse(w, http.StatusUnauthorized, "Invalid API key")
			return
		}
		next.ServeHTTP(w, r)
	})
}
