package cmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

// snapshotResult is the JSON of a snapshot.
type snapshotResult struct {
	ID      string   `json:"id"`
	Backend string   `json:"backend"`
	Sandbox string   `json:"sandbox"`
	Names   []string `json:"names"`
}

func newSandboxSnapshot(a *app) *cobra.Command {
	title := ""
	c := &cobra.Command{
		Use:   "snapshot ID",
		Short: "Store the present state of a sandbox",
		Long:  "Store the present state of a sandbox and print the id of the snapshot, which can be the template of a new one.",
		Args:  exactly(1, "one ID"),
		RunE: a.run(func(ctx context.Context, args []string) error {
			boxes, name, err := a.openSandboxes(ctx)
			if err != nil {
				return err
			}
			snap, err := boxes.Snapshot(ctx, args[0], title)
			if err != nil {
				return err
			}
			if a.flags.json {
				if snap.Names == nil {
					snap.Names = []string{}
				}
				return writeJSON(a.Out, snapshotResult{snap.ID, name, args[0], snap.Names})
			}
			_, err = fmt.Fprintln(a.Out, snap.ID)
			return err
		}),
	}
	c.Flags().StringVar(&title, "name", "", "name of the snapshot (default: none)")
	return c
}
