package cmd

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/keeper"
)

type termAttachOptions struct {
	key      string
	readOnly bool
	from     int64
}

func newTermAttach(a *app) *cobra.Command {
	o := termAttachOptions{}
	c := &cobra.Command{
		Use:   "attach ID",
		Short: "Connect this terminal with a held one",
		Long: "Connect this terminal with a held one: keys go there as they are typed, and the size follows. The detach key " +
			"leaves it running. The command ends with the program's status, or with 0 after the detach key. One at a time " +
			"may type; with --read-only any number may look.",
		Example:     "    afield term attach pty-1\n    afield term attach --detach-key ctrl-b pty-1",
		Annotations: map[string]string{childStatus: "yes"},
		Args:        exactly(1, aTerminal),
	}
	f := c.Flags()
	f.StringVar(&o.key, "detach-key", `ctrl-\`, "`key` that leaves the terminal: ctrl- and a letter or one of @ [ \\ ] ^ _, or none")
	f.BoolVar(&o.readOnly, "read-only", false, "only look")
	f.Int64Var(&o.from, "from", -64<<10, "begin at this `offset`; a negative one counts from the end, in bytes")
	c.RunE = a.run(func(ctx context.Context, args []string) error {
		key, err := o.detach()
		if err != nil {
			return err
		}
		if !a.Terminal(a.In) || !a.Terminal(a.Out) {
			return usage("afield term attach needs a terminal on standard input and output").WithHint("afield term read and write need none")
		}
		return a.withHeld(ctx, args[0], func(c *keeper.Client) error { return runTermAttach(ctx, a, c, args[0], o, key) })
	})
	return c
}

// detach gives the byte of the detach key; 0 = none.
func (o *termAttachOptions) detach() (byte, error) {
	if o.key == "none" {
		return 0, nil
	}
	if len(o.key) == len("ctrl-x") && o.key[:5] == "ctrl-" {
		c := o.key[5]
		if c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		if c > '@' && c <= '_' {
			return c & 0x1f, nil
		}
	}
	return 0, usage("--detach-key must be ctrl- and a letter or one of [ \\ ] ^ _, or none")
}

func runTermAttach(ctx context.Context, a *app, c *keeper.Client, id string, o termAttachOptions, key byte) error {
	s, err := openScreen(a)
	if err != nil {
		return err
	}
	at, err := c.Attach(ctx, id, o.from, !o.readOnly)
	if err != nil {
		return err
	}
	if err := s.raw(); err != nil {
		at.Detach()
		return err
	}
	defer s.restore()
	a.signals.atHardExit(s.restore)
	if !o.readOnly {
		defer s.lead(ctx, c, id)()
	}
	keys := make(chan struct{})
	go func() {
		typed(s.in, at, key, o.readOnly)
		close(keys)
	}()
	shown := make(chan error, 1)
	go func() {
		_, err := io.Copy(s.out, at)
		shown <- err
	}()
	select {
	case err = <-shown:
	case <-keys:
		at.Detach()
	case <-ctx.Done():
		at.Detach()
	}
	i, failed := at.Result(context.WithoutCancel(ctx))
	if err == nil {
		err = failed
	}
	s.restore()
	if err != nil || i.State == "running" {
		return err
	}
	a.problem(i)
	return heldStatus(i.ExitCode, i.Signal)
}

// typed passes keys on until the detach key or the end of the input.
func typed(in io.Reader, to io.Writer, key byte, readOnly bool) {
	buf := make([]byte, 4096)
	for {
		n, err := in.Read(buf)
		p := buf[:n]
		at := -1
		if key != 0 {
			at = bytes.IndexByte(p, key)
		}
		if at >= 0 {
			p = p[:at]
		}
		if len(p) > 0 && !readOnly {
			if _, werr := to.Write(p); errors.Is(werr, io.ErrClosedPipe) {
				return
			}
		}
		if at >= 0 || err != nil {
			return
		}
	}
}

// lead gives the held terminal the size of the screen, now and at each change.
func (s *screen) lead(ctx context.Context, c *keeper.Client, id string) (stop func()) {
	rows, cols := s.size()
	_ = c.Resize(ctx, id, rows, cols)
	changed := make(chan os.Signal, 1)
	done := make(chan struct{})
	signal.Notify(changed, syscall.SIGWINCH)
	go func() {
		for {
			select {
			case <-changed:
				rows, cols := s.size()
				_ = c.Resize(ctx, id, rows, cols)
			case <-done:
				return
			}
		}
	}()
	return func() { signal.Stop(changed); close(done) }
}
