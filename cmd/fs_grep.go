package cmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/profile"
	"github.com/afield-dev/afield/pkg/search"
)

type fsGrepOptions struct {
	request search.GrepRequest
	null    bool
	max     int
}

// grepMatch is a line of the JSON of fs grep.
type grepMatch struct {
	Type       string         `json:"type"` // "match"
	Path       string         `json:"path"`
	PathBase64 *string        `json:"pathBase64"`
	Line       int64          `json:"line"`
	Column     int            `json:"column"` // of the first match, in bytes from 1
	Offset     int64          `json:"offset"` // of the first match in the file, in bytes
	Text       string         `json:"text"`
	Truncated  bool           `json:"truncated"`
	Matches    []search.Range `json:"matches"` // in the whole line, in bytes
}

// grepSummary is the last line.
type grepSummary struct {
	Type     string `json:"type"` // "summary"
	Shown    int    `json:"shown"`
	Total    int    `json:"total"`
	Fallback bool   `json:"fallback"`
}

func newFSGrep(a *app) *cobra.Command {
	opts := fsGrepOptions{}
	c := &cobra.Command{
		Use:   "grep PATTERN [PATH]",
		Short: "Find lines by a regular expression",
		Long: "Find lines that match a regular expression, by path in byte order and by line. Binary and hidden files, and " +
			"what ignore files leave out, are passed over. PATH is where to look (default: the working directory). " +
			"With --json one line for each matching line, and a summary at the end; column, offset and ranges count bytes.\n\n" +
			"Where the world has rg, it searches; else afield reads the files itself with Go's regular expressions (RE2): " +
			"there \\w, \\d, \\s and \\b know ASCII alone, files above fs.search.rawOutputMaxBytes are passed over, text in " +
			"UTF-16 is binary, and a .gitignore counts if PATH itself lies in a repository.",
		Example:           "    afield fs grep 'TODO\\(\\w+\\)' src --include '*.{go,ts}'\n    afield fs grep -0 needle | xargs -0 wc -l",
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := c.Flags()
	f.StringVar(&opts.request.Include, "include", "", "look into files of this `glob` only (default: all)")
	f.BoolVar(&opts.request.NoIgnore, "no-ignore", false, "take no notice of ignore files")
	f.BoolVar(&opts.request.Hidden, "hidden", false, "look into hidden files and directories, too")
	f.BoolVarP(&opts.null, "null", "0", false, "print only the path of each file with a match, ended by a NUL byte")
	f.IntVar(&opts.max, "max-matches", -1, "matching lines shown, 0 = all (default: fs.search.grepMaxMatches of the profile, 250)")
	f.Lookup("max-matches").DefValue = ""
	c.RunE = a.run(func(ctx context.Context, args []string) error {
		opts.request.Pattern = args[0]
		if len(args) == 2 {
			opts.request.Path = args[1]
			if err := checkBlank(args[1]); err != nil {
				return err
			}
		}
		if opts.null && a.flags.json {
			return usage("--null and --json cannot be used together")
		}
		if f.Changed("include") && strings.TrimSpace(opts.request.Include) == "" {
			return usage("the include pattern must not be blank")
		}
		if err := opts.request.Check(); err != nil {
			return err
		}
		return a.withSearch(ctx, func(s *search.Searcher, l profile.Search) error { return runFSGrep(ctx, a, s, l, opts) })
	})
	return c
}

func runFSGrep(ctx context.Context, a *app, s *search.Searcher, l profile.Search, opts fsGrepOptions) error {
	matches, err := s.Grep(ctx, opts.request)
	if err != nil {
		return err
	}
	if opts.null {
		return a.writeMatchingPaths(matches)
	}
	if opts.max < 0 {
		opts.max = int(l.GrepMaxMatches)
	}
	shown := matches
	if opts.max > 0 && len(matches) > opts.max {
		shown = matches[:opts.max]
	}
	if a.flags.json {
		for _, m := range shown {
			if err := writeJSON(a.Out, newGrepMatch(m, l.GrepMaxLineBytes)); err != nil {
				return err
			}
		}
		return writeJSON(a.Out, grepSummary{"summary", len(shown), len(matches), s.Fallback})
	}
	return a.writeMatches(shown, len(matches), l.GrepMaxLineBytes)
}

func newGrepMatch(m search.Match, max int64) grepMatch {
	text, cut := search.Preview(m.Text, max)
	g := grepMatch{Type: "match", Path: lossy(m.Path), PathBase64: base64OrNull([]byte(m.Path)), Line: m.Line,
		Column: 1, Offset: m.Offset, Text: text, Truncated: cut, Matches: orEmpty(m.Ranges)}
	if len(m.Ranges) > 0 {
		g.Column += m.Ranges[0].Start
		g.Offset += int64(m.Ranges[0].Start)
	}
	return g
}

func (a *app) writeMatchingPaths(matches []search.Match) error {
	var b strings.Builder
	last := ""
	for _, m := range matches {
		if m.Path != last {
			b.WriteString(m.Path + "\x00")
		}
		last = m.Path
	}
	_, err := a.Out.Write([]byte(b.String()))
	return err
}

// writeMatches writes the text of remotefs.md 18.
func (a *app) writeMatches(shown []search.Match, total int, max int64) error {
	var b strings.Builder
	switch {
	case total == 0:
		b.WriteString("No matches found\n")
	case len(shown) < total:
		fmt.Fprintf(&b, "Found %d of %d matches\n", len(shown), total)
	case total == 1:
		b.WriteString("Found 1 match\n")
	default:
		fmt.Fprintf(&b, "Found %d matches\n", total)
	}
	last := ""
	for _, m := range shown {
		if m.Path != last {
			b.WriteString("\n" + visible(lossy(m.Path)) + "\n")
		}
		last = m.Path
		text, _ := search.Preview(m.Text, max)
		fmt.Fprintf(&b, "Line %d: %s\n", m.Line, text)
	}
	_, err := a.Out.Write([]byte(b.String()))
	return err
}
