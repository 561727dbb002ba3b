package cmd

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/afield-dev/afield/pkg/profile"
	"github.com/afield-dev/afield/pkg/remotefs"
	"github.com/afield-dev/afield/pkg/search"
)

// withSearch opens the world, hands what searches it to f, and closes it.
func (a *app) withSearch(ctx context.Context, f func(*search.Searcher, profile.Search) error) error {
	return a.withWorld(ctx, func(w *world) error {
		if _, err := w.files(); err != nil {
			return err
		}
		dir, err := w.Cwd(ctx)
		if err != nil {
			return err
		}
		t, err := w.Files().Resolve(ctx, dir, "")
		if err != nil {
			return err
		}
		limits := w.profile.FSBlock.Search
		s := &search.Searcher{Files: w.Files(), Walker: remotefs.ArrangerOf(w.Files()), Cwd: t.Key, Limits: search.Limits{
			RawOutput: limits.RawOutputMaxBytes, Stderr: limits.StderrMaxBytes, Timeout: limits.Timeout, Grace: limits.Grace}}
		if sh := w.shell(); sh != nil {
			s.Procs = w.Processes()
			if s.Walker == nil {
				s.Walker = sh
			}
		}
		return f(s, limits)
	})
}

// saveList stores a list that is longer than what is shown, a path a line, and
// removes those of days gone by; "" where that cannot be done.
func (a *app) saveList(paths []string) string {
	dir := filepath.Join(a.stateDir(), "search")
	if os.MkdirAll(dir, 0o700) != nil {
		return ""
	}
	old, _ := filepath.Glob(filepath.Join(dir, "glob-*"))
	for _, name := range old {
		if st, err := os.Stat(name); err == nil && time.Since(st.ModTime()) > 24*time.Hour {
			os.Remove(name)
		}
	}
	f, err := os.CreateTemp(dir, "glob-*")
	if err != nil {
		return ""
	}
	_, err = f.WriteString(strings.Join(paths, "\n") + "\n")
	if f.Close() != nil || err != nil {
		os.Remove(f.Name())
		return ""
	}
	return f.Name()
}
