package cmd

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/afield-dev/afield/pkg/remotefs"
)

// observedOptions are the flags of the observation policy (remotefs.md 17).
type observedOptions struct {
	policy string
	owner  string
}

func addObservedFlags(f *pflag.FlagSet, o *observedOptions) {
	f.StringVar(&o.policy, "policy", "none", "none, or observed: only what --owner has seen may be changed")
	f.StringVar(&o.owner, "owner", "", "with --policy observed: `name` of whoever sees and changes (default: nobody, who has seen nothing)")
}

func (o *observedOptions) check(f *pflag.FlagSet) error {
	switch {
	case o.policy != "none" && o.policy != "observed":
		return usage("--policy must be none or observed")
	case f.Changed("owner") && o.policy == "none":
		return usage("--owner needs --policy observed")
	case f.Changed("owner") && o.owner == "":
		return usage("--owner must not be empty")
	}
	return nil
}

// files are the operations that the policy can stand in front of.
type files interface {
	WriteText(context.Context, remotefs.At, remotefs.WriteRequest) (remotefs.WriteOutcome, error)
	EditText(context.Context, remotefs.At, remotefs.EditRequest) (remotefs.EditOutcome, error)
}

// viewer reads a window, and tells the policy where there is one.
type viewer func(context.Context, remotefs.At, remotefs.WindowOptions) (remotefs.View, error)

// observed is the file half of a world behind the policy that the flags ask for.
type observed struct {
	world *world
	fs    remotefs.FS
	view  viewer
	files
}

// withObserved opens the world, hands its files to f behind the policy, and
// closes it.
func (a *app) withObserved(ctx context.Context, o observedOptions, f func(observed) error) error {
	return a.withWorld(ctx, func(w *world) error {
		fs, err := w.files()
		if err != nil {
			return err
		}
		if o.policy == "none" {
			view := func(ctx context.Context, at remotefs.At, opts remotefs.WindowOptions) (remotefs.View, error) {
				return remotefs.ReadView(ctx, fs, at, opts)
			}
			return f(observed{w, fs, view, fs})
		}
		var ledger *remotefs.Ledger
		if o.owner != "" {
			ledger = remotefs.OpenLedger(a.stateDir(), o.owner, w.Identity())
		}
		p := remotefs.NewPolicy(fs, ledger)
		return f(observed{w, fs, p.View, p})
	})
}
