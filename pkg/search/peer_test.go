package search_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/backend/local"
	"github.com/afield-dev/afield/pkg/remotefs"
	"github.com/afield-dev/afield/pkg/search"
)

// pair gives two searchers of one directory: with ripgrep, and without.
func pair(t *testing.T, dir string) (native, fallback *search.Searcher) {
	t.Helper()
	if _, err := exec.LookPath("rg"); err != nil {
		if os.Getenv("AFIELD_TEST_REQUIRE") != "" {
			t.Fatal("rg is required")
		}
		t.Skip("SKIPPED: rg is not installed")
	}
	w, err := local.Open(backend.OpenRequest{HostDir: dir, Environ: os.Environ(), NewFileMode: -1, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close(t.Context()) })
	limits := search.Limits{RawOutput: 20e6, Stderr: 65536, Timeout: time.Minute, Grace: time.Second}
	native = &search.Searcher{Files: w.Files(), Procs: w.Processes(), Cwd: dir, Limits: limits}
	fallback = &search.Searcher{Files: w.Files(), Walker: remotefs.ArrangerOf(w.Files()), Cwd: dir, Limits: limits}
	return native, fallback
}

// plant makes a random tree with hostile names, ignore files, links, hidden and
// binary files.
func plant(t *testing.T, r *rand.Rand, dir string) {
	t.Helper()
	names := []string{"a.ts", "b.tsx", "a b", "new\nline.ts", "-rf", "$(id)", ".hid", "bad\xff.ts", "*.ts", "[x]", "é.go", "build", "x.log", "keep.log"}
	texts := []string{"needle\nhay\r\nneedle needle\r\n", "", "no end needle", "nul\x00needle\n", "\xff needle\n", "NEEDLE\n\nneedle_x\n", strings.Repeat("needle ", 400)}
	rules := []string{"*.log\n!keep.log\n", "build/\n", "/a.ts\n", "*.ts\n", "sub/*.tsx\n", "# c\n\n**/b.tsx\n", "a b\\ \n"}
	var grow func(dir string, depth int)
	grow = func(dir string, depth int) {
		for range 4 + r.IntN(4) {
			p := filepath.Join(dir, names[r.IntN(len(names))])
			os.WriteFile(p, []byte(texts[r.IntN(len(texts))]), 0o644)
		}
		if r.IntN(3) == 0 {
			os.WriteFile(filepath.Join(dir, []string{".gitignore", ".ignore", ".rgignore"}[r.IntN(3)]), []byte(rules[r.IntN(len(rules))]), 0o644)
		}
		os.Symlink("a.ts", filepath.Join(dir, "link.ts"))
		if depth == 0 {
			return
		}
		for _, sub := range []string{"sub", "build", ".git", "dir.ts"}[r.IntN(3):] {
			if p := filepath.Join(dir, sub); os.Mkdir(p, 0o755) == nil && sub != ".git" {
				grow(p, depth-1)
			}
		}
	}
	os.Mkdir(filepath.Join(dir, ".git"), 0o755)
	grow(dir, 2)
}

// The fallback finds what ripgrep finds, on random trees.
func TestFallbackAgreesWithRipgrep(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	globs := []string{"*.ts", "**/*.ts", "sub/*", "sub/**", "/a.ts", "!*.ts", "*.{ts,tsx}", "[ab]*", "**/sub/**/*.ts", "*", "sub", "?.ts", `\*.ts`, "[!a]*"}
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 7))
		dir := t.TempDir()
		plant(t, r, dir)
		native, fallback := pair(t, dir)
		for i, g := range globs {
			req := search.GlobRequest{Pattern: g, GitIgnore: i%3 == 2, Path: []string{"", "sub"}[r.IntN(2)]}
			if _, err := os.Stat(filepath.Join(dir, "sub")); err != nil {
				req.Path = ""
			}
			want, err1 := native.Glob(t.Context(), req)
			got, err2 := fallback.Glob(t.Context(), req)
			if d := cmp.Diff(want, got); d != "" || err1 != nil || err2 != nil {
				t.Errorf("seed %d glob %+v (-rg +own): %v %v\n%s", seed, req, err1, err2, d)
			}
		}
		for i, p := range []string{"needle", "needle$", "^needle", `(?i)needle\b`, "n.{3}le", "hay|NEEDLE"} {
			req := search.GrepRequest{Pattern: p, NoIgnore: i == 1, Hidden: i == 2, Include: []string{"", "*.ts", "sub/**"}[r.IntN(3)]}
			want, err1 := native.Grep(t.Context(), req)
			got, err2 := fallback.Grep(t.Context(), req)
			if d := cmp.Diff(words(want), words(got)); d != "" || err1 != nil || err2 != nil {
				t.Errorf("seed %d grep %+v (-rg +own): %v %v\n%s", seed, req, err1, err2, d)
			}
		}
	}
}

// words gives matches as lines.
func words(matches []search.Match) []string {
	var out []string
	for _, m := range matches {
		out = append(out, fmt.Sprintf("%q:%d:%d:%.40q:%v", m.Path, m.Line, m.Offset, m.Text, m.Ranges))
	}
	return out
}
