package remotefs

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/afield-dev/afield/pkg/fault"
)

// change is one mutation under way: what it is called, and the lock it holds.
type change struct {
	*core
	op      string // "write" or "edit"
	display string
	guarded bool
	key     string // of the lock; "" = none yet
	unlock  func()
	// overtaken: the file changed between the reading and the publishing of an
	// edit.
	overtaken bool
}

// lock takes the lock of key; the second call does nothing. Without a lock a
// guarded change is refused and another goes on (design.md 4.23).
func (ch *change) lock(ctx context.Context, key string) error {
	if ch.key != "" {
		return nil
	}
	unlock, err := ch.locks.Lock(ctx, key)
	var none *NoLockError
	switch {
	case err == nil:
		ch.key, ch.unlock = key, unlock
	case ctx.Err() != nil || !errors.As(err, &none):
		return failure(ctx, err, ch.op, ch.display)
	case ch.guarded:
		e := fault.Wrap(err, fault.FSIOError, ch.op, ch.display,
			"cannot %s %q: no lock between processes can be had: %s", ch.op, ch.display, reason(none.Err))
		return e.WithHint("put AFIELD_STATE_DIR on a local disk that can be written")
	default:
		ch.log.Warn("changing without a lock between processes", "path", ch.display, "reason", reason(none.Err))
	}
	if ctx.Err() != nil {
		return failure(ctx, nil, ch.op, ch.display)
	}
	return nil
}

// end releases the lock.
func (ch *change) end() {
	if ch.unlock != nil {
		ch.unlock()
	}
}

// canon gives the key of ref and takes its lock.
func (ch *change) canon(ctx context.Context, ref Ref) (string, error) {
	key := ref.Path
	if !ref.Canonical {
		var err error
		key, err = ch.driver.Canon(ctx, key)
		if err != nil || ctx.Err() != nil {
			return "", failure(ctx, err, ch.op, ch.display)
		}
	}
	return key, ch.lock(ctx, key)
}

// publish stages what src gives and makes it visible as key.
func (ch *change) publish(ctx context.Context, key string, src io.Reader, how StageOptions, what PublishOptions) (version string, n int64, err error) {
	stager := ch.driver.(Stager)
	if how.Mode < 0 && how.Replaces == nil {
		how.Mode = ch.mode
	}
	stage, err := stager.Stage(ctx, key, how)
	if err != nil {
		return "", 0, ch.hinted(failure(ctx, mapChange(err, ch.op, ch.display), ch.op, ch.display), how.Replaces)
	}
	n, err = fill(ctx, stage, src)
	if err == nil {
		err = stage.Seal(ctx)
	}
	if err != nil || ctx.Err() != nil {
		err = failure(ctx, mapChange(err, ch.op, ch.display), ch.op, ch.display)
		return "", 0, ch.abandon(stage, err)
	}
	version, err = stage.Publish(what)
	if err != nil {
		err = ch.hinted(mapChange(err, ch.op, ch.display), how.Replaces)
		return "", 0, ch.abandon(stage, err)
	}
	if err := stage.Discard(); err != nil {
		ch.log.Warn("staging was not removed", "path", ch.display, "reason", reason(err))
	}
	return version, n, nil
}

// abandon removes staging after a failure, which keeps its code; a second
// failure is mentioned.
func (ch *change) abandon(stage Stage, err error) error {
	left := stage.Discard()
	if left == nil {
		return err
	}
	var e *fault.Error
	if !errors.As(err, &e) {
		return err
	}
	out := *e
	out.Message = fmt.Sprintf("%s; and staging was not removed: %s", e.Message, reason(left))
	out.Err = errors.Join(e.Err, left)
	return &out
}

// hinted points at the way out where a file can be written but not replaced.
func (ch *change) hinted(err error, replaces *Info) error {
	var e *fault.Error
	if _, able := ch.driver.(InPlacer); able && replaces != nil && errors.As(err, &e) {
		switch e.Code {
		case fault.FSPermissionDenied, fault.FSIOError:
			e.Hint = "--in-place writes through the file instead of replacing it; that is not atomic"
		}
	}
	return err
}

// fill copies src with a look at ctx between pieces.
func fill(ctx context.Context, dst io.Writer, src io.Reader) (int64, error) {
	buf := make([]byte, streamBuffer)
	var total int64
	for {
		if ctx.Err() != nil {
			return total, ctx.Err()
		}
		n, err := src.Read(buf)
		if n > 0 {
			if _, err := dst.Write(buf[:n]); err != nil {
				return total, err
			}
			total += int64(n)
		}
		if errors.Is(err, io.EOF) {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}
