package cmd

import (
	"context"
	"io/fs"
	"strconv"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
	"github.com/afield-dev/afield/pkg/tree"
)

// withTree opens the world, hands what arranges its entries to f, and closes it.
func (a *app) withTree(ctx context.Context, f func(*tree.Tree, remotefs.FS) error) error {
	return a.withTreeOf(ctx, func(_ *world, t *tree.Tree, fs remotefs.FS) error { return f(t, fs) })
}

// withTreeOf is withTree for what wants to know the world, too.
func (a *app) withTreeOf(ctx context.Context, f func(*world, *tree.Tree, remotefs.FS) error) error {
	return a.withWorld(ctx, func(w *world) error {
		t, err := a.tree(w)
		if err != nil {
			return err
		}
		return f(w, t, w.Files())
	})
}

// tree gives what arranges the world's entries: natively where the backend can,
// else by the world's own processes.
func (a *app) tree(w *world) (*tree.Tree, error) {
	if _, err := w.files(); err != nil {
		return nil, err
	}
	o := tree.Options{Files: w.Files(), Fence: w.fence(), Arranger: remotefs.ArrangerOf(w.Files()),
		Locks: remotefs.NewLocks(a.stateDir(), w.Identity())}
	if o.Arranger == nil {
		if s := w.shell(); s != nil {
			o.Arranger = s
		}
	}
	return tree.New(o)
}

// shell gives the programs that work beside the files; nil where the world runs
// no processes, or files and processes come from different worlds.
func (w *world) shell() *tree.Shell {
	if w.profile.Exec != w.profile.FS || w.Processes() == nil {
		return nil
	}
	return tree.NewShell(w.Processes())
}

// fence gives the fence of the profile, or nil.
func (w *world) fence() *remotefs.Fence {
	f := w.profile.Fence
	if f == nil {
		return nil
	}
	return remotefs.NewFence(w.Files(), remotefs.FenceOptions{Mode: remotefs.FenceMode(f.Mode), Root: f.WorkspaceRoot})
}

// each does f for every path in order up to the first failure, and writes what
// was done as one document: the result itself for one path, an array for more.
func each[T any](a *app, paths []string, f func(path string) (T, error)) error {
	results := make([]T, 0, len(paths))
	var failed error
	for _, p := range paths {
		r, err := f(p)
		if err != nil {
			failed = err
			break
		}
		results = append(results, r)
	}
	if !a.flags.json || failed != nil && len(results) == 0 {
		return failed
	}
	var err error
	if len(paths) == 1 {
		err = writeJSON(a.Out, results[0])
	} else {
		err = writeJSON(a.Out, results)
	}
	return firstOf(failed, err)
}

// madeResult is the JSON of fs mkdir, ln and touch.
type madeResult struct {
	Target  targetResult `json:"target"`
	Created bool         `json:"created"`
}

// checkPaths refuses blank paths before any world is touched.
func checkPaths(paths []string) error {
	for _, p := range paths {
		if err := checkBlank(p); err != nil {
			return err
		}
	}
	return nil
}

// parseMode reads the octal digits of a mode.
func parseMode(text string) (int, error) {
	n, err := strconv.ParseUint(text, 8, 32)
	if err != nil || n > uint64(fs.ModePerm|0o7000) {
		return 0, usage("the mode must be octal digits up to 7777, got %q", text)
	}
	return int(n), nil
}

// reasonOf gives the words of why an entry could not be looked at.
func reasonOf(err error) string {
	if code := fault.CodeOf(err); code != "" {
		return string(code)
	}
	return err.Error()
}
