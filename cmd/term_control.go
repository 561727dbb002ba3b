package cmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/keeper"
)

const aTerminal = "the id of a terminal"

func newTermList(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the held terminals",
		Long:  "List the terminals that the keeper of the profile's world holds. One that has ended is listed until it is closed, for an hour at most.",
		Args:  none,
		RunE:  a.run(func(ctx context.Context, _ []string) error { return runHeldList(ctx, a, false) }),
	}
}

func newTermResize(a *app) *cobra.Command {
	var rows, cols int
	c := &cobra.Command{
		Use:   "resize ID --rows N --cols N",
		Short: "Set the size of a held terminal",
		Long:  "Set the size of a terminal. Its foreground programs are told.",
		Args:  exactly(1, aTerminal),
	}
	c.Flags().IntVar(&rows, "rows", 0, "rows, 1 to 65535 (required)")
	c.Flags().IntVar(&cols, "cols", 0, "columns, 1 to 65535 (required)")
	c.MarkFlagRequired("rows")
	c.MarkFlagRequired("cols")
	c.RunE = a.run(func(ctx context.Context, args []string) error {
		if rows < 1 || rows > 65535 || cols < 1 || cols > 65535 {
			return usage("--rows and --cols must be between 1 and 65535")
		}
		return a.withHeld(ctx, args[0], func(c *keeper.Client) error { return c.Resize(ctx, args[0], rows, cols) })
	})
	return c
}

func newTermInspect(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "inspect ID",
		Short: "Show the foreground process group of a held terminal",
		Long: "Show the process group in front, and whether it is proven to wait for input; false is \"not proven\". Without " +
			"a group: null with --json, and status 3.",
		Args: exactly(1, aTerminal),
		RunE: a.run(func(ctx context.Context, args []string) error {
			return a.withHeld(ctx, args[0], func(c *keeper.Client) error { return runTermInspect(ctx, a, c, args[0]) })
		}),
	}
}

// foregroundJSON is the result of term inspect.
type foregroundJSON struct {
	ProcessGroupID int  `json:"processGroupId"`
	InputWaiting   bool `json:"inputWaiting"`
}

func runTermInspect(ctx context.Context, a *app, c *keeper.Client, id string) error {
	f, err := c.Inspect(ctx, id)
	if err != nil {
		return err
	}
	var out *foregroundJSON
	if f != nil {
		out = &foregroundJSON{f.ProcessGroupID, f.InputWaiting}
	}
	switch {
	case a.flags.json:
		err = writeJSON(a.Out, out)
	case f != nil:
		waits := "not proven to wait for input"
		if f.InputWaiting {
			waits = "waits for input"
		}
		_, err = fmt.Fprintf(a.Out, "group %d, %s\n", f.ProcessGroupID, waits)
	}
	if err == nil && f == nil {
		err = statusError{exitAbsent}
	}
	return err
}

func newTermSignal(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "signal ID SIGNAL",
		Short: "Signal the foreground process group of a held terminal",
		Long: "Send SIGINT, SIGTERM, SIGKILL, SIGTSTP or SIGHUP to the process group in front and print its id. The shell " +
			"behind it stays.",
		Args: exactly(2, aTerminal+" and a signal"),
		RunE: a.run(func(ctx context.Context, args []string) error { return a.runHeldSignal(ctx, args[0], args[1]) }),
	}
}

// runHeldSignal sends a signal and prints the group that got it.
func (a *app) runHeldSignal(ctx context.Context, id, name string) error {
	return a.withHeld(ctx, id, func(c *keeper.Client) error {
		group, err := c.Signal(ctx, id, name)
		switch {
		case err != nil:
			return err
		case a.flags.json:
			return writeJSON(a.Out, map[string]int{"processGroupId": group})
		}
		_, err = fmt.Fprintln(a.Out, group)
		return err
	})
}

func newTermClose(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "close ID",
		Short: "Close a held terminal with all that runs on it",
		Long:  "End everything of the terminal's session, TERM before KILL, wait until nothing of it is left or in flight, and forget it.",
		Args:  exactly(1, aTerminal),
		RunE: a.run(func(ctx context.Context, args []string) error {
			return a.withHeld(ctx, args[0], func(c *keeper.Client) error { return c.CloseTerminal(ctx, args[0]) })
		}),
	}
}

func newTermScreen(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "screen ID",
		Short: "Print what a held terminal shows",
		Long: "Print the screen of a terminal as text, as a person in front of it would see it. With --json the cursor, the " +
			"title and the size come along; lossy says that output from before the first look was gone.",
		Args: exactly(1, aTerminal),
		RunE: a.run(func(ctx context.Context, args []string) error {
			return a.withHeld(ctx, args[0], func(c *keeper.Client) error { return runTermScreen(ctx, a, c, args[0]) })
		}),
	}
}

func runTermScreen(ctx context.Context, a *app, c *keeper.Client, id string) error {
	s, err := c.Screen(ctx, id)
	if err != nil {
		return err
	}
	if a.flags.json {
		return writeJSON(a.Out, s)
	}
	_, err = fmt.Fprintln(a.Out, strings.Join(s.Lines, "\n"))
	return err
}
