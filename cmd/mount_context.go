package cmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/mount"
)

type mountContextOptions struct {
	callFlags
}

func newMountContext(a *app) *cobra.Command {
	opts := mountContextOptions{}
	c := &cobra.Command{
		Use:     "context",
		Short:   "Report how full the conversation is",
		Long:    "Report how many tokens the conversation takes and how many the model can take, without reading anything.",
		Example: "    afield mount context --used 52000 --window 200000",
		Args:    none,
	}
	f := c.Flags()
	f.Var(&opts.used, "used", "`tokens` in the prompt, cached ones included (default: AFIELD_CONTEXT_USED, else as last reported)")
	f.Var(&opts.window, "window", "`tokens` that the model takes (default: AFIELD_CONTEXT_WINDOW, else as last reported)")
	f.Var(&opts.seq, "seq", "`number` of the last message (default: as last reported)")
	opts.addSession(f)
	c.RunE = a.run(func(ctx context.Context, _ []string) error {
		return a.withLedger(opts.callFlags, func(m *mount.Mount, call mount.Call) error {
			answer, err := m.Context(ctx, call)
			if err != nil {
				return err
			}
			return a.answer(answer, contextSentence(answer))
		})
	})
	return c
}

func contextSentence(c mount.ContextAnswer) string {
	if c.ContextUsed == nil {
		return fmt.Sprintf("context used is not known, window %d", c.ContextWindow)
	}
	return fmt.Sprintf("context used %d of %d", *c.ContextUsed, c.ContextWindow)
}
