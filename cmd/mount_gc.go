package cmd

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/mount"
)

func newMountStats(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "stats",
		Short: "Print the sums of all sessions",
		Long: "Print the sums over all sessions that the statistics file holds: sessions, tokens saved and spent, and " +
			"the difference. Without mount.statsFile in the profile there are none.",
		Example: "    afield mount stats --json",
		Args:    none,
		RunE:    a.run(func(context.Context, []string) error { return runMountStats(a) }),
	}
}

func runMountStats(a *app) error {
	c, err := a.mountConfig()
	if err != nil {
		return err
	}
	s := mount.ReadStats(c.StatsFile)
	if s.Sessions == nil {
		return a.answer(s, "no statistics: mount.statsFile is not set")
	}
	return a.answer(s, fmt.Sprintf("%d session(s): saved %d tokens, spent %d, net %d", *s.Sessions, *s.SavedTokens, *s.SpentTokens, *s.NetTokens))
}

type mountGCOptions struct {
	olderThan age
}

func newMountGC(a *app) *cobra.Command {
	opts := mountGCOptions{age{14 * 24 * time.Hour}}
	c := &cobra.Command{
		Use:     "gc",
		Short:   "Remove sessions that nobody uses any more",
		Long:    "Remove the ledgers of sessions that nobody has used for some time. One that is in use stays.",
		Example: "    afield mount gc --older-than 30d",
		Args:    none,
	}
	c.Flags().Var(&opts.olderThan, "older-than", "remove sessions idle for this `duration`, such as 36h or 14d")
	c.RunE = a.run(func(ctx context.Context, _ []string) error {
		return a.withLedger(callFlags{}, func(m *mount.Mount, _ mount.Call) error {
			answer, err := m.Collect(ctx, opts.olderThan.d)
			if err != nil {
				return err
			}
			return a.answer(answer, fmt.Sprintf("removed %d session(s), kept %d", len(answer.Removed), len(answer.Kept)))
		})
	})
	return c
}

// age is a duration that may be given in days.
type age struct{ d time.Duration }

func (o *age) String() string {
	if o.d > 0 && o.d%(24*time.Hour) == 0 {
		return strconv.Itoa(int(o.d/(24*time.Hour))) + "d"
	}
	return o.d.String()
}

func (o *age) Type() string { return "duration" }

// Set takes a duration, or a number of days.
func (o *age) Set(s string) error {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return fmt.Errorf("must be a duration such as 36h or 14d")
		}
		o.d = time.Duration(n) * 24 * time.Hour
		return nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return fmt.Errorf("must be a duration such as 36h or 14d")
	}
	o.d = d
	return nil
}
