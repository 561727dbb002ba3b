package external

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/provider"
)

// Program is the program of a plugin's provider (plugins.md 28).
type Program struct {
	// Argv begins with an absolute path.
	Argv []string
	// Env are names of the caller's environment that it gets besides those that
	// every program needs.
	Env []string
	// Dir is its working directory, made with mode 0700.
	Dir string
	// Start bounds the time to its HELLO; 0 = 10 s.
	Start time.Duration
	// Provider is which of its providers is meant.
	Provider string
	// Check holds its HELLO against what is known of it; nil accepts any.
	Check func(*provider.Hello) error
}

// Hello starts the program, hears what it says of itself, and ends it. No
// world is opened.
func (p Program) Hello(ctx context.Context, req backend.OpenRequest) (*provider.Hello, error) {
	proc, hello, err := p.start(ctx, req)
	if err != nil {
		return nil, err
	}
	proc.stop()
	return hello, nil
}

// Open starts the program and opens the world of its provider. The values of
// secrets travel by the protocol only.
func (p Program) Open(ctx context.Context, req backend.OpenRequest, secrets map[string]string) (*World, error) {
	proc, _, err := p.start(ctx, req)
	if err != nil {
		return nil, err
	}
	w, err := provider.OpenWorldOn(ctx, proc.conn, provider.OpenParams{
		World: "w", Provider: p.Provider, Config: req.Config, Secrets: secrets,
		Cwd: provider.Raw(req.Cwd), CwdMustExist: req.Cwd != "",
	}, identity(map[string]any{"argv": p.Argv, "provider": p.Provider, "config": req.Config}), hostOf(req))
	if err != nil {
		proc.stop()
		return nil, err
	}
	return &World{w, proc}, nil
}

func (p Program) start(ctx context.Context, req backend.OpenRequest) (*process, *provider.Hello, error) {
	if err := os.MkdirAll(p.Dir, 0o700); err != nil {
		return nil, nil, fault.Wrap(err, fault.PluginIO, "start", p.Dir, "cannot make the directory of the provider: %s", err)
	}
	limit := p.Start
	if limit == 0 {
		limit = 10 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	req.HostDir = p.Dir
	proc, err := start(ctx, p.Argv, p.Env, req)
	if err != nil {
		return nil, nil, err
	}
	hello, err := proc.conn.Greeted(ctx)
	if err == nil && p.Check != nil {
		err = p.Check(hello)
	}
	if err != nil {
		proc.stop()
		return nil, nil, proc.explain(err)
	}
	return proc, hello, nil
}

// Dial starts the program and gives its stream behind the start line, for
// callers that speak the protocol frame by frame. Closing it ends the program.
func (p Program) Dial(ctx context.Context, req backend.OpenRequest) (io.ReadWriteCloser, error) {
	if err := os.MkdirAll(p.Dir, 0o700); err != nil {
		return nil, fault.Wrap(err, fault.PluginIO, "start", p.Dir, "cannot make the directory of the provider: %s", err)
	}
	req.HostDir = p.Dir
	proc, stream, err := launch(ctx, p.Argv, p.Env, req)
	if err != nil {
		return nil, err
	}
	return dialled{stream, proc}, nil
}

// dialled is a stream whose end ends the program.
type dialled struct {
	io.ReadWriteCloser
	process *process
}

func (d dialled) Close() error {
	err := d.ReadWriteCloser.Close()
	d.process.stop()
	return err
}
