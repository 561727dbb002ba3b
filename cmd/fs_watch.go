package cmd

import (
	"context"
	"errors"
	"path"
	"time"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
	"github.com/afield-dev/afield/pkg/watch"
)

type fsWatchOptions struct {
	paths    []string
	interval time.Duration
	count    int
}

// watchEvent is a line of fs watch.
type watchEvent struct {
	Type       string  `json:"type"` // ready, created, modified, removed, renamed or overflow
	Path       *string `json:"path"`
	PathBase64 *string `json:"pathBase64"`
	From       *string `json:"from"`
	FromBase64 *string `json:"fromBase64"`
	Kind       *string `json:"kind"` // of the entry; null = not known
}

func newFSWatch(a *app) *cobra.Command {
	opts := fsWatchOptions{}
	c := &cobra.Command{
		Use:   "watch PATH...",
		Short: "Tell what changes below directories",
		Long: "Tell what changes below directories, or of single entries, as it happens, a JSON line each: first \"ready\", " +
			"then created, modified, removed, renamed with the old name in from, and overflow when events were lost: " +
			"look through everything again. On this machine the kernel tells, elsewhere the world is looked through " +
			"every --interval and compared, so that what comes and goes in between is not seen. Ends with --count, " +
			"--timeout, or a signal.",
		Args:              atLeast(1, "one PATH or more"),
		ValidArgsFunction: a.completePaths,
	}
	f := c.Flags()
	f.DurationVar(&opts.interval, "interval", 2*time.Second, "time between two looks, where the world cannot tell")
	f.IntVar(&opts.count, "count", 0, "end after this many events, 0 to go on (default 0)")
	c.RunE = a.run(func(ctx context.Context, args []string) error {
		opts.paths = args
		if opts.interval < 10*time.Millisecond || opts.count < 0 {
			return usage("--interval must be 10ms or more, --count 0 or more")
		}
		if err := checkPaths(args); err != nil {
			return err
		}
		return a.withWorld(ctx, func(w *world) error { return runFSWatch(ctx, a, w, opts) })
	})
	return c
}

// errEnough ends a watch after --count.
var errEnough = errors.New("enough")

func runFSWatch(ctx context.Context, a *app, w *world, opts fsWatchOptions) error {
	t, err := a.tree(w)
	if err != nil {
		return err
	}
	roots, err := watchRoots(ctx, w.Files(), opts.paths)
	if err != nil {
		return err
	}
	left := opts.count
	emit := func(e watch.Event) error {
		if err := writeJSON(a.Out, newWatchEvent(e)); err != nil {
			return err
		}
		if e.Kind == watch.Ready || opts.count == 0 {
			return nil
		}
		if left--; left == 0 {
			return errEnough
		}
		return nil
	}
	if remotefs.ArrangerOf(w.Files()) != nil {
		err = watch.Native(ctx, t.Arranger(), roots, emit)
	} else {
		err = watch.Poll(ctx, t.Arranger(), roots, opts.interval, emit)
	}
	switch {
	case errors.Is(err, errEnough):
		return nil
	case err == nil && ctx.Err() != nil:
		return fault.Aborted(ctx, fault.FSAborted, "watch", opts.paths[0])
	case closedOutput(err):
		return err
	}
	return remotefs.Explain(ctx, err, "watch", opts.paths[0])
}

// watchRoots finds the directories: what is none is one entry of its own.
func watchRoots(ctx context.Context, fs remotefs.FS, paths []string) ([]watch.Root, error) {
	roots := make([]watch.Root, len(paths))
	for i, p := range paths {
		t, info, err := fs.Stat(ctx, remotefs.AtPath(p, ""))
		if err != nil {
			return nil, err
		}
		if info != nil && info.Type == remotefs.TypeDirectory {
			roots[i] = watch.Root{Dir: t.Key}
			continue
		}
		e, _, err := fs.Lstat(ctx, p, "")
		if err != nil {
			return nil, err
		}
		dir := path.Dir(e.Key)
		_, parent, err := fs.Stat(ctx, remotefs.AtPath(dir, ""))
		if err != nil {
			return nil, err
		}
		if parent == nil {
			return nil, fault.New(fault.FSNotFound, "watch", e.Display, "cannot watch %q: its directory is not there", e.Display)
		}
		roots[i] = watch.Root{Dir: dir, Only: path.Base(e.Key)}
	}
	return roots, nil
}

func newWatchEvent(e watch.Event) watchEvent {
	return watchEvent{string(e.Kind), orNull(lossy(e.Path)), base64OrNull([]byte(e.Path)),
		orNull(lossy(e.From)), base64OrNull([]byte(e.From)), orNull(string(e.Type))}
}
