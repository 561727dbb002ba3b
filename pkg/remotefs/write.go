package remotefs

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/afield-dev/afield/pkg/fault"
)

func (c *core) WriteText(ctx context.Context, at At, w WriteRequest) (WriteOutcome, error) {
	ref, display, err := c.locate(ctx, "write", at)
	if err != nil {
		return WriteOutcome{}, err
	}
	if err := checkMode(display, w.Mode); err != nil {
		return WriteOutcome{}, err
	}
	src, err := newContent(ctx, display, w)
	if err != nil {
		return WriteOutcome{}, err
	}
	defer src.close()
	if w.InPlace && !src.whole() {
		done, err := src.spool(ctx)
		if err != nil {
			return WriteOutcome{}, err
		}
		defer done()
	}
	if w.BasisMax > 0 {
		src.keepUpTo(w.BasisMax)
	}
	ch := &change{core: c, op: "write", display: display, guarded: w.Intent == IntentReplace}
	defer ch.end()
	switch c.driver.(type) {
	case Writer:
		return ch.writeWhole(ctx, ref, src, w)
	case Stager:
		return ch.writeStaged(ctx, ref, src, w)
	}
	return WriteOutcome{}, unsupported("write", at)
}

// writeWhole leaves the write to the driver.
func (ch *change) writeWhole(ctx context.Context, ref Ref, src *content, w WriteRequest) (WriteOutcome, error) {
	if ref.Canonical {
		if err := ch.lock(ctx, ref.Path); err != nil {
			return WriteOutcome{}, err
		}
	}
	res, err := ch.driver.(Writer).Write(ctx, ref, WriteSpec{
		Content: src, Size: src.size, Intent: w.Intent, Version: w.Version, Mode: w.Mode, NewMode: ch.mode,
		InPlace: w.InPlace, BasisMax: w.BasisMax, Lock: ch.lock,
	})
	if err != nil {
		return WriteOutcome{}, ch.failed(ctx, err)
	}
	out := WriteOutcome{Target: Target{Key: res.Key, Display: ch.display},
		Operation: res.Operation, Version: res.Version, Bytes: res.Bytes}
	if out.After = folded(src.kept()); out.After != nil && int64(len(res.Before)) < w.BasisMax {
		out.Before = priorText(res.Before)
	}
	return out, nil
}

// failed gives the error of a change that the driver did as a whole. One that
// may have taken effect is not reported as aborted.
func (ch *change) failed(ctx context.Context, err error) error {
	var e *fault.Error
	if errors.As(err, &e) && e.Retry == fault.RetryUnknown {
		return complete(e, ch.op, ch.display)
	}
	return failure(ctx, mapChange(err, ch.op, ch.display), ch.op, ch.display)
}

// writeStaged does the steps of remotefs.md 7.
func (ch *change) writeStaged(ctx context.Context, ref Ref, src *content, w WriteRequest) (WriteOutcome, error) {
	key, err := ch.canon(ctx, ref)
	if err != nil {
		return WriteOutcome{}, err
	}
	info, err := ch.existing(ctx, key)
	if err == nil {
		err = mapError(admit(info, w), ch.op, ch.display)
	}
	if err != nil {
		return WriteOutcome{}, err
	}
	before, err := ch.prior(ctx, key, info, w)
	if err != nil {
		return WriteOutcome{}, err
	}
	out := WriteOutcome{Target: Target{Key: key, Display: ch.display}, Operation: OpUpdate}
	if info == nil {
		out.Operation = OpCreate
	}
	if w.InPlace && info != nil {
		out.Version, out.Bytes, err = ch.through(ctx, key, src, InPlaceOptions{Guard: guardOf(w), Mode: w.Mode})
	} else {
		out.Version, out.Bytes, err = ch.publish(ctx, key, src,
			StageOptions{Size: src.size, Mode: w.Mode, Replaces: info},
			PublishOptions{NoReplace: w.Intent == IntentCreate, Guard: guardOf(w)})
	}
	if err != nil {
		return WriteOutcome{}, err
	}
	if out.After = folded(src.kept()); out.After != nil {
		out.Before = before
	}
	return out, nil
}

// existing looks at key under the lock.
func (ch *change) existing(ctx context.Context, key string) (*Info, error) {
	_, info, err := ch.driver.Stat(ctx, Ref{Path: key, Canonical: true})
	if err != nil || ctx.Err() != nil {
		return nil, failure(ctx, err, ch.op, ch.display)
	}
	return info, nil
}

// admit applies type and intent, in this order, to what is there.
func admit(info *Info, w WriteRequest) error {
	switch {
	case info != nil && info.Type != TypeFile:
		return &fault.Error{Code: fault.FSNotRegularFile}
	case w.Intent == IntentCreate && info != nil:
		return &fault.Error{Code: fault.FSNotObserved}
	case w.Intent == IntentReplace && info == nil:
		return &fault.Error{Code: fault.FSStaleVersion, Err: fs.ErrNotExist}
	case w.Intent == IntentReplace && info.Version != w.Version:
		return &fault.Error{Code: fault.FSStaleVersion}
	}
	return nil
}

func guardOf(w WriteRequest) string {
	if w.Intent == IntentReplace {
		return w.Version
	}
	return ""
}

// prior reads what is about to be replaced, for the outcome alone. A failure
// gives nil and the write goes on.
func (ch *change) prior(ctx context.Context, key string, info *Info, w WriteRequest) (*string, error) {
	if info == nil || w.BasisMax <= 0 || info.Size >= w.BasisMax {
		return nil, nil
	}
	f, err := ch.driver.Open(ctx, Ref{Path: key, Canonical: true}, w.BasisMax-1)
	if err != nil {
		return nil, aborted(ctx, ch)
	}
	defer f.Close()
	p, err := readUpTo(ctx, f, w.BasisMax-1)
	if err != nil || int64(len(p)) != f.Info().Size {
		return nil, aborted(ctx, ch)
	}
	return priorText(p), aborted(ctx, ch)
}

// aborted gives FS_ABORTED if ctx has ended.
func aborted(ctx context.Context, ch *change) error {
	if ctx.Err() == nil {
		return nil
	}
	return fault.Aborted(ctx, fault.FSAborted, ch.op, ch.display)
}

// through writes in place.
func (ch *change) through(ctx context.Context, key string, src io.Reader, opts InPlaceOptions) (version string, n int64, err error) {
	in, ok := ch.driver.(InPlacer)
	if !ok {
		return "", 0, fault.New(fault.BackendUnsupported, ch.op, ch.display,
			"cannot %s %q: this backend cannot write in place", ch.op, ch.display)
	}
	counted := &counter{src: src}
	version, err = in.WriteInPlace(ctx, key, counted, opts)
	if err != nil {
		return "", 0, ch.failed(ctx, err)
	}
	return version, counted.n, nil
}

// counter counts what passes.
type counter struct {
	src io.Reader
	n   int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.src.Read(p)
	c.n += int64(n)
	return n, err
}
