package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/remoteexec"
)

func newWhich(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "which NAME",
		Short: "Print the path of a program in the world",
		Long: "Print the absolute path of the program that exec would start for a name: the first regular file on the " +
			"PATH of the world that may be executed. Builtins, functions and aliases of shells take no part.",
		Args: exactly(1, "one NAME"),
	}
	c.RunE = a.run(func(ctx context.Context, args []string) error {
		return a.withWorld(ctx, func(w *world) error {
			procs, err := w.processes()
			if err != nil {
				return err
			}
			path, err := procs.LookPath(ctx, args[0], w.environment(a, remoteexec.Env{}))
			if err != nil {
				return err
			}
			return a.writeLine("path", path)
		})
	})
	return c
}
