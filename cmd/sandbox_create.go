package cmd

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/backend"
)

// sandboxCreateOptions are the flags of sandbox create.
type sandboxCreateOptions struct {
	template string
	ttl      time.Duration
	env      []string
	metadata []string
	onExpiry string
}

func newSandboxCreate(a *app) *cobra.Command {
	var o sandboxCreateOptions
	c := &cobra.Command{
		Use:   "create",
		Short: "Make a sandbox and print its id",
		Long: "Make a sandbox and print its id. It ends by itself after its time to live, also if nobody ends it. " +
			"What is not given comes from the profile. The service can read the values of --env and --metadata.",
		Args: none,
		RunE: a.run(func(ctx context.Context, _ []string) error { return runSandboxCreate(ctx, a, o) }),
	}
	f := c.Flags()
	f.StringVar(&o.template, "template", "", "what to make it from (default: the profile's)")
	f.DurationVar(&o.ttl, "ttl", 0, "time to live, such as 10m (default: the profile's)")
	f.StringArrayVar(&o.env, "env", nil, "set a variable in it, `NAME=VALUE`; repeatable")
	f.StringArrayVar(&o.metadata, "metadata", nil, "set a label on it, `NAME=VALUE`; repeatable")
	f.StringVar(&o.onExpiry, "on-timeout", "", "what happens at its end: kill or pause (default: the profile's)")
	return c
}

// spec checks the flags.
func (o sandboxCreateOptions) spec() (backend.SandboxSpec, error) {
	if o.ttl < 0 || o.ttl > 0 && o.ttl < time.Second {
		return backend.SandboxSpec{}, usage("--ttl must be at least 1s")
	}
	if o.onExpiry != "" && o.onExpiry != "kill" && o.onExpiry != "pause" {
		return backend.SandboxSpec{}, usage("--on-timeout must be kill or pause")
	}
	env, err := pairs("env", o.env)
	if err != nil {
		return backend.SandboxSpec{}, err
	}
	labels, err := pairs("metadata", o.metadata)
	return backend.SandboxSpec{Template: o.template, Life: o.ttl, Env: env, Labels: labels, OnExpiry: o.onExpiry}, err
}

func runSandboxCreate(ctx context.Context, a *app, o sandboxCreateOptions) error {
	spec, err := o.spec()
	if err != nil {
		return err
	}
	boxes, name, err := a.openSandboxes(ctx)
	if err != nil {
		return err
	}
	b, err := boxes.Create(ctx, spec)
	if err != nil {
		return err
	}
	if a.flags.json {
		return writeJSON(a.Out, newSandboxResult(b, name))
	}
	_, err = fmt.Fprintln(a.Out, b.ID)
	return err
}
