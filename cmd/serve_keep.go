package cmd

import (
	"context"
	"io"
	"log/slog"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/backend/all"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/keeper"
)

// maxSetup bounds what a keeper is told, in bytes.
const maxSetup = 8 << 20

// runKeeper is the life of a keeper. Its setup comes on standard input.
func runKeeper(ctx context.Context, a *app) error {
	b, err := io.ReadAll(io.LimitReader(a.In, maxSetup))
	if err != nil {
		return fault.Wrap(err, fault.Usage, "serve", "", "the keeper's setup cannot be read: %s", err)
	}
	s, err := keeper.DecodeSetup(b)
	if err != nil {
		return err
	}
	p, ok := all.Providers().Provider(s.Provider)
	if !ok {
		return fault.New(fault.ProfileNoProvider, "serve", "", "there is no provider %q", s.Provider)
	}
	if err := keeper.DropInput(); err != nil {
		return err
	}
	return keeper.Serve(ctx, keeper.Options{
		Setup: s, Services: p.Services, Version: version, Stderr: a.Err,
		Open: func(ctx context.Context, c keeper.Caller, log *slog.Logger) (backend.World, error) {
			return p.Open(ctx, keeperRequest(a, s, c, log))
		},
	})
}

// keeperRequest is a request to open the keeper's world for a caller.
func keeperRequest(a *app, s keeper.Setup, c keeper.Caller, log *slog.Logger) backend.OpenRequest {
	req := backend.OpenRequest{
		Config: s.Config, Cwd: s.Cwd, Environ: a.Environ, HostDir: s.HostDir, StateDir: s.StateDir,
		NewFileMode: s.NewFileMode, Log: log,
		Secret: func(_ context.Context, key string) (string, error) { return s.Secrets[key], nil },
	}
	if !s.Shared {
		req.Cwd = c.Cwd
	}
	if c.Environ != nil {
		req.Environ, req.HostDir = c.Environ, c.HostDir
	}
	return req
}
