package ssh

import (
	"context"
	"errors"
	"io"

	"github.com/afield-dev/afield/pkg/remotefs"
	"github.com/afield-dev/afield/pkg/script"
)

// Write does a guarded write: in one call where the length is known, in two where
// it is not.
func (d *shellFiles) Write(ctx context.Context, ref remotefs.Ref, w remotefs.WriteSpec) (remotefs.WriteResult, error) {
	before, err := d.prior(ctx, ref, w.BasisMax)
	if err != nil {
		return remotefs.WriteResult{}, err
	}
	var res remotefs.WriteResult
	if w.Size >= 0 {
		res, err = d.writeWhole(ctx, ref, w)
	} else {
		res, err = d.writeStaged(ctx, ref, w, w.Content)
	}
	res.Before = before
	return res, err
}

// prior reads what is about to be replaced, if that is asked for. A file that
// cannot be read, or is too large, has none.
func (d *shellFiles) prior(ctx context.Context, ref remotefs.Ref, max int64) ([]byte, error) {
	if max <= 0 {
		return nil, nil
	}
	f, err := d.Open(ctx, ref, max-1)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, nil
	}
	defer f.Close()
	p, err := io.ReadAll(io.LimitReader(f, max))
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil || int64(len(p)) >= max {
		return nil, nil
	}
	return p, nil
}

func intent(i remotefs.Intent) script.Intent {
	switch i {
	case remotefs.IntentCreate:
		return script.Create
	case remotefs.IntentReplace:
		return script.Replace
	}
	return script.Any
}

// writeWhole sends content of known length. The program takes nothing that it
// would refuse, and publishes nothing that is not whole: the last piece is sent
// only when the content has ended well.
func (d *shellFiles) writeWhole(ctx context.Context, ref remotefs.Ref, w remotefs.WriteSpec) (remotefs.WriteResult, error) {
	c := script.Write(script.WriteSpec{Path: ref.Path, Canonical: ref.Canonical, Intent: intent(w.Intent), Version: w.Version,
		Size: w.Size, Mode: w.Mode, NewMode: w.NewMode, InPlace: w.InPlace})
	var sum script.Sum
	now := settling{complete: w.InPlace}
	var got script.Written
	err := d.sh.talk(ctx, c, func(s *session, a *script.Answer, committed func()) (err error) {
		if now.key, err = script.ReadAdmitted(a, c); err != nil {
			return err
		}
		if err := w.Lock(ctx, now.key); err != nil {
			return err
		}
		err = feed(ctx, s, w, &sum, func() { committed(); now.complete = true })
		var taken *writeFailed
		if err != nil && !errors.As(err, &taken) {
			return &contentFailed{err}
		}
		d.sh.trace("content", 1, sum.Len())
		got, err = script.ReadWrite(a)
		return err
	})
	var content *contentFailed
	switch {
	case err == nil:
		return result(got, sum.Len()), nil
	case errors.As(err, &content):
		return remotefs.WriteResult{}, content.error
	case errors.Is(err, errLost) && now.key != "":
		now.folder, now.size, now.sum = script.Folder(now.key, c.Nonce), sum.Len(), sum.String()
		return d.settle(ctx, now, err)
	}
	return remotefs.WriteResult{}, translate(err)
}

// contentFailed is content that did not end well.
type contentFailed struct{ error }

// feed sends the content, one piece behind reading it. Before the last piece it
// calls commit: what follows cannot be taken back.
func feed(ctx context.Context, s *session, w remotefs.WriteSpec, sum io.Writer, commit func()) error {
	size := int(min(max(w.Size, 1), 128<<10))
	piece, next := make([]byte, 0, size), make([]byte, size)
	for {
		n, err := io.ReadFull(w.Content, next)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			piece = append(piece, next[:n]...)
			commit()
		}
		if w.Size == 0 {
			piece = []byte(script.Empty)
		} else {
			sum.Write(piece)
		}
		if _, failed := s.Write(piece); failed != nil {
			return &writeFailed{failed}
		}
		if err != nil {
			s.CloseWrite()
			return nil
		}
		piece = append(piece[:0], next[:n]...)
	}
}

func result(w script.Written, n int64) remotefs.WriteResult {
	op := remotefs.OpUpdate
	if w.Created {
		op = remotefs.OpCreate
	}
	return remotefs.WriteResult{Key: w.Key, Operation: op, Version: w.Version, Bytes: n}
}
