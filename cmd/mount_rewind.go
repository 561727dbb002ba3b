package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/mount"
)

type mountRewindOptions struct {
	callFlags
	to int64
}

func newMountRewind(a *app) *cobra.Command {
	opts := mountRewindOptions{}
	c := &cobra.Command{
		Use:   "rewind",
		Short: "Go back to what the session held at a message",
		Long: "Note that the conversation was cut back to a message, or changed there: the session then holds what " +
			"it held after it. Sums of tokens stay. Where the kept history does not reach so far back, the session " +
			"holds nothing.",
		Example: "    afield mount rewind --to 12",
		Args:    none,
	}
	c.Flags().Int64Var(&opts.to, "to", -1, "`number` of the last message that stays (required)")
	opts.addSession(c.Flags())
	c.RunE = a.run(func(ctx context.Context, _ []string) error {
		if err := oneOf(c.Flags(), "to"); err != nil {
			return err
		}
		return a.withLedger(opts.callFlags, func(m *mount.Mount, call mount.Call) error {
			answer, err := m.Rewind(ctx, opts.to, call)
			if err != nil {
				return err
			}
			return a.answer(answer, dropSentence(answer))
		})
	})
	return c
}
