package cmd

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/backend"
)

func newSandboxInfo(a *app) *cobra.Command {
	return a.sandboxCommand("info", "Show a sandbox", "Show the state, the end and the labels of a sandbox.",
		func(ctx context.Context, s backend.Sandboxes, id string) (backend.Sandbox, error) {
			return s.Info(ctx, id)
		})
}

func newSandboxPause(a *app) *cobra.Command {
	return a.sandboxCommand("pause", "Keep a sandbox without running it",
		"Keep a sandbox without running it: its connections end, its files stay. One that is paused stays so.",
		func(ctx context.Context, s backend.Sandboxes, id string) (backend.Sandbox, error) {
			return s.Pause(ctx, id)
		})
}

func newSandboxExtend(a *app) *cobra.Command {
	var ttl time.Duration
	c := a.sandboxCommand("extend", "Let a sandbox live longer",
		"Let a sandbox live for the given time from now on. Its life is never made shorter.",
		func(ctx context.Context, s backend.Sandboxes, id string) (backend.Sandbox, error) {
			if ttl < time.Second {
				return backend.Sandbox{}, usage("--ttl must be at least 1s")
			}
			return s.Extend(ctx, id, ttl)
		})
	c.Flags().DurationVar(&ttl, "ttl", 5*time.Minute, "time to live from now on, such as 10m")
	return c
}

func newSandboxResume(a *app) *cobra.Command {
	var ttl time.Duration
	c := a.sandboxCommand("resume", "Run a paused sandbox again",
		"Run a paused sandbox again for the given time. One that runs goes on.",
		func(ctx context.Context, s backend.Sandboxes, id string) (backend.Sandbox, error) {
			if ttl < time.Second {
				return backend.Sandbox{}, usage("--ttl must be at least 1s")
			}
			return s.Resume(ctx, id, ttl)
		})
	c.Flags().DurationVar(&ttl, "ttl", 5*time.Minute, "time to live from now on, such as 10m")
	return c
}
