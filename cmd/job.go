package cmd

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/keeper"
	"github.com/afield-dev/afield/pkg/remoteexec"
)

func newJob(a *app) *cobra.Command {
	c := newGroup("job", "Run programs in the background that outlive a command",
		newJobStart(a), newJobList(a), newJobRead(a), newJobWrite(a), newJobWait(a), newJobSignal(a), newJobStop(a), newJobDrop(a))
	c.Long = "A job is a program in the world that the keeper holds: it goes on when the command that started it has ended. " +
		"Its two outputs are kept and read by offset, its status is asked for by afield job wait."
	return c
}

const aJob = "the id of a job"

type jobStartOptions struct {
	argv     []string
	env      envOptions
	grace    time.Duration
	name     string
	retain   int64
	spillMax int64
	input    bool
}

func newJobStart(a *app) *cobra.Command {
	o := jobStartOptions{}
	c := &cobra.Command{
		Use:   "start [flags] -- ARGV...",
		Short: "Start a job",
		Long: "Start a program in the background and print its id. The last --retain bytes of each output are kept in memory, " +
			"and the whole of it in a file of the host as long as it is not larger than --spill-max, so that all of it can be " +
			"read.",
		Example:     "    id=$(afield job start -- npm run dev)\n    afield job read $id --wait 5s",
		Annotations: map[string]string{rawArguments: "yes"},
		Args:        cobra.ArbitraryArgs,
	}
	f := c.Flags()
	f.SetInterspersed(false)
	addEnvFlags(f, &o.env)
	f.DurationVar(&o.grace, "grace", defaultGrace, "`time` between TERM and KILL when it is stopped")
	f.StringVar(&o.name, "name", "", "display `name`, unique among what the keeper holds (default: none)")
	f.Int64Var(&o.retain, "retain", 0, "keep the last `bytes` of each output in memory (default: the profile's exec.maxOutputBytes, 64000)")
	f.Int64Var(&o.spillMax, "spill-max", 0, "most `bytes` of an output in its file (default: the profile's exec.maxSpillBytes, 67108864)")
	f.BoolVarP(&o.input, "interactive", "i", false, "give it an input for afield job write; without it the input is empty")
	c.RunE = a.run(func(ctx context.Context, args []string) error {
		o.argv = args
		switch {
		case len(args) == 0:
			return usage("afield job start needs a program")
		case o.grace < time.Millisecond || o.grace > remoteexec.MaxDelay:
			return usage("--grace must be between 1ms and %s", remoteexec.MaxDelay)
		case f.Changed("retain") && (o.retain < 1 || o.retain > maxRetain):
			return usage("--retain must be between 1 and %d", int64(maxRetain))
		case f.Changed("spill-max") && o.spillMax < 1:
			return usage("--spill-max must be positive")
		}
		return runJobStart(ctx, a, o)
	})
	return c
}

func runJobStart(ctx context.Context, a *app, o jobStartOptions) error {
	env, err := a.environment(ctx, o.env)
	if err != nil {
		return err
	}
	return a.holding(ctx, func(c *keeper.Client, w *world) error {
		cwd, err := w.Cwd(ctx)
		if err != nil {
			return err
		}
		hold := keeper.Hold{Label: o.name, RetainBytes: o.retain, SpillBytes: o.spillMax}
		if hold.RetainBytes == 0 {
			hold.RetainBytes = w.profile.ExecBlock.MaxOutputBytes
		}
		if hold.SpillBytes == 0 {
			hold.SpillBytes = w.profile.ExecBlock.MaxSpillBytes
		}
		spec := remoteexec.Spec{Argv: o.argv, Cwd: cwd, Env: w.environment(a, env), Grace: o.grace}
		if o.input {
			spec.Stdin = remoteexec.StdinPipe
		}
		i, err := c.StartJob(ctx, spec, hold)
		if err != nil {
			return err
		}
		return a.writeStarted(i)
	})
}

func newJobList(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the jobs",
		Long:  "List the jobs that the keeper of the profile's world holds. One that has ended is listed until it is dropped, for an hour at most.",
		Args:  none,
		RunE:  a.run(func(ctx context.Context, _ []string) error { return runHeldList(ctx, a, true) }),
	}
}

func newJobWrite(a *app) *cobra.Command {
	var eof bool
	c := &cobra.Command{
		Use:   "write ID",
		Short: "Write standard input to a job that was started with -i",
		Long:  "Write standard input to a job's input. The command returns when the program has taken the bytes, or its pipe has.",
		Args:  exactly(1, aJob),
	}
	c.Flags().BoolVar(&eof, "eof", false, "end the job's input afterwards")
	c.RunE = a.run(func(ctx context.Context, args []string) error { return a.runHeldWrite(ctx, args[0], a.In, eof) })
	return c
}

func newJobWait(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "wait ID",
		Short: "Wait for the end of a job and end with its status",
		Long: "Wait until a job has ended and pass its status on, as afield exec does. --timeout bounds the wait; when it " +
			"passes, the status is 124 and the job goes on. A job whose connection was lost is status 125.",
		Annotations: map[string]string{childStatus: "yes"},
		Args:        exactly(1, aJob),
	}
	c.RunE = a.run(func(ctx context.Context, args []string) error {
		return a.withHeld(ctx, args[0], func(c *keeper.Client) error { return runJobWait(ctx, a, c, args[0]) })
	})
	return c
}

func runJobWait(ctx context.Context, a *app, c *keeper.Client, id string) error {
	i, err := c.Wait(ctx, id, 0)
	if ctx.Err() != nil && (err != nil || i.State == "running") {
		return fault.Aborted(ctx, fault.ExecCancelled, "wait", id)
	}
	if err != nil {
		return err
	}
	if a.flags.json {
		if err := writeJSON(a.Out, i); err != nil {
			return err
		}
	}
	if i.Problem != nil {
		return fault.New(fault.ExecTransportLost, "wait", id, "%s: %s", id, *i.Problem)
	}
	return heldStatus(i.ExitCode, i.Signal)
}

func newJobSignal(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "signal ID SIGNAL",
		Short: "Signal the process group of a job",
		Long:  "Send a signal such as SIGHUP to the process group of a job, by the world's own kill, and print its id.",
		Args:  exactly(2, aJob+" and a signal"),
		RunE:  a.run(func(ctx context.Context, args []string) error { return a.runHeldSignal(ctx, args[0], args[1]) }),
	}
}

func newJobStop(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "stop ID",
		Short: "Stop a job with all that it started",
		Long: "End a job's whole tree, TERM before KILL, and wait until nothing of it runs. Its output and status stay to be " +
			"read. It is no failure that it had ended already.",
		Args: exactly(1, aJob),
		RunE: a.run(func(ctx context.Context, args []string) error {
			return a.withHeld(ctx, args[0], func(c *keeper.Client) error {
				stopped, err := c.StopJob(ctx, args[0])
				if err == nil && a.flags.json {
					err = writeJSON(a.Out, map[string]bool{"stopped": stopped})
				}
				return err
			})
		}),
	}
}

func newJobDrop(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "drop ID",
		Short: "Forget a job that has ended, with its output",
		Long:  "Forget a job that has ended and remove what was kept of its output. One that runs is refused.",
		Args:  exactly(1, aJob),
		RunE: a.run(func(ctx context.Context, args []string) error {
			return a.withHeld(ctx, args[0], func(c *keeper.Client) error { return c.Drop(ctx, args[0]) })
		}),
	}
}
