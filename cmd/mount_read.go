package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/mount"
	"github.com/afield-dev/afield/pkg/remotefs"
)

type mountReadOptions struct {
	callFlags
	path    string
	window  remotefs.WindowOptions
	limited bool // --limit was given
}

// atLeastOne gives the window for the check that needs no profile: the largest
// limit is not known yet.
func (o mountReadOptions) atLeastOne() remotefs.WindowOptions {
	w := o.window
	if !o.limited {
		w.Limit = 1
	}
	w.Limit = min(w.Limit, 1)
	return w
}

func newMountRead(a *app) *cobra.Command {
	opts := mountReadOptions{}
	c := &cobra.Command{
		Use:   "read PATH",
		Short: "Print the lines of a file that the caller does not have",
		Long: "Print a window of numbered lines of a text file, as fs view does, but only those lines that this " +
			"session's conversation does not hold yet or holds in an older form. A marker line stands for the rest.\n\n" +
			"Without a session, or when the ledger cannot be used, the answer is that of fs view.",
		Example: "    export AFIELD_SESSION=run-7\n    afield mount read main.go\n" +
			"    afield mount read main.go --offset 120 --limit 40 --context-used 52000",
		Args:              exactly(1, "one PATH"),
		ValidArgsFunction: a.completePath,
	}
	f := c.Flags()
	f.IntVar(&opts.window.Offset, "offset", 1, "number of the first `line`")
	f.IntVar(&opts.window.Limit, "limit", 0, "answer at most `N` lines (default: fs.readLimit of the profile, 2000)")
	opts.addCall(f)
	c.RunE = a.run(func(ctx context.Context, args []string) error {
		opts.path = args[0]
		if err := checkBlank(opts.path); err != nil {
			return err
		}
		opts.limited = f.Changed("limit")
		if _, err := opts.atLeastOne().Check(); err != nil {
			return err
		}
		return a.withMount(ctx, opts.callFlags, func(m *mount.Mount, call mount.Call) error {
			if !opts.limited {
				opts.window.Limit = m.Window.MaxLimit
			}
			return runMountRead(ctx, a, m, call, opts)
		})
	})
	return c
}

func runMountRead(ctx context.Context, a *app, m *mount.Mount, call mount.Call, opts mountReadOptions) error {
	return m.Read(ctx, remotefs.AtPath(opts.path, ""), opts.window, call, func(answer *mount.Answer) error {
		if a.flags.json {
			return writeJSON(a.newOutput(ctx), answer)
		}
		text := answer.Text
		if a.Terminal(a.Out) {
			text += "\n" // a prompt follows; elsewhere the text is exact
		}
		_, err := a.newOutput(ctx).Write([]byte(text))
		return err
	})
}
