package cmd

import (
	"context"
	"path"

	"github.com/afield-dev/afield/pkg/backend/all"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
	"github.com/afield-dev/afield/pkg/transfer"
)

// hostWalker looks through directories of this machine.
func hostWalker() remotefs.Arranger { return all.Host() }

// worldPlace gives the world's side of a transfer: a directory, or the directory
// of a file with that alone. A world that is this machine is reached directly. The
// caller calls done.
func (a *app) worldPlace(ctx context.Context, w *world, p string, dir, write, dryRun bool) (transfer.Place, func(), error) {
	if _, err := w.files(); err != nil {
		return nil, nil, err
	}
	if fence := w.fence(); write && fence != nil {
		if _, err := fence.Admit(ctx, remotefs.AtPath(p, "")); err != nil {
			return nil, nil, err
		}
	}
	at, only := p, []string(nil)
	if !dir {
		at, only = path.Dir(p), []string{path.Base(p)}
	}
	t, info, err := w.Files().Stat(ctx, remotefs.AtPath(at, ""))
	switch {
	case err != nil:
		return nil, nil, err
	case info != nil && info.Type != remotefs.TypeDirectory:
		return nil, nil, fault.New(fault.FSNotDirectory, "transfer", t.Display, "cannot transfer to %q: not a directory", t.Display)
	}
	if local := remotefs.ArrangerOf(w.Files()); local != nil {
		if info == nil && dryRun {
			return transfer.Absent(t.Display), func() {}, nil
		}
		h, err := transfer.NewHost(t.Key, write && !dryRun, local, only...)
		if err != nil {
			return nil, nil, remotefs.Explain(ctx, err, "transfer", t.Display)
		}
		return h, func() { h.Close() }, nil
	}
	sh := w.shell()
	if sh == nil {
		return nil, nil, fault.New(fault.BackendUnsupported, "transfer", p, "trees cannot be moved to and from this world: it runs no processes").
			WithHint("fs read --bytes and fs write --bytes move single files")
	}
	return transfer.NewWorld(sh, t, info, only...), func() {}, nil
}
