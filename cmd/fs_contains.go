package cmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/remotefs"
)

// containsResult is the JSON of fs contains.
type containsResult struct {
	Contains bool `json:"contains"`
}

func newFSContains(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "contains PARENT CHILD",
		Short: "Print whether a path is another or lies below it",
		Long: "Print true or false, with status 0 for both. With --quiet nothing is printed, and the status is the " +
			"answer: 0 for true, 3 for false. Links are followed on both sides.",
		Args:              exactly(2, "PARENT and CHILD"),
		ValidArgsFunction: a.completePaths,
	}
	c.RunE = a.run(func(ctx context.Context, args []string) error {
		return a.withFiles(ctx, func(fs remotefs.FS) error { return runFSContains(ctx, a, fs, args[0], args[1]) })
	})
	return c
}

func runFSContains(ctx context.Context, a *app, fs remotefs.FS, parent, child string) error {
	p, err := fs.Resolve(ctx, parent, "")
	if err != nil {
		return err
	}
	t, err := fs.Resolve(ctx, child, "")
	if err != nil {
		return err
	}
	r := containsResult{fs.Contains(p, t)}
	switch {
	case a.flags.quiet && r.Contains:
		return nil
	case a.flags.quiet:
		return statusError{exitAbsent}
	case a.flags.json:
		return writeJSON(a.Out, r)
	}
	_, err = fmt.Fprintln(a.Out, r.Contains)
	return err
}
