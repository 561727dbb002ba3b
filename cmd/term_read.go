package cmd

import (
	"context"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/keeper"
	sh "github.com/afield-dev/afield/pkg/remoteexec/shell"
)

func newTermRead(a *app) *cobra.Command {
	o := heldReadOptions{}
	c := &cobra.Command{
		Use:   "read ID",
		Short: "Read the output of a held terminal from an offset",
		Long: "Print what is kept of a terminal's output from an offset on. Nothing is consumed: the same offset gives the " +
			"same bytes. With --json the offset to go on from comes along, and lossy says that the beginning is gone.",
		Args: exactly(1, "the id of a terminal"),
	}
	o.add(c.Flags())
	c.RunE = a.run(func(ctx context.Context, args []string) error {
		if err := o.check(); err != nil {
			return err
		}
		return a.withHeld(ctx, args[0], func(c *keeper.Client) error { return runTermRead(ctx, a, c, args[0], o) })
	})
	return c
}

// termReadJSON is the result of term read.
type termReadJSON struct {
	ID string `json:"id"`
	readJSON
	Exit *heldExit `json:"exit"`
}

func runTermRead(ctx context.Context, a *app, c *keeper.Client, id string, o heldReadOptions) error {
	part, b, result, err := readPart(ctx, c, keeper.ReadRequest{ID: id, From: o.from, Max: o.maxBytes, Wait: o.wait})
	if err != nil {
		return err
	}
	a.problem(result.Info)
	if a.flags.json {
		return writeJSON(a.Out, termReadJSON{result.Info.ID, part, exitOf(result.Info)})
	}
	_, err = a.Out.Write(b)
	return err
}

func newTermWaitFor(a *app) *cobra.Command {
	var pattern string
	var from int64
	c := &cobra.Command{
		Use:   "wait-for ID --pattern RE",
		Short: "Wait until the output of a held terminal matches",
		Long: "Wait until the output of a terminal, from an offset on and without its escape sequences, matches a regular " +
			"expression, and print what matched. --timeout bounds the wait; status 124 says that it passed, 3 that the " +
			"program ended without a match.",
		Args: exactly(1, "the id of a terminal"),
	}
	f := c.Flags()
	f.StringVar(&pattern, "pattern", "", "regular expression (RE2 syntax) to wait for (required)")
	f.Int64Var(&from, "from", 0, "look from this `offset` in the whole stream on, in bytes (default 0)")
	c.MarkFlagRequired("pattern")
	c.RunE = a.run(func(ctx context.Context, args []string) error {
		re, err := regexp.Compile(pattern)
		if err != nil {
			return usage("--pattern %q: %s", pattern, err)
		}
		if from < 0 {
			return usage("--from must not be negative")
		}
		return a.withHeld(ctx, args[0], func(c *keeper.Client) error { return runTermWaitFor(ctx, a, c, args[0], re, from) })
	})
	return c
}

// matchJSON is the result of term wait-for.
type matchJSON struct {
	ID         string   `json:"id"`
	From       int64    `json:"from"`
	NextOffset int64    `json:"nextOffset"`
	Match      string   `json:"match"`
	Groups     []string `json:"groups"`
}

const (
	// waitStep is the longest that one request waits for output.
	waitStep = 10 * time.Second
	// maxMatched bounds the output that a pattern is held against, in bytes.
	maxMatched = 1 << 20
)

func runTermWaitFor(ctx context.Context, a *app, c *keeper.Client, id string, re *regexp.Regexp, from int64) error {
	var seen []byte
	for at := from; ; {
		if ctx.Err() != nil {
			return fault.Aborted(ctx, fault.ExecCancelled, "wait-for", id)
		}
		result, b, err := c.Read(ctx, keeper.ReadRequest{ID: id, From: at, Max: defaultReadMax, Wait: waitStep})
		if err != nil {
			return aborted(ctx, err, id)
		}
		seen, at = append(seen, b...), result.NextOffset
		if len(seen) > maxMatched {
			seen = append([]byte(nil), seen[len(seen)-maxMatched:]...)
		}
		if m := re.FindStringSubmatch(sh.Clean(string(seen))); m != nil {
			return a.writeMatch(matchJSON{result.Info.ID, from, at, m[0], m[1:]})
		}
		if result.Ended {
			a.problem(result.Info)
			return fault.New(fault.ExecSessionExited, "wait-for", id, "the program of %s ended and nothing matched", id)
		}
	}
}

// aborted gives the reason of our own for a call that ended with ctx.
func aborted(ctx context.Context, err error, id string) error {
	if ctx.Err() != nil {
		return fault.Aborted(ctx, fault.ExecCancelled, "wait-for", id)
	}
	return err
}

func (a *app) writeMatch(m matchJSON) error {
	if a.flags.json {
		return writeJSON(a.Out, m)
	}
	_, err := a.Out.Write([]byte(m.Match + "\n"))
	return err
}
