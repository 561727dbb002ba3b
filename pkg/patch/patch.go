// Package patch changes several files together: edits, whole writes and removals,
// from JSON or from a unified diff, each with its guard. Either all of them are
// applied or none is: what was done before a failure is taken back.
package patch

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// MaxFile is how large a file that is patched may be, in bytes: it is kept until
// all is done.
const MaxFile = 64 << 20

// Change is what happens to one file: exactly one of Content, Edits, Hunks and
// Remove.
type Change struct {
	Path    string
	Version string // guard; "" = none
	Absent  bool   // guard: nothing has the name
	Content *string
	Edits   []remotefs.Edit
	Hunks   []Hunk
	Remove  bool
}

// World is what a patch works on.
type World struct {
	Files remotefs.FS
	// Remove removes a file of this version; nil where that cannot be done.
	Remove func(ctx context.Context, path, version string) error
}

// Result is what happened to one file. Before and After are the texts, nil for
// none.
type Result struct {
	Target    remotefs.Target
	Operation string // create, update or remove
	Version   string // of the new file; "" if there is none, or by a dry run
	Bytes     int64
	Before    *string
	After     *string
}

// planned is a change with what it meets.
type planned struct {
	Change
	target  remotefs.Target
	before  []byte // nil: nothing was there
	version string
	after   *string
	written string // version that was written
}

// Apply applies changes, all or none. With dryRun it only says what would come.
// Errors are those of the file that refused; one that says that files could not be
// put back has fault.RetryUnknown.
func Apply(ctx context.Context, w World, changes []Change, dryRun bool) ([]Result, error) {
	plan, err := prepare(ctx, w, changes)
	if err != nil {
		return nil, err
	}
	if !dryRun {
		for i := range plan {
			if err := plan[i].apply(ctx, w); err != nil {
				return nil, takeBack(ctx, w, plan[:i], err)
			}
		}
	}
	results := make([]Result, len(plan))
	for i := range plan {
		results[i] = plan[i].result()
	}
	return results, nil
}

// prepare reads every file, checks every guard and computes every new text.
func prepare(ctx context.Context, w World, changes []Change) ([]planned, error) {
	seen := map[string]bool{}
	plan := make([]planned, len(changes))
	for i, c := range changes {
		p, err := look(ctx, w, c)
		if err != nil {
			return nil, err
		}
		if seen[p.target.Key] {
			return nil, fault.New(fault.Usage, "patch", c.Path, "%q is in the patch twice", c.Path)
		}
		seen[p.target.Key] = true
		if (c.Remove || p.before == nil) && w.Remove == nil {
			return nil, fault.New(fault.BackendUnsupported, "patch", c.Path, "cannot patch %q: this world cannot remove files", c.Path)
		}
		if err := p.compute(ctx, w); err != nil {
			return nil, err
		}
		plan[i] = p
	}
	return plan, nil
}

// look reads a file and checks the guard.
func look(ctx context.Context, w World, c Change) (planned, error) {
	p := planned{Change: c}
	b, err := w.Files.ReadBytes(ctx, remotefs.AtPath(c.Path, ""), MaxFile)
	switch {
	case fault.Is(err, fault.FSNotFound):
		if p.target, err = w.Files.Resolve(ctx, c.Path, ""); err != nil {
			return p, err
		}
		if c.Version != "" {
			return p, refused(fault.FSStaleVersion, c.Path, "it no longer exists")
		}
		if c.Content == nil {
			return p, refused(fault.FSNotFound, c.Path, "not found")
		}
		return p, nil
	case err != nil:
		return p, err
	}
	p.target, p.version, p.before = b.Target, b.Version, append([]byte{}, b.Content...)
	switch {
	case c.Absent:
		return p, refused(fault.FSNotObserved, c.Path, "something has this name")
	case c.Version != "" && c.Version != p.version:
		return p, refused(fault.FSStaleVersion, c.Path, "file changed since it was read")
	}
	return p, nil
}

func refused(code fault.Code, path, why string) error {
	return fault.New(code, "patch", path, "cannot patch %q: %s", path, why)
}

// compute gives the new text.
func (p *planned) compute(ctx context.Context, w World) error {
	switch {
	case p.Remove && p.Hunks == nil:
		return nil
	case p.Content != nil:
		p.after = p.Content
	case p.Edits != nil:
		out, err := w.Files.EditText(ctx, remotefs.AtTarget(p.target), remotefs.EditRequest{
			Edits: p.Edits, Version: p.version, DryRun: true, BasisMax: MaxFile + 1})
		if err != nil {
			return err
		}
		p.after = out.After
	default:
		text, err := applyHunks(string(p.before), p.Hunks)
		if err != nil {
			return refused(fault.FSEditNotFound, p.Path, err.Error())
		}
		if p.Remove {
			if text != "" {
				return refused(fault.FSEditNotFound, p.Path, "the diff removes the file and does not hold all of it")
			}
			return nil
		}
		p.after = &text
	}
	return nil
}

// apply changes the file, if it is still what prepare saw.
func (p *planned) apply(ctx context.Context, w World) error {
	at := remotefs.AtTarget(p.target)
	switch {
	case p.Remove:
		return w.Remove(ctx, p.target.Key, p.version)
	case p.Edits != nil:
		out, err := w.Files.EditText(ctx, at, remotefs.EditRequest{Edits: p.Edits, Version: p.version})
		p.written = out.Version
		return err
	}
	out, err := w.Files.WriteText(ctx, at, p.request(*p.after, p.version))
	p.written = out.Version
	return err
}

// request is a guarded write: of a new file, or of this version.
func (p *planned) request(text, version string) remotefs.WriteRequest {
	r := remotefs.WriteRequest{Content: strings.NewReader(text), Size: int64(len(text)), Raw: true, Mode: -1, Intent: remotefs.IntentCreate}
	if version != "" {
		r.Intent, r.Version = remotefs.IntentReplace, version
	}
	return r
}

// takeBack undoes what was done, the last first, and gives why. Somebody else's
// change since is left alone, and said.
func takeBack(ctx context.Context, w World, done []planned, why error) error {
	ctx = context.WithoutCancel(ctx)
	var left []string
	for i := len(done) - 1; i >= 0; i-- {
		p := &done[i]
		var err error
		switch {
		case p.before == nil:
			err = w.Remove(ctx, p.target.Key, p.written)
		default:
			_, err = w.Files.WriteText(ctx, remotefs.AtTarget(p.target), p.request(string(p.before), p.written))
		}
		if err != nil {
			left = append(left, p.Path)
		}
	}
	var e *fault.Error
	if len(left) == 0 || !errors.As(why, &e) {
		return why
	}
	out := *e
	out.Message = fmt.Sprintf("%s; and these files were changed already and could not be put back: %s", e.Message, strings.Join(left, ", "))
	out.Retry = fault.RetryUnknown
	return &out
}

func (p *planned) result() Result {
	r := Result{Target: p.target, Operation: "update", Version: p.written, After: p.after}
	if p.before != nil {
		text := string(p.before)
		r.Before = &text
	}
	switch {
	case p.Remove:
		r.Operation = "remove"
	case p.before == nil:
		r.Operation = "create"
	}
	if p.after != nil {
		r.Bytes = int64(len(*p.after))
	}
	return r
}
