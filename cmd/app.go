package cmd

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/fault"
)

// app is what the commands of one invocation share.
type app struct {
	*Streams
	flags globalFlags
	// started is set when a command's function begins: what fails before it is
	// usage.
	started bool
}

// Main runs one command line and gives the exit status. It is called once in a
// process.
func Main(args []string, s *Streams) int {
	ctx, stop := withSignals(context.Background())
	defer stop()
	a := &app{Streams: s}
	root := newRoot(a, args)
	root.SetArgs(args)
	return a.finish(root.ExecuteContext(ctx))
}

// finish reports a failure and gives the status.
func (a *app) finish(err error) int {
	status, isAnswer := exitStatus(err), false
	if err != nil && !a.started && fault.CodeOf(err) == "" {
		err = fault.Wrap(err, fault.Usage, "", "", "%s", err)
		status = exitUsage
	}
	_, isAnswer = err.(statusError)
	if err != nil && !isAnswer && status != exitPipe {
		writeFailure(a.Err, err, status, a.flags.json)
	}
	return status
}

// run wraps the function of a command, so that errors before it count as usage.
func (a *app) run(f func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		a.started = true
		return f(c.Context(), args)
	}
}

// withSignals gives a context that ends when the process is asked to end; the
// cause says by what. A second signal kills at once (HX-1). SIGPIPE is caught
// so that a closed stdout is an error like any other and cleaning up happens.
func withSignals(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	ch := make(chan os.Signal, 2)
	signal.Notify(ch, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	done := make(chan struct{})
	go func() {
		select {
		case s := <-ch:
			cancel(causeOf(s))
			signal.Reset(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		case <-done:
		}
	}()
	return ctx, func() { signal.Stop(ch); close(done); cancel(nil) }
}

func causeOf(s os.Signal) error {
	switch s {
	case syscall.SIGTERM:
		return fault.ErrTerminated
	case syscall.SIGHUP:
		return fault.ErrHungUp
	default:
		return fault.ErrInterrupted
	}
}
