package cmd

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/keeper"
)

func newKeeperStop(a *app) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "stop [ID...] | --all",
		Short: "Stop keepers, with all that they hold",
		Long: "Stop the keeper of the profile's world, those of these ids, or all of this user and state directory. Their " +
			"terminals and jobs are ended first. One that does not answer is killed. That there is none is no failure.",
		Args: cobra.ArbitraryArgs,
	}
	c.Flags().BoolVar(&all, "all", false, "stop every keeper of this user and state directory")
	c.RunE = a.run(func(ctx context.Context, args []string) error {
		if all && len(args) > 0 {
			return usage("--all and an id cannot be used together")
		}
		return runKeeperStop(ctx, a, all, args)
	})
	return c
}

func runKeeperStop(ctx context.Context, a *app, all bool, ids []string) error {
	if !all && len(ids) == 0 {
		id, err := a.keeperID(ctx, nil)
		if err != nil {
			return err
		}
		ids = []string{id}
	}
	stopped := []string{}
	err := a.eachKeeper(ctx, func(k *keeper.Keeper, s keeperState) error {
		if !all && !slices.Contains(ids, s.ID) {
			return nil
		}
		if err := k.Stop(ctx); err != nil && !fault.Is(err, fault.PluginCrashed) {
			return err
		}
		stopped = append(stopped, s.ID)
		return nil
	})
	if err == nil && a.flags.json {
		err = writeJSON(a.Out, map[string][]string{"stopped": stopped})
	}
	return err
}
