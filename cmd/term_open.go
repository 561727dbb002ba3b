package cmd

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/keeper"
	"github.com/afield-dev/afield/pkg/remoteexec"
)

type termOpenOptions struct {
	argv   []string
	env    envOptions
	grace  time.Duration
	name   string
	rows   int
	cols   int
	shell  bool
	retain int64
	record string
}

func newTermOpen(a *app) *cobra.Command {
	opts := termOpenOptions{}
	c := &cobra.Command{
		Use:   "open [flags] [--] [ARGV...]",
		Short: "Open a terminal that outlives this command",
		Long: "Open a terminal in the world that the keeper holds, and print its id. Without ARGV it is the user's shell " +
			"there. With --shell-session it is a shell for afield term run: the bash of the profile's term.shellPath and " +
			"term.shellArgs, whose directory and environment persist from command to command. The last --retain bytes of " +
			"output are kept; an offset counts from the first byte of the whole stream.",
		Example:     "    id=$(afield term open -- python3 -i)\n    afield term write --enter $id 'print(6*7)'\n    afield term wait-for $id --pattern '42'",
		Annotations: map[string]string{rawArguments: "yes"},
		Args:        cobra.ArbitraryArgs,
	}
	f := c.Flags()
	f.SetInterspersed(false)
	addEnvFlags(f, &opts.env)
	f.DurationVar(&opts.grace, "grace", defaultGrace, "`time` between TERM and KILL when it is closed")
	f.StringVar(&opts.name, "name", "", "display `name`, unique among what the keeper holds (default: none)")
	f.IntVar(&opts.rows, "rows", 0, "rows of the terminal (default: the profile's term.rows, 40)")
	f.IntVar(&opts.cols, "cols", 0, "columns of the terminal (default: the profile's term.cols, 160)")
	f.BoolVar(&opts.shell, "shell-session", false, "start a persistent shell for afield term run")
	f.Int64Var(&opts.retain, "retain", 1<<20, "keep the last `bytes` of output")
	f.StringVar(&opts.record, "record", "", "record the terminal to this new `file` of the host, as asciicast version 2 (default: none)")
	c.RunE = a.run(func(ctx context.Context, args []string) error {
		opts.argv = args
		if err := opts.check(c.Flags().Changed); err != nil {
			return err
		}
		return runTermOpen(ctx, a, opts)
	})
	return c
}

func (o *termOpenOptions) check(given func(string) bool) error {
	switch {
	case o.grace < time.Millisecond || o.grace > remoteexec.MaxDelay:
		return usage("--grace must be between 1ms and %s", remoteexec.MaxDelay)
	case given("rows") && (o.rows < 1 || o.rows > 65535), given("cols") && (o.cols < 1 || o.cols > 65535):
		return usage("--rows and --cols must be between 1 and 65535")
	case o.retain < 1 || o.retain > maxRetain:
		return usage("--retain must be between 1 and %d", int64(maxRetain))
	case o.shell && len(o.argv) > 0:
		return usage("--shell-session starts the profile's shell and takes no program")
	}
	return nil
}

// maxRetain bounds what is kept in memory of one output, in bytes.
const maxRetain = 64 << 20

func runTermOpen(ctx context.Context, a *app, o termOpenOptions) error {
	env, err := a.environment(ctx, o.env)
	if err != nil {
		return err
	}
	hold := keeper.Hold{Label: o.name, RetainBytes: o.retain, Shell: o.shell}
	if o.record != "" {
		if hold.Record, err = a.hostPath(o.record); err != nil {
			return err
		}
	}
	return a.holding(ctx, func(c *keeper.Client, w *world) error {
		cwd, err := w.Cwd(ctx)
		if err != nil {
			return err
		}
		spec := remoteexec.TerminalSpec{
			Argv: o.arguments(w), Cwd: cwd, Env: w.environment(a, env), Rows: o.rows, Cols: o.cols, Grace: o.grace,
		}
		if spec.Rows == 0 {
			spec.Rows = w.profile.TermBlock.Rows
		}
		if spec.Cols == 0 {
			spec.Cols = w.profile.TermBlock.Cols
		}
		if _, ok := spec.Env.Set["TERM"]; !ok && !o.shell {
			spec.Env.Set["TERM"] = "xterm-256color"
		}
		i, err := c.OpenTerminal(ctx, spec, hold)
		if err != nil {
			return err
		}
		return a.writeStarted(i)
	})
}

// arguments gives the vector to start.
func (o *termOpenOptions) arguments(w *world) []string {
	if o.shell {
		return append([]string{w.profile.TermBlock.ShellPath}, w.profile.TermBlock.ShellArgs...)
	}
	return (&termOptions{argv: o.argv}).arguments()
}
