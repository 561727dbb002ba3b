package e2btest

import (
	"context"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/afield-dev/afield/pkg/backend/e2b/wire"
)

// edge is the proxy in front of the sandboxes.
func (s *Server) edge(w http.ResponseWriter, r *http.Request) {
	id, port := r.Header.Get(wire.HeaderSandboxID), r.Header.Get(wire.HeaderSandboxPort)
	if id == "" || port == "" {
		http.Error(w, "missing header", http.StatusBadRequest)
		return
	}
	b := s.Sandbox(id)
	switch {
	case b == nil || b.State() == "paused":
		reply(w, http.StatusBadGateway, map[string]any{"sandboxId": id, "message": "The sandbox was not found", "code": 502})
	case b.State() != "running":
		reply(w, http.StatusConflict, map[string]any{"sandboxId": id, "message": "The sandbox is in transition", "code": 409})
	case port != "49983" || b.isDown():
		reply(w, http.StatusBadGateway, map[string]any{"sandboxId": id, "message": "The sandbox is running but port is not open", "port": port, "code": 502})
	default:
		b.serve(w, r)
	}
}

func (b *Sandbox) isDown() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.down
}

// crash is what a bad request can do to the daemon.
func (b *Sandbox) crash() {
	b.mu.Lock()
	b.down = true
	b.leave()
	b.mu.Unlock()
	panic(http.ErrAbortHandler)
}

// serve is the daemon. The request ends when the sandbox stops running.
func (b *Sandbox) serve(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	leaving := b.leaving()
	go func() {
		select {
		case <-leaving:
			cancel()
		case <-ctx.Done():
		}
	}()
	r = r.WithContext(ctx)
	path := r.URL.Path
	switch {
	case path == "/health":
		w.WriteHeader(http.StatusNoContent)
	case path == "/init" || path == "/upgrade" || strings.Contains(path, "freeze") || path == "/collapse":
		reply(w, http.StatusNotFound, map[string]any{"message": "reserved for the E2B control plane", "path": path, "code": 404})
	case b.secure && r.Header.Get(wire.HeaderAccessToken) != b.Token:
		refuse(w, http.StatusUnauthorized, "unauthorized access, please provide a valid access token or method signing if supported")
	case path == "/envs" && r.Method == http.MethodGet:
		reply(w, http.StatusOK, b.env)
	case path == "/files":
		b.serveFiles(w, r)
	case path == "/files/compose" && r.Method == http.MethodPost:
		b.serveCompose(w, r)
	case strings.HasPrefix(path, "/process.Process/") || strings.HasPrefix(path, "/filesystem.Filesystem/"):
		b.serveRPC(w, r)
	default:
		http.NotFound(w, r)
	}
}

// userOf is the user that an RPC names: that of Basic authentication.
func userOf(r *http.Request) string {
	raw, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Basic ")
	if !ok {
		return ""
	}
	text, err := base64.StdEncoding.DecodeString(raw)
	if err != nil {
		return ""
	}
	name, _, _ := strings.Cut(string(text), ":")
	return name
}
