package cmd

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/keeper"
)

func newKeeperList(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the keepers of this user",
		Long:  "List the keepers of this user and state directory, of whatever build of afield. One that does not answer is listed as silent.",
		Args:  none,
		RunE:  a.run(func(ctx context.Context, _ []string) error { return runKeeperList(ctx, a, "") }),
	}
}

func newKeeperStatus(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "status [ID]",
		Short: "Show the keeper of the profile's world",
		Long: "Show the keeper of the profile's world, or the one of this id. It is an answer, and no failure, that there is " +
			"none: null with --json, and status 3.",
		Args: cobra.MaximumNArgs(1),
		RunE: a.run(func(ctx context.Context, args []string) error { return runKeeperStatus(ctx, a, args) }),
	}
}

// keeperState is one keeper in the output.
type keeperState struct {
	keeper.Status
	State string `json:"state"` // "running" or "silent"
}

// eachKeeper calls f with every keeper that runs.
func (a *app) eachKeeper(ctx context.Context, f func(*keeper.Keeper, keeperState) error) error {
	place, _, err := a.keeperPlace()
	if err != nil {
		return err
	}
	list, err := place.List(ctx)
	if err != nil {
		return err
	}
	for _, k := range list {
		state := keeperState{State: "running"}
		if state.Status, err = k.Status(ctx); err != nil {
			state.State = "silent"
		}
		err := f(k, state)
		k.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

func runKeeperList(ctx context.Context, a *app, id string) error {
	list := []keeperState{}
	err := a.eachKeeper(ctx, func(_ *keeper.Keeper, s keeperState) error {
		list = append(list, s)
		return nil
	})
	if err != nil {
		return err
	}
	if a.flags.json {
		return writeJSON(a.Out, list)
	}
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	for _, s := range list {
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%d held\t%s\n", s.ID, s.Backend, s.PID, s.State, s.Held, sinceText(s.StartedAt))
	}
	return w.Flush()
}

// sinceText says how long ago something began.
func sinceText(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return time.Since(t).Round(time.Second).String()
}

func runKeeperStatus(ctx context.Context, a *app, args []string) error {
	id, err := a.keeperID(ctx, args)
	if err != nil {
		return err
	}
	var found *keeperState
	err = a.eachKeeper(ctx, func(_ *keeper.Keeper, s keeperState) error {
		if s.ID == id {
			found = &s
		}
		return nil
	})
	if err != nil {
		return err
	}
	if a.flags.json {
		if err := writeJSON(a.Out, found); err != nil {
			return err
		}
	} else if found != nil {
		fmt.Fprintf(a.Out, "keeper %s\nbackend %s\nprocess %d\nstate %s\ncallers %d\nheld %d\nidle %s\nlog %s\n", found.ID, found.Backend,
			found.PID, found.State, found.Callers, found.Held, time.Duration(found.IdleMs)*time.Millisecond, found.Log)
	}
	if found == nil {
		return statusError{exitAbsent}
	}
	return nil
}

// keeperID gives the id that was named, else that of the profile's world.
func (a *app) keeperID(ctx context.Context, args []string) (string, error) {
	if len(args) > 0 {
		return args[0], nil
	}
	k, err := a.keepingOfExec(ctx)
	if err != nil || k == nil {
		return "", err
	}
	return k.setup.ID, nil
}
