package cmd

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/afield-dev/afield/pkg/mount"
	"github.com/afield-dev/afield/pkg/mount/ledger"
)

type mountCompactOptions struct {
	callFlags
	through  optionalInt
	messages string
	all      bool
}

func newMountCompact(a *app) *cobra.Command {
	opts := mountCompactOptions{}
	c := &cobra.Command{
		Use:   "compact",
		Short: "Note that messages left the conversation",
		Long: "Note that messages left the conversation, for instance because it was summarised. Lines that only " +
			"they carried are read anew. With --context-used the positions of the rest are corrected at once, " +
			"otherwise with the next report.\n\n" +
			"A later rewind to before the compaction brings back what it dropped.",
		Example: "    afield mount compact --through 41 --context-used 18000\n    afield mount compact --messages 3-17,22",
		Args:    none,
	}
	f := c.Flags()
	f.Var(&opts.through, "through", "the message of this `number` and all before it are gone (required, or --messages or --all)")
	f.StringVar(&opts.messages, "messages", "", "these are gone: `numbers` and spans such as 3-17,22 (required, or --through or --all)")
	f.BoolVar(&opts.all, "all", false, "all messages are gone")
	opts.addSession(f)
	opts.addContext(f)
	c.RunE = a.run(func(ctx context.Context, _ []string) error {
		gone, err := opts.carriers(f)
		if err != nil {
			return err
		}
		return a.withLedger(opts.callFlags, func(m *mount.Mount, call mount.Call) error {
			answer, err := m.Compact(ctx, gone, call)
			if err != nil {
				return err
			}
			return a.answer(answer, dropSentence(answer))
		})
	})
	return c
}

func dropSentence(d mount.DropAnswer) string {
	return fmt.Sprintf("dropped %d segment(s), %d file(s); the last seq is %d", d.DroppedSegments, d.DroppedFiles, d.Seq)
}

// carriers gives the messages that the flags name.
func (o *mountCompactOptions) carriers(f *pflag.FlagSet) (ledger.Carriers, error) {
	gone := ledger.Carriers{All: o.all, Through: o.through.value}
	if err := firstOf(oneOf(f, "through", "messages", "all"), exclusive(f, "through", "messages", "all")); err != nil {
		return gone, err
	}
	if !f.Changed("messages") {
		return gone, nil
	}
	for _, span := range strings.Split(o.messages, ",") {
		first, last, isSpan := strings.Cut(strings.TrimSpace(span), "-")
		if !isSpan {
			last = first
		}
		from, err := strconv.ParseInt(first, 10, 64)
		to, err2 := strconv.ParseInt(last, 10, 64)
		if err != nil || err2 != nil || from < 0 || to < from {
			return gone, usage("--messages takes numbers and spans such as 3-17,22, not %q", span)
		}
		gone.List = append(gone.List, [2]int64{from, to})
	}
	return gone, nil
}
