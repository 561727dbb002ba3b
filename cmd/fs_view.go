package cmd

import (
	"context"
	"math"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/afield-dev/afield/pkg/remotefs"
)

type fsViewOptions struct {
	path   string
	window remotefs.WindowOptions
	policy observedOptions
}

// viewResult is the JSON of fs view.
type viewResult struct {
	Target     targetResult `json:"target"`
	Offset     int          `json:"offset"`
	Lines      []viewLine   `json:"lines"`
	TotalLines int          `json:"totalLines"`
	Capped     bool         `json:"capped"`
	NextOffset *int         `json:"nextOffset"`
	Version    string       `json:"version"`
	BOM        bool         `json:"bom"`
	Text       string       `json:"text"`
}

type viewLine struct {
	Number int    `json:"number"`
	Text   string `json:"text"`
}

func newFSView(a *app) *cobra.Command {
	opts := fsViewOptions{}
	c := &cobra.Command{
		Use:   "view PATH",
		Short: "Print numbered lines of a file",
		Long: "Print a window of numbered lines of a text file, the total of its lines, and where to go on. " +
			"The byte-order mark and line ends are not shown; a long line is cut with a mark.",
		Example:           "    afield fs view main.go\n    afield fs view main.go --offset 120 --limit 40",
		Args:              exactly(1, "one PATH"),
		ValidArgsFunction: a.completePath,
	}
	f := c.Flags()
	f.IntVar(&opts.window.Offset, "offset", 1, "number of the first `line`")
	f.IntVar(&opts.window.Limit, "limit", remotefs.DefaultReadLimit, "print at most `N` lines")
	f.IntVar(&opts.window.MaxBytes, "max-bytes", remotefs.DefaultReadMaxBytes, "print at most `N` bytes of text")
	f.IntVar(&opts.window.MaxLineLength, "max-line-length", remotefs.DefaultReadMaxLineLength, "cut lines after `N` UTF-16 units")
	addObservedFlags(f, &opts.policy)
	c.RunE = a.run(func(ctx context.Context, args []string) error {
		opts.path = args[0]
		if err := opts.check(f); err != nil {
			return err
		}
		p, err := a.loadProfile()
		if err != nil {
			return err
		}
		if err := opts.takeProfile(p, f); err != nil {
			return err
		}
		return a.withObserved(ctx, opts.policy, func(o observed) error { return runFSView(ctx, a, o, opts) })
	})
	return c
}

// check refuses what can be told from the command line alone, in the order of
// remotefs.md 15.
func (o *fsViewOptions) check(f *pflag.FlagSet) error {
	if err := checkBlank(o.path); err != nil {
		return err
	}
	lenient := o.window
	lenient.MaxLimit = math.MaxInt // the profile says how much
	if _, err := lenient.Check(); err != nil {
		return err
	}
	for _, cap := range []struct {
		flag  string
		value int
	}{{"max-bytes", o.window.MaxBytes}, {"max-line-length", o.window.MaxLineLength}} {
		if f.Changed(cap.flag) && cap.value < 1 {
			return usage("--%s must be a positive integer", cap.flag)
		}
	}
	return o.policy.check(f)
}

func runFSView(ctx context.Context, a *app, o observed, opts fsViewOptions) error {
	v, err := o.view(ctx, remotefs.AtPath(opts.path, ""), opts.window)
	if err != nil {
		return err
	}
	text := v.Render(v.Target.Display)
	if a.flags.json {
		return writeJSON(a.Out, newViewResult(o.fs, v, text))
	}
	if a.Terminal(a.Out) {
		text += "\n" // a prompt follows; elsewhere the text is exact
	}
	_, err = a.newOutput(ctx).Write([]byte(text))
	return err
}

func newViewResult(fs remotefs.FS, v remotefs.View, text string) viewResult {
	r := viewResult{
		Target: newTargetResult(fs, v.Target), Offset: v.Offset, Lines: make([]viewLine, len(v.Lines)),
		TotalLines: v.Total, Capped: v.Capped, Version: v.Version, BOM: v.BOM, Text: text,
	}
	for i, l := range v.Lines {
		r.Lines[i] = viewLine(l)
	}
	if next := v.NextOffset(); next > 0 {
		r.NextOffset = &next
	}
	return r
}
