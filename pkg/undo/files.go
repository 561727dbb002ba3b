package undo

import (
	"context"
	"fmt"

	"github.com/afield-dev/afield/pkg/remotefs"
)

// MaxImage is how large a file may be whose content is kept, in bytes.
const MaxImage = 64 << 20

// Files remembers every write and edit of the files below. What was there is read
// before the change; a change that slips in between is that of somebody else, and
// is gone with the write as it would be without.
type Files struct {
	remotefs.FS
	Store *Store
	// Warn is told when something could not be remembered; the change stands.
	Warn func(text string)
}

// WriteText remembers and writes.
func (f *Files) WriteText(ctx context.Context, at remotefs.At, w remotefs.WriteRequest) (remotefs.WriteOutcome, error) {
	r := f.Before(ctx, Write, at)
	out, err := f.FS.WriteText(ctx, at, w)
	if err == nil {
		r.Key, r.Display, r.Version = out.Target.Key, out.Target.Display, out.Version
		if out.Operation == remotefs.OpCreate {
			r.Had, r.Before = false, ""
		}
		f.After(ctx, r)
	}
	return out, err
}

// EditText remembers and edits.
func (f *Files) EditText(ctx context.Context, at remotefs.At, e remotefs.EditRequest) (remotefs.EditOutcome, error) {
	if e.DryRun {
		return f.FS.EditText(ctx, at, e)
	}
	r := f.Before(ctx, Edit, at)
	out, err := f.FS.EditText(ctx, at, e)
	if err == nil {
		r.Key, r.Display, r.Version = out.Target.Key, out.Target.Display, out.Version
		f.After(ctx, r)
	}
	return out, err
}

// Before keeps what a file holds. What is missing or cannot be kept is left to
// After and to whoever wants it back.
func (f *Files) Before(ctx context.Context, op string, at remotefs.At) Record {
	r := Record{Op: op, Had: true, Mode: -1}
	_, info, err := f.FS.Stat(ctx, at)
	if err != nil || info == nil || info.Type != remotefs.TypeFile {
		r.Had = err != nil || info != nil
		return r
	}
	r.Mode = info.Mode
	if b, err := f.FS.ReadBytes(ctx, at, MaxImage); err == nil {
		if r.Before, err = f.Store.Keep(b.Content); err != nil {
			f.Warn(fmt.Sprintf("what %s held could not be kept: %s", at.Path, err))
		}
	}
	return r
}

// After writes the record of a change that was made.
func (f *Files) After(ctx context.Context, r Record) {
	if err := f.Store.Add(context.WithoutCancel(ctx), r); err != nil {
		f.Warn(fmt.Sprintf("the change of %s could not be remembered: %s", r.Display, err))
	}
}
