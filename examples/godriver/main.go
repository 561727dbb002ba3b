// Godriver is a plugin's provider in Go, at driver level: it moves bytes, names
// entries, starts programs and signals groups, and afield builds the contract on
// top. files.go and processes.go are all that a provider of another world has to
// replace.
package main

import (
	"context"
	"os"
	"runtime"

	"github.com/afield-dev/afield/pkg/provider"
)

// What the manifest says, too: afield compares both.
const (
	id      = "godriver"
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
	s := &provider.Server{OpenDrivers: open, Hello: provider.Hello{Plugin: id, Version: version, Providers: []provider.HelloProvider{{
		Name: "machine", Services: []string{"fs", "exec"}, Level: "driver",
	}}}}
	<-provider.NewConn(pipes{}, provider.Options{Hello: s.Hello, Serve: s.Handler()}).Closed()
}

// open makes the world of one caller. It has been checked against the schema.
func open(_ context.Context, p provider.OpenParams) (provider.Drivers, provider.Opened, error) {
	cwd := string(p.Cwd)
	if cwd == "" {
		cwd, _ = p.Config["cwd"].(string)
	}
	if cwd == "" {
		cwd, _ = os.UserHomeDir()
	}
	opened := provider.Opened{Cwd: provider.Raw(cwd), Platform: runtime.GOOS + "/" + runtime.GOARCH, PathStyle: "posix"}
	return provider.Drivers{Files: files{cwd}, Processes: processes{}}, opened, nil
}

// pipes are standard input and output as one stream.
type pipes struct{}

func (pipes) Read(p []byte) (int, error)  { return os.Stdin.Read(p) }
func (pipes) Write(p []byte) (int, error) { return os.Stdout.Write(p) }
func (pipes) Close() error                { return os.Stdin.Close() }
