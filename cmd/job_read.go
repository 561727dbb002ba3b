package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/keeper"
	"github.com/afield-dev/afield/pkg/remoteexec"
)

type jobReadOptions struct {
	heldReadOptions
	stream string
	errs   int64 // offset of stderr with both
}

func newJobRead(a *app) *cobra.Command {
	o := jobReadOptions{}
	c := &cobra.Command{
		Use:   "read ID",
		Short: "Read the output of a job from an offset",
		Long: "Print what a job has written from an offset on: its standard output, its standard error, or both, each to the " +
			"stream of its name. Nothing is consumed. With --json the offsets to go on from come along.",
		Args: exactly(1, aJob),
	}
	f := c.Flags()
	o.add(f)
	f.StringVar(&o.stream, "stream", "stdout", "stdout, stderr or both")
	f.Int64Var(&o.errs, "from-stderr", 0, "with --stream both: the `offset` in the standard error, in bytes (default 0)")
	c.RunE = a.run(func(ctx context.Context, args []string) error {
		if err := o.check(); err != nil {
			return err
		}
		if o.stream != "stdout" && o.stream != "stderr" && o.stream != "both" {
			return usage("--stream must be stdout, stderr or both")
		}
		if o.errs < 0 || o.errs > 0 && o.stream != "both" {
			return usage("--from-stderr must not be negative and belongs to --stream both")
		}
		return a.withHeld(ctx, args[0], func(c *keeper.Client) error { return runJobRead(ctx, a, c, args[0], o) })
	})
	return c
}

// jobBothJSON is the result of job read --stream both.
type jobBothJSON struct {
	ID     string    `json:"id"`
	Stdout readJSON  `json:"stdout"`
	Stderr readJSON  `json:"stderr"`
	Exit   *heldExit `json:"exit"`
}

func runJobRead(ctx context.Context, a *app, c *keeper.Client, id string, o jobReadOptions) error {
	first := keeper.ReadRequest{ID: id, Stream: remoteexec.Stdout, From: o.from, Max: o.maxBytes, Wait: o.wait}
	out := a.Out
	if o.stream == "stderr" {
		first.Stream = remoteexec.Stderr
	}
	part, b, result, err := readPart(ctx, c, first)
	if err != nil {
		return err
	}
	if o.stream != "both" {
		a.problem(result.Info)
		if a.flags.json {
			return writeJSON(a.Out, termReadJSON{result.Info.ID, part, exitOf(result.Info)})
		}
		_, err = out.Write(b)
		return err
	}
	errs, eb, result, err := readPart(ctx, c, keeper.ReadRequest{ID: id, Stream: remoteexec.Stderr, From: o.errs, Max: o.maxBytes})
	if err != nil {
		return err
	}
	a.problem(result.Info)
	if a.flags.json {
		return writeJSON(a.Out, jobBothJSON{result.Info.ID, part, errs, exitOf(result.Info)})
	}
	if _, err := out.Write(b); err != nil {
		return err
	}
	_, err = a.Err.Write(eb)
	return err
}
