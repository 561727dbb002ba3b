package search

import (
	"context"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// maxIgnoreFile is how large an ignore file may be.
const maxIgnoreFile = 1 << 20

// rule is a line of an ignore file.
type rule struct {
	pattern string
	keep    bool // "!": taken back
	dirOnly bool
}

// ignores are the rules of a tree: by directory, relative to the root of the
// walk, "" for that and what is above it.
type ignores map[string][]rule

// Ignore says which paths of a tree its ignore files leave out.
type Ignore struct{ rules ignores }

// NewIgnore makes an Ignore of the texts of ignore files by the directory they
// stand in, "" for the root. Later texts of one directory win.
func NewIgnore(texts map[string][]string) *Ignore {
	ig := &Ignore{ignores{}}
	for dir, list := range texts {
		for _, text := range list {
			ig.rules[dir] = append(ig.rules[dir], parseIgnore(text)...)
		}
	}
	return ig
}

// Ignored reports whether a path below the root is left out by itself; whether a
// directory above it is, is the caller's question.
func (ig *Ignore) Ignored(p string, dir bool) bool { return ig.rules.ignored(p, dir) }

// parseIgnore reads an ignore file as gitignore(5) says.
func parseIgnore(text string) []rule {
	var rules []rule
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if trimmed := strings.TrimRight(line, " "); !strings.HasSuffix(trimmed, `\`) {
			line = trimmed
		}
		if line == "" || line[0] == '#' {
			continue
		}
		r := rule{}
		line, r.keep = strings.CutPrefix(line, "!")
		if strings.HasSuffix(line, "/") {
			line, r.dirOnly = strings.TrimSuffix(line, "/"), true
		}
		if r.pattern = anchored(line); line != "" && doublestar.ValidatePattern(r.pattern) {
			rules = append(rules, r)
		}
	}
	return rules
}

// ignored asks the rules from the directory of p upwards; the last one of the
// nearest file that matches decides.
func (g ignores) ignored(p string, dir bool) bool {
	for d := path.Dir(p); ; d = path.Dir(d) {
		if d == "." {
			d = ""
		}
		below := strings.TrimPrefix(strings.TrimPrefix(p, d), "/")
		for _, r := range slices.Backward(g[d]) {
			if (dir || !r.dirOnly) && doublestar.MatchUnvalidated(r.pattern, below) {
				return !r.keep
			}
		}
		if d == "" {
			return false
		}
	}
}

// chosen gives the files below p that choose takes, or does not leave and are not
// left out by ignore files, or, unless hidden is set, by a dot before a name;
// paths are those of Display.
func (s *Searcher) chosen(ctx context.Context, p string, choose chooser, hidden, noIgnore bool) ([]string, error) {
	root, prefix := s.root(p)
	var files, dirs, rules []string
	o := remotefs.WalkOptions{Names: true, Skip: vcs()}
	err := s.walk(ctx, root, o, func(n remotefs.Node) error {
		base := n.Path[strings.LastIndexByte(n.Path, '/')+1:]
		switch {
		case n.Type == remotefs.TypeDirectory:
			dirs = append(dirs, n.Path)
		case n.Type == remotefs.TypeFile:
			files = append(files, n.Path)
			if base == ".gitignore" || base == ".ignore" || base == ".rgignore" {
				rules = append(rules, n.Path)
			}
		}
		return nil
	})
	if fault.Is(err, fault.FSNotDirectory) {
		return []string{Display(s.Cwd, root)}, nil
	}
	if err != nil {
		return nil, err
	}
	var g ignores
	if !noIgnore {
		if g, err = s.rules(ctx, root, rules); err != nil {
			return nil, err
		}
	}
	return filter(files, dirs, prefix, choose, g, hidden), nil
}

// filter leaves out what is left or ignored or hidden, itself or by a directory
// above.
func filter(files, dirs []string, prefix string, choose chooser, g ignores, hidden bool) []string {
	out := map[string]bool{} // directories that are left out
	slices.Sort(dirs)        // those above come first
	gone := func(p string, dir bool) bool {
		if out[path.Dir(p)] {
			return true
		}
		switch choose(prefix+p, dir) {
		case take:
			return false
		case leave:
			return true
		}
		return !hidden && strings.HasPrefix(path.Base(p), ".") || g.ignored(p, dir)
	}
	for _, d := range dirs {
		if gone(d, true) {
			out[d] = true
		}
	}
	kept := []string{}
	for _, f := range files {
		if !gone(f, false) {
			kept = append(kept, prefix+f)
		}
	}
	return kept
}

// rules reads the ignore files: those that the walk found and those above the
// root. A .gitignore counts inside of a repository only.
func (s *Searcher) rules(ctx context.Context, root string, found []string) (ignores, error) {
	repo, err := s.repository(ctx, root)
	if err != nil {
		return nil, err
	}
	g := ignores{}
	for dir := root; ; dir = path.Dir(dir) {
		prefix := strings.TrimPrefix(strings.TrimPrefix(root, dir), "/")
		for _, name := range []string{".git/info/exclude", ".gitignore", ".ignore", ".rgignore"} {
			git := strings.HasPrefix(name, ".git")
			if git && (repo == "" || !remotefs.PathContains(repo, dir)) || dir == root && !strings.Contains(name, "/") {
				continue
			}
			if text, ok := s.small(ctx, path.Join(dir, name)); ok {
				g[""] = append(below(parseIgnore(text), prefix), g[""]...)
			}
		}
		if dir == "/" {
			break
		}
	}
	order := []string{".gitignore", ".ignore", ".rgignore"}
	slices.SortStableFunc(found, func(a, b string) int {
		return slices.Index(order, path.Base(a)) - slices.Index(order, path.Base(b))
	})
	for _, f := range found {
		if path.Base(f) == ".gitignore" && repo == "" {
			continue
		}
		dir := strings.TrimSuffix(f[:len(f)-len(path.Base(f))], "/")
		if text, ok := s.small(ctx, path.Join(root, f)); ok {
			g[dir] = append(g[dir], parseIgnore(text)...)
		}
	}
	return g, ctx.Err()
}

// below turns rules of a directory above into those of the root, which lies
// prefix below it.
func below(rules []rule, prefix string) []rule {
	if prefix == "" {
		return rules
	}
	var out []rule
	for _, r := range rules {
		if strings.HasPrefix(r.pattern, "**/") {
			out = append(out, r)
		} else if rest, ok := strings.CutPrefix(r.pattern, prefix+"/"); ok {
			r.pattern = rest
			out = append(out, r)
		}
	}
	return out
}

// repository gives the directory above root, or root, that holds .git.
func (s *Searcher) repository(ctx context.Context, root string) (string, error) {
	for dir := root; ; dir = path.Dir(dir) {
		_, info, err := s.Files.Lstat(ctx, path.Join(dir, ".git"), "")
		if err != nil {
			return "", err
		}
		if info != nil {
			return dir, nil
		}
		if dir == "/" {
			return "", nil
		}
	}
}

// small reads a small file; one that is not there, or cannot be read, is none.
func (s *Searcher) small(ctx context.Context, p string) (string, bool) {
	b, err := s.Files.ReadBytes(ctx, remotefs.AtPath(p, ""), maxIgnoreFile)
	return string(b.Content), err == nil
}

// readers is how many files are read at the same time.
const readers = 8

// readAll reads files at the same time and hands each to use, one at a time, in
// their order. Files that are gone or too large are left out.
func (s *Searcher) readAll(ctx context.Context, paths []string, use func(p string, content []byte) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		content []byte
		err     error
	}
	results := make([]chan result, len(paths))
	for i := range results {
		results[i] = make(chan result, 1)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	gate := make(chan struct{}, readers)
	wg.Go(func() {
		for i, p := range paths {
			select {
			case gate <- struct{}{}:
			case <-ctx.Done():
				return
			}
			wg.Go(func() {
				b, err := s.Files.ReadBytes(ctx, remotefs.AtPath(p, s.Cwd), s.Limits.RawOutput)
				results[i] <- result{b.Content, err}
			})
		}
	})
	for i, p := range paths {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case r := <-results[i]:
			<-gate
			if fault.Is(r.err, fault.FSNotFound) || fault.Is(r.err, fault.FSTooLarge) || fault.Is(r.err, fault.FSNotRegularFile) {
				continue
			}
			if r.err != nil {
				return r.err
			}
			if err := use(p, r.content); err != nil {
				return err
			}
		}
	}
	return nil
}
