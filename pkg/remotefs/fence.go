package remotefs

import (
	"context"
	"path"
	"slices"
	"sync"

	"github.com/afield-dev/afield/pkg/fault"
)

// FenceMode says what a fence lets through.
type FenceMode string

// The modes of a fence (remotefs.md 12).
const (
	FenceReadOnly       FenceMode = "read-only"
	FenceWorkspaceWrite FenceMode = "workspace-write"
	FenceFullAccess     FenceMode = "danger-full-access"
)

// FenceOptions are the policy of a fence.
type FenceOptions struct {
	// Mode is FenceReadOnly if it is empty. An unknown mode refuses everything.
	Mode FenceMode
	// Root is the workspace; a relative one, and "", are joined to the world's
	// default directory.
	Root string
	// Temp is the platform's temporary directory, which may be changed as /tmp
	// may; "" = none besides.
	Temp string
}

// Fence is an FS that refuses changes outside of writable roots. Reads pass. It
// is a check in trusted code and no boundary of the kernel.
type Fence struct {
	FS
	opts  FenceOptions
	once  sync.Mutex
	roots []fenceRoot // looked up at the first change
}

type fenceRoot struct {
	target  Target
	version string // "" = missing
}

// NewFence puts a fence around files.
func NewFence(files FS, opts FenceOptions) *Fence {
	if opts.Mode == "" {
		opts.Mode = FenceReadOnly
	}
	if opts.Root == "" {
		opts.Root = "."
	}
	return &Fence{FS: files, opts: opts}
}

// Wider gives the same fence with another mode, for one call that was allowed
// more.
func (f *Fence) Wider(mode FenceMode) *Fence {
	opts := f.opts
	opts.Mode = mode
	return NewFence(f.FS, opts)
}

// WriteText writes to what the fence lets through.
func (f *Fence) WriteText(ctx context.Context, at At, w WriteRequest) (WriteOutcome, error) {
	at, err := f.Admit(ctx, at)
	if err != nil {
		return WriteOutcome{}, err
	}
	return f.FS.WriteText(ctx, at, w)
}

// EditText edits what the fence lets through. A dry run changes nothing and
// passes.
func (f *Fence) EditText(ctx context.Context, at At, e EditRequest) (EditOutcome, error) {
	if !e.DryRun {
		var err error
		if at, err = f.Admit(ctx, at); err != nil {
			return EditOutcome{}, err
		}
	}
	return f.FS.EditText(ctx, at, e)
}

// Admit gives where a change of at may happen, or FS_SANDBOX_DENIED. Under
// workspace-write the target is resolved again from its display path, and the
// answer names that fresh target, so a link that was swapped since is seen.
// Whatever else changes files of the world asks here first.
func (f *Fence) Admit(ctx context.Context, at At) (At, error) {
	display := at.Path
	if at.Target.Key != "" {
		display = at.Target.Display
	}
	if ctx.Err() != nil {
		return At{}, fault.Aborted(ctx, fault.FSAborted, "write", display)
	}
	if at.Target.Key == "" {
		if err := checkPath("write", at.Path); err != nil {
			return At{}, err
		}
	}
	switch f.opts.Mode {
	case FenceFullAccess:
		return at, nil
	case FenceWorkspaceWrite:
	default:
		return At{}, f.denied(display)
	}
	t, err := f.FS.Resolve(ctx, display, at.Cwd)
	if err != nil {
		return At{}, err
	}
	ok, err := f.writable(ctx, t)
	if err != nil {
		return At{}, err
	}
	if !ok {
		return At{}, f.denied(t.Display)
	}
	return AtTarget(t), nil
}

func (f *Fence) denied(display string) error {
	e := fault.New(fault.FSSandboxDenied, "write", display,
		"cannot write %q: file access denied under %s mode", display, f.opts.Mode)
	return e.WithHint("write under an allowed root, or ask for a wider mode")
}

// writable reports whether t is a root or lies below one: by its path, or, for a
// root that has several, by an ancestor that is the same directory.
func (f *Fence) writable(ctx context.Context, t Target) (bool, error) {
	roots, err := f.lookUp(ctx)
	if err != nil {
		return false, err
	}
	for _, r := range roots {
		if r.version != "" && f.FS.Contains(r.target, t) {
			return true, nil
		}
	}
	for key := t.Key; ; key = path.Dir(key) {
		_, info, err := f.FS.Stat(ctx, AtTarget(Target{Key: key, Display: key}))
		if err != nil {
			return false, err
		}
		if info != nil && info.Type == TypeDirectory &&
			slices.ContainsFunc(roots, func(r fenceRoot) bool { return r.version == info.Version }) {
			return true, nil
		}
		if key == "/" || key == "." {
			return false, nil
		}
	}
}

// lookUp makes the roots physical, once. One that is missing never matches.
func (f *Fence) lookUp(ctx context.Context) ([]fenceRoot, error) {
	f.once.Lock()
	defer f.once.Unlock()
	if f.roots != nil {
		return f.roots, nil
	}
	var roots []fenceRoot
	for _, dir := range []string{f.opts.Root, "/tmp", f.opts.Temp} {
		if dir == "" {
			continue
		}
		t, info, err := f.FS.Stat(ctx, AtPath(dir, ""))
		if ctx.Err() != nil {
			return nil, fault.Aborted(ctx, fault.FSAborted, "write", dir)
		}
		if err == nil && info != nil && !slices.ContainsFunc(roots, func(r fenceRoot) bool { return r.target.Key == t.Key }) {
			roots = append(roots, fenceRoot{t, info.Version})
		}
	}
	f.roots = roots
	return roots, nil
}
