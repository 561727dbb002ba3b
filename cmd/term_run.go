package cmd

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/keeper"
)

func newTermRun(a *app) *cobra.Command {
	var limit time.Duration
	c := &cobra.Command{
		Use:   "run ID -- COMMAND",
		Short: "Run a command in a persistent shell",
		Long: "Run a command line in a shell that afield term open --shell-session has opened, print what it printed, and " +
			"end with its status. Directory, variables and functions persist. The first 16000 characters of output are " +
			"given. A command that ends the shell or takes longer than --limit gives it up, and the next one finds a " +
			"fresh shell; a limit that passed is status 124.",
		Example:     "    id=$(afield term open --shell-session)\n    afield term run $id -- 'cd /srv && export MODE=test'\n    afield term run $id -- 'pwd; echo $MODE'",
		Annotations: map[string]string{childStatus: "yes"},
		Args:        atLeast(2, "the id of a shell session and a command"),
	}
	c.Flags().DurationVar(&limit, "limit", 300*time.Second, "give the shell up after this `time`")
	c.RunE = a.run(func(ctx context.Context, args []string) error {
		if limit < time.Millisecond {
			return usage("--limit must be at least 1ms")
		}
		return a.withHeld(ctx, args[0], func(c *keeper.Client) error {
			return runTermRun(ctx, a, c, args[0], strings.Join(args[1:], " "), limit)
		})
	})
	return c
}

// ranJSON is the result of term run.
type ranJSON struct {
	ID string `json:"id"`
	keeper.RunResult
}

func runTermRun(ctx context.Context, a *app, c *keeper.Client, id, command string, limit time.Duration) error {
	r, err := c.Run(ctx, id, command, limit)
	if ctx.Err() != nil {
		return fault.Aborted(ctx, fault.ExecCancelled, "run", id)
	}
	if err != nil {
		return err
	}
	if a.flags.json {
		err = writeJSON(a.Out, ranJSON{id, r})
	} else {
		_, err = a.Out.Write([]byte(r.Output))
	}
	switch {
	case err != nil:
		return err
	case r.TimedOut:
		a.note("the limit of %s passed and the shell was given up", limit)
		return statusError{exitDeadline}
	case r.Truncated:
		a.note("the output is longer; these are its first characters")
	}
	return heldStatus(r.ExitCode, r.Signal)
}

// heldStatus gives the status of a program that ended.
func heldStatus(code *int, signal *string) error {
	switch {
	case signal != nil:
		return statusError{128 + signalNumber(*signal)}
	case code != nil && *code != 0:
		return statusError{*code}
	}
	return nil
}
