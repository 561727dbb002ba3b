// Package e2btest is a stand-in for the E2B service on the loopback interface:
// its control plane, the proxy in front of the sandboxes, and the daemon inside
// them. A sandbox is a folder of this machine; its files are real files and its
// programs real processes, so that what a client meets has real semantics.
//
// The official clients drive it in the tests of this package, so that it is
// held to the published protocol by others than our own client. Of ours it
// imports the wire package alone.
package e2btest

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"time"
)

// Options describe the service.
type Options struct {
	// Root is an existing folder below which the sandboxes live. Nothing
	// outside it is ever changed by the file API.
	Root string
	// Key is the API key that is accepted.
	Key string
	// EnvdVersion is what the control plane says of the daemon; "" = 0.6.13.
	EnvdVersion string
	// OldRoutes: the control plane lacks the routes of version 2.
	OldRoutes bool
	// MaxSandboxes bounds how many run at once; 0 = no bound.
	MaxSandboxes int
	// Templates are the known ones beside "base".
	Templates []string
	// NoMetadata: the disk has no extended attributes.
	NoMetadata bool
	// Platform are the variables that the platform sets in each sandbox.
	Platform map[string]string
}

// Server is a running service. All methods may run at the same time.
type Server struct {
	opts Options
	api  *httptest.Server
	envd *httptest.Server

	mu        sync.Mutex
	sandboxes map[string]*Sandbox
	snapshots map[string]string
	rules     []*Rule
	log       []*Entry
	rounds    *rounds
}

// New starts a service. Close ends it.
func New(opts Options) *Server {
	if opts.EnvdVersion == "" {
		opts.EnvdVersion = "0.6.13"
	}
	s := &Server{opts: opts, sandboxes: map[string]*Sandbox{}, snapshots: map[string]string{}}
	s.api = httptest.NewServer(s.watched("api", s.controlPlane()))
	s.envd = httptest.NewServer(s.watched("envd", http.HandlerFunc(s.edge)))
	return s
}

// APIURL is the address of the control plane (E2B_API_URL).
func (s *Server) APIURL() string { return s.api.URL }

// SandboxURL is the address of the proxy (E2B_SANDBOX_URL).
func (s *Server) SandboxURL() string { return s.envd.URL }

// Close ends all sandboxes and their processes and stops listening.
func (s *Server) Close() {
	s.ReleaseAll()
	for _, b := range s.Sandboxes() {
		s.remove(b)
	}
	s.api.CloseClientConnections()
	s.envd.CloseClientConnections()
	s.api.Close()
	s.envd.Close()
}

// Sandboxes gives all sandboxes, paused ones too.
func (s *Server) Sandboxes() []*Sandbox {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*Sandbox
	for _, b := range s.sandboxes {
		all = append(all, b)
	}
	return all
}

// Sandbox gives a sandbox by id, nil if there is none.
func (s *Server) Sandbox(id string) *Sandbox {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sandboxes[id]
}

// Count gives how many sandboxes there are.
func (s *Server) Count() int { return len(s.Sandboxes()) }

// Start makes a running sandbox without any request.
func (s *Server) Start(life time.Duration) *Sandbox {
	b, err := s.create(spec{template: "base", life: life, secure: true})
	if err != nil {
		panic(err)
	}
	return b
}
