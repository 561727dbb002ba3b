package cmd

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/afield-dev/afield/pkg/remoteexec"
)

// Defaults of exec.
const (
	defaultGrace     = 3 * time.Second
	defaultMaxOutput = 64 << 10
	defaultSpill     = 64 << 20
)

type execOptions struct {
	argv         []string
	shell        string
	env          envOptions
	grace        time.Duration
	lease        time.Duration
	maxOutput    int64
	spill        bool
	spillMax     int64
	report       string
	exitZero     bool
	input        bool
	noInput      bool
	allowEnvDrop bool
}

func newExec(a *app) *cobra.Command {
	opts := execOptions{spillMax: defaultSpill}
	c := &cobra.Command{
		Use:   "exec [flags] [--] ARGV...",
		Short: "Run a program in the world",
		Long: "Run a program in the world with exactly these arguments: no shell is in between. Its output streams are " +
			"passed on as they are, and so is its status. Standard input is passed on when it is not a terminal.\n\n" +
			"With --json the output is collected and printed as one object with the facts of the run; with --report the " +
			"streams stay untouched and the object goes to a file. When afield is asked to end, so is the program and " +
			"all that it started: TERM, then KILL after the grace time.",
		Example: "    afield exec -- git status --short\n" +
			"    afield exec --json --timeout 30s -- make test\n" +
			"    afield exec --shell 'cd src && ls | wc -l'",
		Annotations: map[string]string{childStatus: "yes", rawArguments: "yes"},
		Args:        cobra.ArbitraryArgs,
	}
	f := c.Flags()
	f.SetInterspersed(false)
	f.StringVar(&opts.shell, "shell", "", "run this `text` by the world's bash, or its sh; ARGV become $1, $2, … (default: no shell)")
	addEnvFlags(f, &opts.env)
	f.DurationVar(&opts.grace, "grace", defaultGrace, "`time` between TERM and KILL")
	f.DurationVar(&opts.lease, "lease", 0, "let the program and all that it started die in the world when afield has been gone for this `time`, killed or cut off (default: no lease)")
	f.Int64Var(&opts.maxOutput, "max-output", defaultMaxOutput, "with --json: keep the last `N` bytes of each stream")
	f.BoolVar(&opts.spill, "spill", false, "with --json: keep the whole of a longer stream, up to 64 MiB, in a file that the result names")
	f.StringVar(&opts.report, "report", "", "write the facts of the run to this `file` of the host (default: none)")
	f.BoolVar(&opts.exitZero, "exit-zero", false, "exit with 0 whenever the program ran")
	f.BoolVarP(&opts.input, "interactive", "i", false, "pass standard input on even when it is a terminal")
	f.BoolVarP(&opts.noInput, "no-stdin", "n", false, "give the program no input")
	f.BoolVar(&opts.allowEnvDrop, "allow-env-drop", false, "leave out variables that the service reserves instead of failing")
	c.RunE = a.run(func(ctx context.Context, args []string) error {
		opts.argv = args
		if err := opts.check(a, f); err != nil {
			return err
		}
		if p, err := a.loadProfile(); err == nil { // else opening the world tells why not
			opts.takeProfile(p, f)
			var stop context.CancelFunc
			ctx, stop = a.withExecDeadline(ctx, p)
			defer stop()
		}
		return runExec(ctx, a, opts)
	})
	return c
}

// check refuses what can be told from the command line alone.
func (o *execOptions) check(a *app, f *pflag.FlagSet) error {
	switch {
	case len(o.argv) == 0 && !f.Changed("shell"):
		return usage("afield exec needs a program").WithHint("afield exec -- PROGRAM ARGS…, or --shell 'TEXT'")
	case f.Changed("shell") && o.shell == "":
		return usage("--shell must not be empty")
	case !a.flags.json && (f.Changed("max-output") || o.spill):
		return usage("--max-output and --spill need --json: without it output is passed on as it comes")
	case a.flags.json && o.report != "":
		return usage("--json and --report cannot be used together")
	case o.maxOutput < 1:
		return usage("--max-output must be a positive integer")
	case f.Changed("lease") && (o.lease < time.Second || o.lease > remoteexec.MaxDelay):
		return usage("--lease must be between 1s and %s", remoteexec.MaxDelay)
	case o.grace < time.Millisecond || o.grace > remoteexec.MaxDelay:
		return usage("--grace must be between 1ms and %s", remoteexec.MaxDelay)
	}
	return exclusive(f, "interactive", "no-stdin")
}

// arguments gives the vector to start. The world decides which shell it has, in
// the one start that is made anyway.
func (o *execOptions) arguments() []string {
	if o.shell == "" {
		return o.argv
	}
	const choose = `if command -v bash >/dev/null 2>&1; then exec bash -c "$@"; else exec sh -c "$@"; fi`
	return append([]string{"/bin/sh", "-c", choose, "sh", o.shell, "sh"}, o.argv...)
}

// spec is the request to the world.
func (o *execOptions) spec(a *app, cwd string, env remoteexec.Env) remoteexec.Spec {
	s := remoteexec.Spec{
		Argv: o.arguments(), Cwd: cwd, Env: env, Grace: o.grace, Lease: o.lease, AllowEnvDrop: o.allowEnvDrop,
		Stdout: o.output(a, a.Out), Stderr: o.output(a, a.Err),
	}
	if !o.noInput && (o.input || !a.Terminal(a.In)) && !isNull(a.In) {
		s.Stdin, s.InheritStdin = remoteexec.StdinInherit, a.In
	}
	return s
}

// isNull reports whether a stream is the null device: a program without input gets
// the same, and a far world need not wait for it.
func isNull(in io.Reader) bool {
	f, ok := in.(*os.File)
	if !ok {
		return false
	}
	fi, err := f.Stat()
	if err != nil {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(fi, null)
}
