package cmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/fault"
)

// killResult is the JSON of one sandbox that was to be ended.
type killResult struct {
	ID      string `json:"id"`
	Backend string `json:"backend"`
	Killed  bool   `json:"killed"`
}

func newSandboxKill(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "kill ID...",
		Short: "End and delete sandboxes",
		Long: "End and delete sandboxes, also paused ones. One that does not exist makes the status 9, " +
			"and the others are ended all the same.",
		Args: atLeast(1, "one ID or more"),
		RunE: a.run(func(ctx context.Context, ids []string) error {
			boxes, name, err := a.openSandboxes(ctx)
			if err != nil {
				return err
			}
			return a.killSandboxes(ctx, boxes, name, ids)
		}),
	}
}

// killSandboxes ends each and reports every failure.
func (a *app) killSandboxes(ctx context.Context, boxes backend.Sandboxes, name string, ids []string) error {
	results, failed := []killResult{}, error(nil)
	for _, id := range ids {
		killed, err := boxes.Kill(ctx, id)
		if err == nil && !killed {
			err = fault.New(fault.BackendWorldGone, "kill", id, "there is no sandbox %s", id)
		}
		failed = errors.Join(failed, err)
		results = append(results, killResult{id, name, killed})
	}
	if err := a.writeKilled(results); err != nil {
		return err
	}
	return failed
}

func (a *app) writeKilled(results []killResult) error {
	if a.flags.json {
		return writeJSON(a.Out, results)
	}
	for _, r := range results {
		if !r.Killed {
			continue
		}
		if _, err := fmt.Fprintln(a.Out, r.ID); err != nil {
			return err
		}
	}
	return nil
}

func newSandboxGC(a *app) *cobra.Command {
	dry := false
	c := &cobra.Command{
		Use:   "gc",
		Short: "End the sandboxes that commands have left behind",
		Long: "End the sandboxes that afield has made from this state directory and that nobody uses any more: those of a " +
			"command that has ended without deleting its own, and those that a profile's row no longer knows. " +
			"What sandbox create made is left alone.",
		Args: none,
		RunE: a.run(func(ctx context.Context, _ []string) error {
			boxes, name, err := a.openSandboxes(ctx)
			if err != nil {
				return err
			}
			strays, err := boxes.Strays(ctx)
			if err != nil || dry {
				return firstOf(err, a.writeSandboxes(strays, name))
			}
			ids := make([]string, len(strays))
			for i, b := range strays {
				ids[i] = b.ID
			}
			return a.killSandboxes(ctx, boxes, name, ids)
		}),
	}
	c.Flags().BoolVar(&dry, "dry-run", false, "only list them")
	return c
}
