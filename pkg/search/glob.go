package search

import (
	"bytes"
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// GlobRequest asks for files by name. A pattern without a slash matches base
// names at any depth, another one paths below the working directory; one that
// begins with "!" takes away.
type GlobRequest struct {
	Pattern string
	Path    string // where to look; "" = the working directory
	// GitIgnore honours the ignore files, of which glob takes no notice otherwise.
	GitIgnore bool
}

// globArgs are ripgrep's arguments (case 295, 297). --null ends each path with a
// NUL, since a name may hold a newline.
func globArgs(r GlobRequest) []string {
	args := []string{"--no-config", "--files", "--glob=" + r.Pattern}
	if !r.GitIgnore {
		args = append(args, "--no-ignore")
	}
	args = append(args, "--hidden", "--null")
	for _, n := range vcs() {
		args = append(args, "--glob=!**/"+n, "--glob=!**/"+n+"/**")
	}
	if r.Path != "" {
		args = append(args, "--", r.Path)
	}
	return args
}

// Glob gives the paths of all files that match, in byte order, as Display shows
// them. Directories and links are not files.
func (s *Searcher) Glob(ctx context.Context, r GlobRequest) ([]string, error) {
	if remotefs.Blank(r.Pattern) {
		return nil, fault.New(fault.Usage, "glob", "", "the pattern must not be blank")
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	out, _, err := s.ripgrep(ctx, "glob", globArgs(r))
	paths := []string{}
	switch {
	case errors.Is(err, errNoProgram):
		s.Fallback = true
		if paths, err = s.globWalk(ctx, r); err != nil {
			return nil, failed(ctx, "glob", err)
		}
	case err != nil:
		return nil, err
	default:
		for p := range bytes.SplitSeq(out, []byte{0}) {
			if len(p) > 0 {
				paths = append(paths, Display(s.Cwd, string(p)))
			}
		}
	}
	slices.Sort(paths)
	return paths, nil
}

// globWalk is the fallback.
func (s *Searcher) globWalk(ctx context.Context, r GlobRequest) ([]string, error) {
	match, err := compileGlob(r.Pattern)
	if err != nil {
		return nil, err
	}
	if r.GitIgnore || strings.HasPrefix(r.Pattern, "!") {
		return s.chosen(ctx, r.Path, match, true, !r.GitIgnore)
	}
	root, prefix := s.root(r.Path)
	paths := []string{}
	err = s.walk(ctx, root, remotefs.WalkOptions{Names: true, Skip: vcs()}, func(n remotefs.Node) error {
		if p := prefix + n.Path; n.Type == remotefs.TypeFile && match(p, false) == take {
			paths = append(paths, p)
		}
		return nil
	})
	if fault.Is(err, fault.FSNotDirectory) {
		return []string{Display(s.Cwd, root)}, nil // a file that is named counts
	}
	return paths, err
}

// root gives the directory to walk and what stands before each path below it as
// Display shows it.
func (s *Searcher) root(p string) (root, prefix string) {
	root = s.Cwd
	if p != "" {
		root = path.Clean(p)
		if !path.IsAbs(p) {
			root = path.Join(s.Cwd, p)
		}
	}
	if prefix = Display(s.Cwd, root) + "/"; prefix == "./" {
		prefix = ""
	}
	return root, strings.Replace(prefix, "//", "/", 1)
}

// walk looks through the world; what cannot be looked at fails it, as it fails
// ripgrep.
func (s *Searcher) walk(ctx context.Context, root string, o remotefs.WalkOptions, visit func(remotefs.Node) error) error {
	if s.Walker == nil {
		return fault.New(fault.BackendUnsupported, "search", "", "this world has no rg, and its files cannot be walked")
	}
	t, err := s.Files.Resolve(ctx, root, "")
	if err != nil {
		return err
	}
	return s.Walker.Walk(ctx, t.Key, o, func(n remotefs.Node) error {
		if n.Err != nil {
			return fault.Wrap(n.Err, fault.SearchFailed, "search", n.Path, "cannot look at %q: %s", n.Path, n.Err)
		}
		return visit(n)
	})
}

// choice is what a --glob says of an entry.
type choice int

const (
	neither choice = iota // a directory that may hold matches
	take                  // whatever ignore files say
	leave                 // with all that is below it
)

// chooser says of a path below the working directory what --glob says.
type chooser func(p string, dir bool) choice

// compileGlob gives the chooser of a pattern. One that begins with "!" only takes
// away; any other takes away the files that do not match.
func compileGlob(pattern string) (chooser, error) {
	p, without := strings.CutPrefix(pattern, "!")
	p, dirOnly := strings.CutSuffix(p, "/")
	if p = anchored(p); !doublestar.ValidatePattern(p) {
		return nil, fault.New(fault.SearchInvalidPattern, "glob", "", "the pattern cannot be used: error parsing glob %q", pattern)
	}
	base, onlyBase := strings.CutPrefix(p, "**/")
	onlyBase = onlyBase && !strings.ContainsAny(base, "/{\\")
	return func(s string, dir bool) choice {
		match := dir || !dirOnly
		if match && onlyBase {
			match = doublestar.MatchUnvalidated(base, s[strings.LastIndexByte(s, '/')+1:])
		} else if match {
			match = doublestar.MatchUnvalidated(p, s)
		}
		switch {
		case match && without:
			return leave
		case match:
			return take
		case without || dir:
			return neither
		}
		return leave
	}, nil
}

// anchored gives a pattern of an ignore file or --glob as one over whole paths.
func anchored(p string) string {
	switch {
	case strings.HasPrefix(p, "/"):
		p = p[1:]
	case !strings.Contains(p, "/"):
		p = "**/" + p
	}
	if strings.HasSuffix(p, "/**") {
		p += "/*"
	}
	return p
}
