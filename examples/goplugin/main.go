// Goplugin is a plugin's provider in Go, at contract level: it serves the files
// and processes of the machine on which it runs. A provider of another world
// replaces open and keeps the rest.
package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/backend/all"
	"github.com/afield-dev/afield/pkg/provider"
)

// What the manifest says, too: afield compares both.
const (
	id      = "goplugin"
	version = "1.0.0"
)

func main() {
	if os.Getenv("AFIELD_PROVIDER") == "" {
		println("this is a plugin of afield: afield plugin add --link", id)
		os.Exit(2)
	}
	if err := provider.Announce(os.Stdout, os.Getenv("AFIELD_NONCE")); err != nil {
		os.Exit(1)
	}
	s := &provider.Server{Open: open, Hello: provider.Hello{Plugin: id, Version: version, Providers: []provider.HelloProvider{{
		Name: "machine", Services: []string{"fs", "exec"}, Level: "contract",
		Features: []string{"term", "collect", "resize", "before", provider.FeatureEdits},
	}}}}
	<-provider.NewConn(pipes{}, provider.Options{Hello: s.Hello, Serve: s.Handler()}).Closed()
}

// open makes the world of one caller. It has been checked against the schema.
func open(ctx context.Context, p provider.OpenParams) (backend.World, provider.Opened, error) {
	local, _ := all.Providers().Provider("local")
	dir, err := os.Getwd()
	if err != nil {
		return nil, provider.Opened{}, err
	}
	cwd := string(p.Cwd)
	if cwd == "" {
		cwd, _ = p.Config["cwd"].(string)
	}
	w, err := local.Open(ctx, backend.OpenRequest{
		Config: map[string]any{}, Cwd: cwd, Environ: os.Environ(), HostDir: dir, StateDir: dir, NewFileMode: -1,
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, provider.Opened{}, err
	}
	at, err := w.Cwd(ctx)
	if err != nil {
		w.Close(ctx)
		return nil, provider.Opened{}, err
	}
	return w, provider.Describe(w, at), nil
}

// pipes are standard input and output as one stream.
type pipes struct{}

func (pipes) Read(p []byte) (int, error)  { return os.Stdin.Read(p) }
func (pipes) Write(p []byte) (int, error) { return os.Stdout.Write(p) }
func (pipes) Close() error                { return os.Stdin.Close() }
