package search

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/afield-dev/afield/pkg/fault"
)

// GrepRequest asks for lines by a regular expression.
type GrepRequest struct {
	Pattern string
	Path    string // where to look; "" = the working directory
	Include string // a glob of the files to look at; "" = all
	// NoIgnore takes no notice of ignore files, which grep honours otherwise.
	NoIgnore bool
	// Hidden looks into hidden files and directories, too.
	Hidden bool
}

// Check refuses what cannot be searched for (case 301).
func (r GrepRequest) Check() error {
	bad := func(format string, args ...any) error { return fault.New(fault.Usage, "grep", "", format, args...) }
	switch {
	case r.Pattern == "":
		return bad("the pattern must not be empty")
	case strings.HasPrefix(r.Include, "!"):
		return bad("the include pattern must not begin with !")
	case commaList(r.Include):
		return bad("the include pattern is one glob: write *.{a,b} instead of *.a,*.b")
	}
	return nil
}

// commaList reports a comma outside of braces.
func commaList(s string) bool {
	depth := 0
	for _, c := range s {
		switch {
		case c == '{':
			depth++
		case c == '}':
			depth--
		case c == ',' && depth <= 0:
			return true
		}
	}
	return false
}

// Match is a line with what matched in it.
type Match struct {
	Path   string // as Display shows it, raw bytes
	Line   int64  // from 1
	Offset int64  // of the line in the file, in bytes
	Text   []byte // the line without its end, raw bytes
	Ranges []Range
}

// Range is a match in a line, in bytes.
type Range struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// grepArgs are ripgrep's arguments (case 296, 297). Without a path it would search
// its input wherever that is a pipe, as it is for every program of a box.
func grepArgs(r GrepRequest) []string {
	args := []string{"--no-config", "--json", "--regexp=" + r.Pattern}
	if r.Include != "" {
		args = append(args, "--glob="+r.Include)
	}
	if r.NoIgnore {
		args = append(args, "--no-ignore")
	}
	if r.Hidden {
		args = append(args, "--hidden")
	}
	return append(args, "--", cmp.Or(r.Path, "."))
}

// Grep gives all lines that match, by path in byte order and by line. Files with
// a NUL are binary and left out.
func (s *Searcher) Grep(ctx context.Context, r GrepRequest) ([]Match, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	out, _, err := s.ripgrep(ctx, "grep", grepArgs(r))
	var matches []Match
	switch {
	case errors.Is(err, errNoProgram):
		s.Fallback = true
		matches, err = s.grepWalk(ctx, r)
		err = failed(ctx, "grep", err)
	case err == nil:
		matches, err = s.parseRecords(out)
	}
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(matches, func(a, b Match) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line))
	})
	return matches, nil
}

// data is text or base64 in ripgrep's JSON.
type data struct {
	Text  *string `json:"text"`
	Bytes []byte  `json:"bytes"`
}

func (d data) bytes() ([]byte, bool) {
	if d.Text != nil {
		return []byte(*d.Text), true
	}
	return d.Bytes, d.Bytes != nil
}

// record is a line of ripgrep's JSON.
type record struct {
	Type string `json:"type"`
	Data struct {
		Path           data   `json:"path"`
		Lines          data   `json:"lines"`
		LineNumber     *int64 `json:"line_number"`
		AbsoluteOffset int64  `json:"absolute_offset"`
		BinaryOffset   *int64 `json:"binary_offset"`
		Submatches     []Range
	} `json:"data"`
}

// parseRecords reads the match records; those of a file that turns out to be
// binary at its end are dropped.
func (s *Searcher) parseRecords(out []byte) ([]Match, error) {
	bad := fault.New(fault.SearchFailed, "grep", "", "the search gave a record that cannot be read")
	matches := []Match{}
	first := 0 // of the file under way
	for line := range bytes.Lines(out) {
		var r record
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, bad
		}
		switch r.Type {
		case "begin":
			first = len(matches)
		case "end":
			if r.Data.BinaryOffset != nil {
				matches = matches[:first]
			}
		case "match":
			p, ok1 := r.Data.Path.bytes()
			text, ok2 := r.Data.Lines.bytes()
			if !ok1 || !ok2 || r.Data.LineNumber == nil {
				return nil, bad
			}
			matches = append(matches, Match{Path: Display(s.Cwd, string(p)), Line: *r.Data.LineNumber,
				Offset: r.Data.AbsoluteOffset, Text: trimEnd(text), Ranges: r.Data.Submatches})
		}
	}
	return matches, nil
}

