package cmd

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/afield-dev/afield/pkg/remoteexec"
)

type termOptions struct {
	argv  []string
	env   envOptions
	grace time.Duration
}

func newTerm(a *app) *cobra.Command {
	opts := termOptions{}
	c := &cobra.Command{
		Use:   "term [flags] [--] [ARGV...]",
		Short: "Run a program on a terminal in the world",
		Long: "Run a program on a new terminal in the world and connect it with this one: keys go there as they are " +
			"typed, the size follows, and the status is the program's. Without ARGV it is the user's shell there. " +
			"When the program ends, so does all that it left on its terminal. A program whose name is that of a command " +
			"below is named behind --. The commands are about terminals that outlive a command.",
		Example:     "    afield term\n    afield term -- vim notes.txt",
		Annotations: map[string]string{childStatus: "yes", rawArguments: "yes"},
		Args:        cobra.ArbitraryArgs,
	}
	f := c.Flags()
	f.SetInterspersed(false)
	addEnvFlags(f, &opts.env)
	f.DurationVar(&opts.grace, "grace", defaultGrace, "`time` between TERM and KILL")
	c.RunE = a.run(func(ctx context.Context, args []string) error {
		opts.argv = args
		if err := opts.check(a, f); err != nil {
			return err
		}
		env, err := a.environment(ctx, opts.env)
		if err != nil {
			return err
		}
		return a.withWorld(ctx, func(w *world) error { return runTerm(ctx, a, w, opts, env) })
	})
	c.AddCommand(newTermOpen(a), newTermRun(a), newTermWrite(a), newTermRead(a), newTermWaitFor(a), newTermScreen(a),
		newTermResize(a), newTermInspect(a), newTermSignal(a), newTermClose(a), newTermList(a), newTermAttach(a))
	return c
}

// check refuses what can be told from the command line alone.
func (o *termOptions) check(a *app, _ *pflag.FlagSet) error {
	switch {
	case o.grace < time.Millisecond || o.grace > remoteexec.MaxDelay:
		return usage("--grace must be between 1ms and %s", remoteexec.MaxDelay)
	case !a.Terminal(a.In) || !a.Terminal(a.Out):
		return usage("afield term needs a terminal on standard input and output").
			WithHint("afield exec runs a program without one")
	}
	return nil
}

// arguments gives the vector to start; by default the user's shell in the world.
func (o *termOptions) arguments() []string {
	if len(o.argv) > 0 {
		return o.argv
	}
	const shell = `if [ -n "$SHELL" ]; then exec "$SHELL"; elif command -v bash >/dev/null 2>&1; then exec bash; else exec sh; fi`
	return []string{"/bin/sh", "-c", shell}
}

// runTerm runs the program and ends with its status.
func runTerm(ctx context.Context, a *app, w *world, opts termOptions, env remoteexec.Env) error {
	procs, err := w.processes()
	if err != nil {
		return err
	}
	cwd, err := w.Cwd(ctx)
	if err != nil {
		return err
	}
	if _, ok := env.Set["TERM"]; !ok && a.getenv("TERM") != "" {
		env.Set["TERM"] = a.getenv("TERM")
	}
	screen, err := openScreen(a)
	if err != nil {
		return err
	}
	rows, cols := screen.size()
	t, err := procs.OpenTerminal(ctx, remoteexec.TerminalSpec{
		Argv: opts.arguments(), Cwd: cwd, Env: env, Rows: rows, Cols: cols, Grace: opts.grace,
	})
	if err != nil {
		return err
	}
	if err := screen.raw(); err != nil {
		t.Terminate(context.WithoutCancel(ctx))
		return err
	}
	defer screen.restore()
	a.signals.atHardExit(func() { screen.restore(); procs.HardStop() })
	return a.connect(ctx, screen, t)
}
