package cmd

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/mount"
	"github.com/afield-dev/afield/pkg/mount/ledger"
)

type mountStatusOptions struct {
	callFlags
	search string
	sort   string
	check  bool
	watch  bool
}

func newMountStatus(a *app) *cobra.Command {
	opts := mountStatusOptions{}
	c := &cobra.Command{
		Use:   "status",
		Short: "Show what the session holds",
		Long: "Show the files of which the session's conversation holds lines, how much of each, how fresh that is, " +
			"and what was saved. Nothing is written. A session that nobody has used is empty.",
		Example: "    afield mount status\n    afield mount status --watch --search pkg/\n    afield mount status --json --check",
		Args:    none,
	}
	f := c.Flags()
	f.StringVar(&opts.search, "search", "", "show only files with this `text` in their path (default: all)")
	f.StringVar(&opts.sort, "sort", "net", "`order` of the rows: net or path")
	f.BoolVar(&opts.check, "check", false, "look at each file and say whether it has changed")
	f.BoolVar(&opts.watch, "watch", false, "show again whenever the session changes, until interrupted")
	opts.addSession(f)
	c.RunE = a.run(func(ctx context.Context, _ []string) error {
		if opts.sort != string(mount.ByNet) && opts.sort != string(mount.ByPath) {
			return usage("--sort must be net or path")
		}
		with := func(m *mount.Mount, call mount.Call) error { return runMountStatus(ctx, a, m, call, opts) }
		if opts.check {
			return a.withMount(ctx, opts.callFlags, with)
		}
		return a.withLedger(opts.callFlags, with)
	})
	return c
}

func runMountStatus(ctx context.Context, a *app, m *mount.Mount, call mount.Call, opts mountStatusOptions) error {
	if call.Session == "" {
		return usage("no session is named").WithHint("give --session ID or set AFIELD_SESSION")
	}
	if !opts.watch {
		return a.showStatus(ctx, m, call, opts)
	}
	err := m.Store.Watch(ctx, call.Session, func() error { return a.showStatus(ctx, m, call, opts) })
	if err == nil {
		return fault.Aborted(ctx, fault.FSAborted, "mount status", call.Session)
	}
	return err
}

// showStatus prints the session once.
func (a *app) showStatus(ctx context.Context, m *mount.Mount, call mount.Call, opts mountStatusOptions) error {
	st, err := m.Status(ctx, call.Session, opts.search, mount.Order(opts.sort), call.Wait)
	if err == nil && opts.check {
		err = m.Check(ctx, &st)
	}
	if err != nil {
		return err
	}
	if a.flags.json {
		return writeJSON(a.Out, st)
	}
	page := statusPage{terminal: a.Terminal(a.Out), color: a.wantsColor()}
	text := page.render(st)
	if opts.watch && page.terminal {
		text = "\x1b[H\x1b[2J" + text
	}
	_, err = io.WriteString(a.Out, text)
	return err
}

// statusPage draws a status for a terminal, or plainly for a pipe.
type statusPage struct {
	terminal bool
	color    bool
}

func (p statusPage) render(st mount.Status) string {
	var b strings.Builder
	fmt.Fprintf(&b, "session %s, seq %d, %s\n", oneLine(st.Session), st.Seq, contextSentence(mount.ContextAnswer{ContextUsed: st.ContextUsed, ContextWindow: st.ContextWindow}))
	t := st.Totals
	fmt.Fprintf(&b, "net %d tokens (saved %d, overhead %d), CNY %.2f\n", t.NetTokens, t.SavedTokens, t.OverheadTokens, t.CNY)
	if len(st.Files) == 0 {
		b.WriteString("nothing is mounted yet\n")
		return b.String()
	}
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "LEVEL\tMOUNTED\t%\tNET\tLAST\tEXPIRED\tHASH\tPATH")
	for _, f := range st.Files {
		fmt.Fprintln(w, row(f))
	}
	w.Flush()
	b.WriteString(p.withBars(table.String(), st.Files))
	return b.String()
}

// barWidth is how many cells a coverage bar has.
const barWidth = 20

// withBars puts a bar in front of each line of a table, on a terminal.
func (p statusPage) withBars(table string, files []mount.FileStatus) string {
	if !p.terminal {
		return table
	}
	lines := strings.Split(strings.TrimSuffix(table, "\n"), "\n")
	lines[0] = fmt.Sprintf("%-*s  %s", barWidth, "COVERAGE", lines[0])
	for i, f := range files {
		lines[i+1] = p.bar(f) + "  " + lines[i+1]
	}
	return strings.Join(lines, "\n") + "\n"
}

func row(f mount.FileStatus) string {
	kind := f.LastKind
	if f.Changed {
		kind += "*"
	}
	if stale, ok := f.Stale.(*bool); ok {
		kind += staleMark(stale)
	}
	expired := 0
	for _, s := range f.Segments {
		expired = max(expired, s.Expired)
	}
	return fmt.Sprintf("%s\t%d/%d\t%d\t%d\t%s\t%d\t%s\t%s", f.Worst, f.MountedLines, f.TotalLines, f.CoveragePercent,
		f.NetTokens, kind, expired, f.Hash[:8], visible(oneLine(f.Path)))
}

func staleMark(stale *bool) string {
	switch {
	case stale == nil:
		return " ?"
	case *stale:
		return " stale"
	}
	return ""
}

// bar draws which part of a file is mounted; each cell has the colour of the
// worst segment in it.
func (p statusPage) bar(f mount.FileStatus) string {
	var b strings.Builder
	for i := range barWidth {
		from := 1 + i*f.TotalLines/barWidth
		to := max(from, (i+1)*f.TotalLines/barWidth)
		b.WriteString(p.cell(f, ledger.Range{Start: from, End: to}))
	}
	return b.String()
}

func (p statusPage) cell(f mount.FileStatus, lines ledger.Range) string {
	covered, color := 0, ""
	for _, s := range f.Segments {
		if part, ok := lines.Overlap(ledger.Range{Start: s.Start, End: s.End}); ok {
			covered += part.Lines()
			color = levelColor(s.Level)
		}
	}
	glyphs := []string{"·", "▏", "▍", "▌", "▋", "█"}
	glyph := glyphs[int(math.Ceil(5*float64(covered)/float64(lines.Lines())))]
	if p.color && covered > 0 {
		return color + glyph + "\x1b[0m"
	}
	return glyph
}

// levelColor is the terminal's nearest to the colours of mount.md 13.
func levelColor(l mount.Level) string {
	switch l {
	case mount.Fresh:
		return "\x1b[32m"
	case mount.OK:
		return "\x1b[33m"
	case mount.Warn:
		return "\x1b[38;5;208m"
	case mount.Expired:
		return "\x1b[31m"
	}
	return "\x1b[90m"
}
