package cmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/fault"
)

// snapshotEntry is the JSON of a snapshot in a list.
type snapshotEntry struct {
	ID      string   `json:"id"`
	Backend string   `json:"backend"`
	Names   []string `json:"names"`
}

func newSandboxSnapshots(a *app) *cobra.Command {
	gone := ""
	c := &cobra.Command{
		Use:   "snapshots",
		Short: "List the snapshots of the account, or delete one",
		Long: "List the snapshots of the account: id and name, newest last. With --delete one of them is deleted instead; " +
			"sandboxes that were made from it stay.",
		Args: cobra.NoArgs,
		RunE: a.run(func(ctx context.Context, _ []string) error {
			boxes, name, err := a.openSandboxes(ctx)
			if err != nil {
				return err
			}
			keeper, able := boxes.(backend.SnapshotKeeper)
			if !able {
				return fault.New(fault.BackendUnsupported, "sandbox", "", "the backend %s does not list or delete snapshots", name)
			}
			if gone != "" {
				return deleteSnapshot(ctx, keeper, gone)
			}
			return a.listSnapshots(ctx, keeper, name)
		}),
	}
	c.Flags().StringVar(&gone, "delete", "", "delete the snapshot of this `ID` (default: none, list them)")
	return c
}

func deleteSnapshot(ctx context.Context, keeper backend.SnapshotKeeper, id string) error {
	there, err := keeper.DeleteSnapshot(ctx, id)
	if err == nil && !there {
		return statusError{exitAbsent}
	}
	return err
}

func (a *app) listSnapshots(ctx context.Context, keeper backend.SnapshotKeeper, name string) error {
	all, err := keeper.Snapshots(ctx)
	if err != nil {
		return err
	}
	list := []snapshotEntry{}
	for _, s := range all {
		list = append(list, snapshotEntry{s.ID, name, append([]string{}, s.Names...)})
	}
	if a.flags.json {
		return writeJSON(a.Out, list)
	}
	for _, s := range list {
		title := ""
		if len(s.Names) > 0 {
			title = s.Names[0]
		}
		if _, err := fmt.Fprintf(a.Out, "%s\t%s\n", s.ID, title); err != nil {
			return err
		}
	}
	return nil
}
