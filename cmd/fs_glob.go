package cmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/profile"
	"github.com/afield-dev/afield/pkg/search"
)

type fsGlobOptions struct {
	request search.GlobRequest
	null    bool
	max     int
}

// globResult is the JSON of fs glob.
type globResult struct {
	Paths     []pathResult `json:"paths"`
	Total     int          `json:"total"`
	Shown     int          `json:"shown"`
	SavedPath *string      `json:"savedPath"` // of the complete list, on the host
	Fallback  bool         `json:"fallback"`
}

type pathResult struct {
	Path       string  `json:"path"`
	PathBase64 *string `json:"pathBase64"`
}

func newFSGlob(a *app) *cobra.Command {
	opts := fsGlobOptions{}
	c := &cobra.Command{
		Use:   "glob PATTERN [PATH]",
		Short: "Find files by name",
		Long: "Find regular files whose path matches a pattern, in byte order. A pattern without a slash matches base names " +
			"at any depth; * does not cross a slash, ** does, {a,b} and [a-z] choose. Hidden files count, folders of version " +
			"control do not, and ignore files are honoured with --gitignore only. PATH is where to look (default: the " +
			"working directory).\n\nWhere the world has rg, it searches; else afield walks with the same semantics. More " +
			"paths than --max-results are counted, and the complete list is saved in the state directory.",
		Example:           "    afield fs glob '**/*.ts' src\n    afield fs glob -0 --max-results 0 '*.tmp' | xargs -0 -n1 echo",
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := c.Flags()
	f.BoolVarP(&opts.null, "null", "0", false, "end each path with a NUL byte and print nothing else")
	f.IntVar(&opts.max, "max-results", -1, "paths shown, 0 = all (default: fs.search.globMaxResults of the profile, 100)")
	f.BoolVar(&opts.request.GitIgnore, "gitignore", false, "leave out what .gitignore and other ignore files leave out")
	f.Lookup("max-results").DefValue = ""
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
		if checkBlank(args[0]) != nil {
			return usage("PATTERN must not be blank")
		}
		return a.withSearch(ctx, func(s *search.Searcher, l profile.Search) error { return runFSGlob(ctx, a, s, l, opts) })
	})
	return c
}

func runFSGlob(ctx context.Context, a *app, s *search.Searcher, l profile.Search, opts fsGlobOptions) error {
	paths, err := s.Glob(ctx, opts.request)
	if err != nil {
		return err
	}
	if opts.max < 0 {
		opts.max = int(l.GlobMaxResults)
	}
	shown := search.Sample(paths, opts.max, l.SampleOverCapGlobResults)
	saved := ""
	if len(shown) < len(paths) {
		saved = a.saveList(paths)
	}
	if a.flags.json {
		r := globResult{Paths: make([]pathResult, len(shown)), Total: len(paths), Shown: len(shown),
			SavedPath: orNull(saved), Fallback: s.Fallback}
		for i, p := range shown {
			r.Paths[i] = pathResult{lossy(p), base64OrNull([]byte(p))}
		}
		return writeJSON(a.Out, r)
	}
	return a.writeGlob(shown, len(paths), saved, opts.null)
}

// writeGlob writes a path a line; over the cap a last line says so, on stderr
// where standard output holds paths alone.
func (a *app) writeGlob(shown []string, total int, saved string, null bool) error {
	var b strings.Builder
	end := "\n"
	if null {
		end = "\x00"
	} else if total == 0 {
		b.WriteString("No files found\n")
	}
	for _, p := range shown {
		b.WriteString(p + end)
	}
	if len(shown) < total {
		where := "the complete list could not be saved"
		if saved != "" {
			where = "the complete list is in " + saved
		}
		text := fmt.Sprintf("Showing %d of %d paths; %s", len(shown), total, where)
		if null {
			a.note("%s", text)
		} else {
			b.WriteString("\n" + text + "\n")
		}
	}
	_, err := a.Out.Write([]byte(b.String()))
	return err
}