// trimEnd removes one LF or CR LF.
func trimEnd(line []byte) []byte {
	if rest, ok := bytes.CutSuffix(line, []byte("\n")); ok {
		return bytes.TrimSuffix(rest, []byte("\r"))
	}
	return line
}

// grepWalk is the fallback: Go's regular expressions (RE2), which know no
// look-around, no back-references, and no Unicode for \w, \d, \s and \b.
func (s *Searcher) grepWalk(ctx context.Context, r GrepRequest) ([]Match, error) {
	re, err := regexp.Compile("(?m)" + r.Pattern)
	if err != nil {
		return nil, fault.Wrap(err, fault.SearchInvalidPattern, "grep", "", "the pattern cannot be used: %s", err)
	}
	include := chooser(func(string, bool) choice { return neither })
	if r.Include != "" {
		if include, err = compileGlob(r.Include); err != nil {
			return nil, err
		}
	}
	files, err := s.chosen(ctx, r.Path, include, r.Hidden, r.NoIgnore)
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	matches, size := []Match{}, int64(0)
	err = s.readAll(ctx, files, func(p string, content []byte) error {
		for _, m := range matchLines(re, content) {
			m.Path = p
			matches = append(matches, m)
			if size += int64(len(m.Text)) + 64; size > s.Limits.RawOutput {
				return overflow("grep")
			}
		}
		return nil
	})
	return matches, err
}

// matchLines gives the lines of a text that match; none of a binary one. A match
// lies within one line, as ripgrep's do.
func matchLines(re *regexp.Regexp, content []byte) []Match {
	if bytes.IndexByte(content, 0) >= 0 || !re.Match(content) {
		return nil
	}
	var matches []Match
	var number, offset int64
	for line := range bytes.Lines(content) {
		number++
		text := trimEnd(line)
		if found := re.FindAllIndex(bytes.TrimSuffix(line, []byte("\n")), -1); found != nil {
			m := Match{Line: number, Offset: offset, Text: bytes.Clone(text)}
			for _, f := range found {
				m.Ranges = append(m.Ranges, Range{f[0], f[1]})
			}
			matches = append(matches, m)
		}
		offset += int64(len(line))
	}
	return matches
}

// The words for a line that is cut or cannot be shown.
const (
	cutMark = " (line truncated)"
	badLine = "(line is not valid UTF-8)"
)

// Preview gives a line as it is shown: at most max bytes, cut between characters
// (case 302, 303).
func Preview(line []byte, max int64) (text string, cut bool) {
	if !utf8.Valid(line) {
		return badLine, false
	}
	if int64(len(line)) <= max {
		return string(line), false
	}
	n := int(max)
	for n > 0 && !utf8.RuneStart(line[n]) {
		n--
	}
	return string(line[:n]) + cutMark, true
}

// Sample gives at most max of sorted paths: the first, or one of each top-level
// entry in turns.
func Sample(paths []string, max int, spread bool) []string {
	if max <= 0 || len(paths) <= max {
		return paths
	}
	if !spread {
		return paths[:max]
	}
	var tops []string
	groups := map[string][]string{}
	for _, p := range paths {
		top, _, _ := strings.Cut(p, "/")
		if groups[top] == nil {
			tops = append(tops, top)
		}
		groups[top] = append(groups[top], p)
	}
	var kept []string
	for i := 0; len(kept) < max; i++ {
		for _, top := range tops {
			if i < len(groups[top]) && len(kept) < max {
				kept = append(kept, groups[top][i])
			}
		}
	}
	slices.Sort(kept)
	return kept
}
