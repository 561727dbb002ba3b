package cmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/backend"
)

// sandboxListOptions are the flags of sandbox list.
type sandboxListOptions struct {
	state    string
	metadata []string
	limit    int
}

func newSandboxList(a *app) *cobra.Command {
	var o sandboxListOptions
	c := &cobra.Command{
		Use:   "list",
		Short: "List the sandboxes of the account",
		Long:  "List the sandboxes of the account, newest first, also those that afield has not made.",
		Args:  none,
		RunE:  a.run(func(ctx context.Context, _ []string) error { return runSandboxList(ctx, a, o) }),
	}
	f := c.Flags()
	f.StringVar(&o.state, "state", "", "only those in this `state`: running or paused (default: both)")
	f.StringArrayVar(&o.metadata, "metadata", nil, "only those with this label, `NAME=VALUE`; repeatable")
	f.IntVar(&o.limit, "limit", 0, "at most so many (default: all)")
	return c
}

func runSandboxList(ctx context.Context, a *app, o sandboxListOptions) error {
	labels, err := pairs("metadata", o.metadata)
	switch {
	case err != nil:
		return err
	case o.state != "" && o.state != "running" && o.state != "paused":
		return usage("--state must be running or paused")
	case o.limit < 0:
		return usage("--limit must not be negative")
	}
	boxes, name, err := a.openSandboxes(ctx)
	if err != nil {
		return err
	}
	all, err := boxes.List(ctx, backend.SandboxFilter{State: o.state, Labels: labels, Limit: o.limit})
	if err != nil {
		return err
	}
	return a.writeSandboxes(all, name)
}

// writeSandboxes prints several.
func (a *app) writeSandboxes(all []backend.Sandbox, name string) error {
	results := make([]sandboxResult, 0, len(all))
	for _, b := range all {
		results = append(results, newSandboxResult(b, name))
	}
	if a.flags.json {
		return writeJSON(a.Out, results)
	}
	for _, r := range results {
		if _, err := fmt.Fprintln(a.Out, r.line()); err != nil {
			return err
		}
	}
	return nil
}
