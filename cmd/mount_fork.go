package cmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/mount"
)

type mountForkOptions struct {
	callFlags
	to string
	at optionalInt
}

func newMountFork(a *app) *cobra.Command {
	opts := mountForkOptions{}
	c := &cobra.Command{
		Use:   "fork",
		Short: "Begin a session with what another one holds",
		Long: "Begin a new session for a conversation that starts as a copy of this one, such as that of a sub-agent. " +
			"Its sums begin at zero. A sub-agent that starts with an empty conversation needs no fork but an id of its own.",
		Example: "    afield mount fork --to run-7-review",
		Args:    none,
	}
	c.Flags().StringVar(&opts.to, "to", "", "`id` of the new session (required)")
	c.Flags().Var(&opts.at, "at", "copy what the session held at the message of this `number` (default: the last)")
	opts.addSession(c.Flags())
	c.RunE = a.run(func(ctx context.Context, _ []string) error {
		if err := oneOf(c.Flags(), "to"); err != nil {
			return err
		}
		return a.withLedger(opts.callFlags, func(m *mount.Mount, call mount.Call) error {
			answer, err := m.Fork(ctx, opts.to, opts.at.value, call)
			if err != nil {
				return err
			}
			return a.answer(answer, fmt.Sprintf("%s continues %s from seq %d", answer.To, answer.From, answer.Seq))
		})
	})
	return c
}
