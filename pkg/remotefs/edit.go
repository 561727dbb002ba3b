package remotefs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"math"

	"github.com/afield-dev/afield/pkg/fault"
)

// editAttempts bounds how often an edit without a guard starts again because
// the file changed before its lock was held.
const editAttempts = 5

func (c *core) EditText(ctx context.Context, at At, e EditRequest) (EditOutcome, error) {
	ref, display, err := c.locate(ctx, "edit", at)
	if err != nil {
		return EditOutcome{}, err
	}
	if len(e.Edits) == 0 {
		return EditOutcome{}, fault.New(fault.Usage, "edit", display, "at least one edit must be given")
	}
	_, whole := c.driver.(Writer)
	if _, staged := c.driver.(Stager); !whole && !staged {
		return EditOutcome{}, unsupported("edit", at)
	}
	ch := &change{core: c, op: "edit", display: display, guarded: e.Version != ""}
	defer ch.end()
	if (!whole || ref.Canonical) && !e.DryRun {
		key, err := ch.canon(ctx, ref)
		if err != nil {
			return EditOutcome{}, err
		}
		ref = Ref{Path: key, Canonical: true}
	}
	for attempt := 1; ; attempt++ {
		held := ch.key != ""
		out, err := ch.edit(ctx, ref, e)
		if !ch.overtaken || held || ch.guarded || attempt == editAttempts {
			return out, err
		}
	}
}

// edit reads, applies and publishes once. With a Writer the lock is taken only
// when the answer has brought the key; what changed before that is then seen as
// a version that differs.
func (ch *change) edit(ctx context.Context, ref Ref, e EditRequest) (EditOutcome, error) {
	ch.overtaken = false
	f, doc, err := ch.load(ctx, ref, e.Version)
	if err != nil {
		return EditOutcome{}, err
	}
	for _, one := range e.Edits {
		if err := doc.apply(one, ch.display); err != nil {
			return EditOutcome{}, err
		}
	}
	if e.NormalizeEOL {
		doc.normalize()
	}
	out := EditOutcome{Target: Target{Key: f.Key(), Display: ch.display}, Version: f.Info().Version,
		Bytes: int64(len(doc.bom) + len(doc.raw)), Replacements: doc.count}
	if int64(max(len(doc.before), len(doc.text))) < e.BasisMax {
		before, after := string(doc.before), string(doc.text)
		out.Before, out.After = &before, &after
	}
	if e.DryRun {
		return out, aborted(ctx, ch)
	}
	out.Version, err = ch.store(ctx, f, doc, e)
	if err != nil {
		ch.overtaken = fault.Is(err, fault.FSStaleVersion)
		return EditOutcome{}, err
	}
	return out, nil
}

// load opens the file, compares the guard with the version of what was opened
// (S-14), and reads it. The file is closed; its key and facts stay.
func (ch *change) load(ctx context.Context, ref Ref, guard string) (File, *document, error) {
	f, err := ch.driver.Open(ctx, ref, -1)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || fault.Is(err, fault.FSNotFound) {
			err = &fault.Error{Code: fault.FSStaleVersion, Err: fs.ErrNotExist}
		}
		return nil, nil, failure(ctx, err, "edit", ch.display)
	}
	defer f.Close()
	if guard != "" && guard != f.Info().Version {
		return nil, nil, mapError(&fault.Error{Code: fault.FSStaleVersion}, "edit", ch.display)
	}
	p, err := readUpTo(ctx, f, math.MaxInt64)
	if err != nil || ctx.Err() != nil {
		return nil, nil, failure(ctx, err, "edit", ch.display)
	}
	doc, err := newDocument(p, ch.display)
	return f, doc, err
}

// store publishes the edited file over the version that was read.
func (ch *change) store(ctx context.Context, f File, doc *document, e EditRequest) (version string, err error) {
	if err := ch.lock(ctx, f.Key()); err != nil {
		return "", err
	}
	info, guard := f.Info(), f.Info().Version
	src := io.MultiReader(bytes.NewReader(doc.bom), bytes.NewReader(doc.raw))
	size := int64(len(doc.bom) + len(doc.raw))
	if w, ok := ch.driver.(Writer); ok {
		res, err := w.Write(ctx, Ref{Path: f.Key(), Canonical: true}, WriteSpec{
			Content: src, Size: size, Intent: IntentReplace, Version: guard,
			Mode: -1, NewMode: -1, InPlace: e.InPlace, Lock: ch.lock,
		})
		if err != nil {
			return "", ch.failed(ctx, err)
		}
		return res.Version, nil
	}
	if e.InPlace {
		version, _, err = ch.through(ctx, f.Key(), src, InPlaceOptions{Guard: guard, Mode: -1})
		return version, err
	}
	version, _, err = ch.publish(ctx, f.Key(), src,
		StageOptions{Size: size, Mode: -1, Replaces: info}, PublishOptions{Guard: guard})
	return version, err
}
