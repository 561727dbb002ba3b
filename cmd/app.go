package cmd

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/profile"
)

// app is what the commands of one invocation share.
type app struct {
	*Streams
	flags globalFlags
	// started is set when a command's function begins: what fails before it is
	// usage.
	started bool
	signals *signals

	providers backend.Registry // nil = the built-in ones
	composed  *profile.Composition
	tried     []backend.Provider // those of a plugin under test, instead of the profile's plugins
	secrets   *profile.Secrets

	// direct: this command opens worlds itself and uses no keeper.
	direct bool
	// afterwards runs when the command is done, unless it was stopped.
	afterwards []func()
}

// Main runs one command line and gives the exit status. It is called once in a
// process.
func Main(args []string, s *Streams) int { return (&app{Streams: s}).main(args) }

func (a *app) main(args []string) int {
	root := newRoot(a, args)
	root.SetArgs(args)
	c, err := root.ExecuteContextC(context.Background())
	if !a.started {
		a.flags.json = a.flags.json || asksJSON(args)
	}
	return a.finish(c, err)
}

// asksJSON looks for --json on a command line whose flags may not have been
// parsed to the end.
func asksJSON(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--json") || slices.Contains(args, "--json=true")
}

// finish reports a failure of c and gives the status.
func (a *app) finish(c *cobra.Command, err error) int {
	if err == nil {
		return exitOK
	}
	var answer statusError
	if errors.As(err, &answer) {
		return answer.status
	}
	err = a.coded(err)
	status := exitStatus(err)
	if passesChildStatus(c) {
		status = execStatus(err)
	}
	if status != exitPipe {
		writeFailure(a.Err, a.masked(err), status, a.flags.json)
	}
	return status
}

// coded gives an error of the command line library or of our own streams its
// code; a closed stdout stays without one.
func (a *app) coded(err error) error {
	var path *fs.PathError
	switch {
	case fault.CodeOf(err) != "":
		return err
	case !a.started:
		return usage("%s", err)
	case errors.As(err, &path) && path.Op == "write" && !errors.Is(err, syscall.EPIPE):
		return fault.Wrap(err, fault.FSIOError, "output", path.Path, "cannot write the output: %s", path.Err)
	}
	return err
}

// usage makes the error of a wrong command line.
func usage(format string, args ...any) *fault.Error {
	return fault.New(fault.Usage, "", "", format, args...)
}

// run wraps the function of a command: what fails before it is usage, and its
// context ends with the deadline of --timeout or by a signal.
func (a *app) run(f func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return a.plain(func(ctx context.Context, args []string) error {
		a.signals = catchSignals(ctx)
		defer a.signals.stop()
		err := f(a.signals.ctx, args)
		if a.signals.ctx.Err() == nil {
			for _, then := range a.afterwards {
				then()
			}
		}
		return err
	})
}

// plain is run for a command that prints what is at hand and may be ended at
// any point: signals do what they do to any program, which saves a tenth of the
// start-up time.
func (a *app) plain(f func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		if err := a.checkArguments(c, args); err != nil {
			return err
		}
		ctx, stop := a.withDeadline(c.Context())
		defer stop()
		a.started = true
		if a.flags.dump || a.flags.dumpDefault {
			return runDump(a)
		}
		return f(ctx, args)
	}
}

// withDeadline applies --timeout.
func (a *app) withDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if a.flags.timeout == 0 {
		return ctx, func() {}
	}
	return context.WithDeadlineCause(ctx, time.Now().Add(a.flags.timeout), fault.ErrDeadline)
}

// closeTime bounds what closing a world may take after the command is done.
const closeTime = 10 * time.Second

// withWorld opens the world, hands it to f, and closes it. Closing cannot turn
// success into failure.
func (a *app) withWorld(ctx context.Context, f func(*world) error) error {
	w, err := a.openWorld(ctx)
	if err != nil {
		return err
	}
	err = onBackend(f(w), w.provider)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	if cerr := w.Close(closing); cerr != nil {
		a.note("warning: closing the world: %s", withHint(cerr))
	}
	return err
}

// withHint gives an error's message and, in brackets, its next step.
func withHint(err error) string {
	var f *fault.Error
	if errors.As(err, &f) && f.Hint != "" {
		return err.Error() + " (" + f.Hint + ")"
	}
	return err.Error()
}

// onBackend names the backend in an error that does not.
func onBackend(err error, name string) error {
	var e *fault.Error
	if errors.As(err, &e) && e.Backend == "" {
		e.Backend = name
	}
	return err
}
