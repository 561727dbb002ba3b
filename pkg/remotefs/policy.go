package remotefs

import (
	"context"
	"fmt"

	"github.com/afield-dev/afield/pkg/fault"
)

// Policy turns "read before you change" into guards (remotefs.md 17). What it
// knows is fresh, not complete: having seen one line of a version authorises a
// change of that version.
type Policy struct {
	files  FS
	ledger *Ledger // nil: there is no owner
}

// NewPolicy puts the policy of one owner over files. Without an owner the ledger
// is nil: nothing is recorded, writes never replace, and edits are refused.
func NewPolicy(files FS, ledger *Ledger) *Policy { return &Policy{files: files, ledger: ledger} }

// View reads a window and records that the file, or its absence, was seen. A
// view that fails otherwise records nothing.
func (p *Policy) View(ctx context.Context, at At, opts WindowOptions) (View, error) {
	if err := checkView(at, &opts); err != nil {
		return View{}, err
	}
	s, err := p.files.StreamText(ctx, at)
	if err != nil {
		if fault.Is(err, fault.FSNotFound) {
			return View{}, p.sawNothing(ctx, at, err)
		}
		return View{}, err
	}
	v, err := viewOf(s, opts)
	if err != nil {
		return View{}, err
	}
	return v, p.record(ctx, v.Target.Key, Observation{State: SeenPresent, Version: v.Version})
}

// sawNothing records an absence and gives err, the answer of the view.
func (p *Policy) sawNothing(ctx context.Context, at At, err error) error {
	t, gone := p.target(ctx, at)
	if gone != nil {
		return err
	}
	if failed := p.record(ctx, t.Key, Observation{State: SeenAbsent}); failed != nil {
		return failed
	}
	return err
}

// WriteText writes with the guard that the owner's observation gives; a guard of
// the request's own comes first.
func (p *Policy) WriteText(ctx context.Context, at At, w WriteRequest) (WriteOutcome, error) {
	t, err := p.target(ctx, at)
	if err != nil {
		return WriteOutcome{}, err
	}
	if w.Intent == IntentNone {
		w.Intent = IntentCreate
		if o := p.look(t.Key); o.State == SeenPresent {
			w.Intent, w.Version = IntentReplace, o.Version
		}
	}
	out, err := p.files.WriteText(ctx, AtTarget(t), w)
	if err != nil {
		return out, err
	}
	return out, p.record(context.WithoutCancel(ctx), out.Target.Key, Observation{State: SeenPresent, Version: out.Version})
}

// EditText edits with the guard that the owner's observation gives; a guard of
// the request's own comes first.
func (p *Policy) EditText(ctx context.Context, at At, e EditRequest) (EditOutcome, error) {
	t, err := p.target(ctx, at)
	if err != nil {
		return EditOutcome{}, err
	}
	if e.Version == "" {
		o := p.look(t.Key)
		switch o.State {
		case Unseen:
			return EditOutcome{}, complete(&fault.Error{Code: fault.FSNotObserved,
				Message: fmt.Sprintf("edit requires reading %q first", t.Display)}, "edit", t.Display)
		case SeenAbsent:
			return EditOutcome{}, complete(&fault.Error{Code: fault.FSNotFound}, "edit", t.Display)
		}
		e.Version = o.Version
	}
	out, err := p.files.EditText(ctx, AtTarget(t), e)
	if err != nil || e.DryRun {
		return out, err
	}
	return out, p.record(context.WithoutCancel(ctx), out.Target.Key, Observation{State: SeenPresent, Version: out.Version})
}

func (p *Policy) target(ctx context.Context, at At) (Target, error) {
	if at.Target.Key != "" {
		return at.Target, nil
	}
	return p.files.Resolve(ctx, at.Path, at.Cwd)
}

func (p *Policy) look(key string) Observation {
	if p.ledger == nil {
		return Observation{}
	}
	return p.ledger.Look(key)
}

func (p *Policy) record(ctx context.Context, key string, o Observation) error {
	if p.ledger == nil {
		return nil
	}
	return p.ledger.Record(ctx, key, o)
}
