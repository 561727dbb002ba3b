package cmd

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/keeper"
)

func newTermWrite(a *app) *cobra.Command {
	var enter bool
	c := &cobra.Command{
		Use:   "write ID [TEXT]",
		Short: "Write to a held terminal",
		Long: "Write TEXT, or standard input, to a terminal exactly as it is: no line end is added or changed. Enter is a " +
			"carriage return, which --enter adds. The command returns when the terminal has taken the bytes.",
		Example:     "    afield term write --enter pty-1 'make test'\n    printf '\\003' | afield term write pty-1",
		Annotations: map[string]string{rawArguments: "yes"},
		Args:        cobra.RangeArgs(1, 2),
	}
	c.Flags().BoolVar(&enter, "enter", false, "write a carriage return at the end")
	c.RunE = a.run(func(ctx context.Context, args []string) error {
		content := a.In
		if len(args) > 1 {
			content = strings.NewReader(args[1])
		}
		if enter {
			content = io.MultiReader(content, strings.NewReader("\r"))
		}
		return a.runHeldWrite(ctx, args[0], content, false)
	})
	return c
}

// runHeldWrite writes content to a held program.
func (a *app) runHeldWrite(ctx context.Context, id string, content io.Reader, eof bool) error {
	return a.withHeld(ctx, id, func(c *keeper.Client) error {
		n, err := c.Write(ctx, id, content, eof)
		if err == nil && a.flags.json {
			err = writeJSON(a.Out, map[string]any{"id": id, "bytes": n})
		}
		return err
	})
}
