package ssh

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
	"github.com/afield-dev/afield/pkg/script"
)

// writeStaged sends content of any length into a staged file, then publishes it.
func (d *shellFiles) writeStaged(ctx context.Context, ref remotefs.Ref, w remotefs.WriteSpec, content io.Reader) (remotefs.WriteResult, error) {
	if w.InPlace {
		return remotefs.WriteResult{}, fault.New(fault.BackendUnsupported, "write", ref.Path,
			"cannot write content of unknown length in place over ssh")
	}
	e, err := d.stat(ctx, script.Stat(ref.Path, ref.Canonical))
	if err != nil {
		return remotefs.WriteResult{}, err
	}
	if err := w.Lock(ctx, e.Key); err != nil {
		return remotefs.WriteResult{}, err
	}
	if err := admit(e.Facts, w); err != nil {
		return remotefs.WriteResult{}, err
	}
	up, sum, err := d.upload(ctx, e, w, content)
	if err != nil {
		return remotefs.WriteResult{}, err
	}
	if ctx.Err() != nil {
		d.discard(up.Folder)
		return remotefs.WriteResult{}, context.Cause(ctx)
	}
	got, err := d.publish(e.Key, up, sum, w)
	if err != nil {
		return got, err
	}
	if e.Facts == nil {
		got.Operation = remotefs.OpCreate
	}
	return got, nil
}

// admit applies type and intent to what is there.
func admit(f *script.Facts, w remotefs.WriteSpec) error {
	switch {
	case f != nil && !f.IsRegular():
		return &fault.Error{Code: fault.FSNotRegularFile}
	case f != nil && w.Intent == remotefs.IntentCreate:
		return &fault.Error{Code: fault.FSNotObserved}
	case f == nil && w.Intent == remotefs.IntentReplace:
		return &fault.Error{Code: fault.FSStaleVersion, Err: fs.ErrNotExist}
	case w.Intent == remotefs.IntentReplace && f.Version != w.Version:
		return &fault.Error{Code: fault.FSStaleVersion}
	}
	return nil
}

// upload stages content, and gives its sum with what arrived. When the content fails, or the caller cancels, what is
// staged is removed.
func (d *shellFiles) upload(ctx context.Context, e script.Entry, w remotefs.WriteSpec, content io.Reader) (script.Uploaded, string, error) {
	c := script.Upload(e.Key, w.Mode, w.NewMode, e.Facts != nil)
	var up script.Uploaded
	var sum script.Sum
	var failed error
	err := d.sh.talk(ctx, c, func(s *session, a *script.Answer, _ func()) (err error) {
		buf := make([]byte, 128<<10)
		_, failed = io.CopyBuffer(onlyWriter{s}, io.TeeReader(content, &sum), buf)
		var refused *writeFailed
		if failed != nil && !errors.As(failed, &refused) {
			return &contentFailed{failed}
		}
		s.CloseWrite()
		up, err = script.ReadUpload(a, c)
		return err
	})
	d.sh.trace("content", 1, sum.Len())
	if err == nil && up.Size != sum.Len() {
		err = &script.Failure{Kind: script.Short}
	}
	if err != nil {
		d.discard(script.Folder(e.Key, c.Nonce))
		var content *contentFailed
		if errors.As(err, &content) {
			return up, "", content.error
		}
		return up, "", translate(err)
	}
	return up, sum.String(), nil
}

// onlyWriter hides ReadFrom, and marks errors of the far side.
type onlyWriter struct{ w io.Writer }

func (o onlyWriter) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	if err != nil {
		return n, &writeFailed{err}
	}
	return n, nil
}

// writeFailed is a program that takes no more content; its answer says why.
type writeFailed struct{ error }

// publish makes what is staged visible. Nothing cancels it.
func (d *shellFiles) publish(key string, up script.Uploaded, sum string, w remotefs.WriteSpec) (remotefs.WriteResult, error) {
	guard := ""
	if w.Intent == remotefs.IntentReplace {
		guard = w.Version
	}
	c := script.Publish(key, up.Folder, w.Intent == remotefs.IntentCreate, guard)
	var got script.Written
	ctx := context.Background()
	err := d.sh.ask(ctx, c, func(a *script.Answer) (err error) {
		got, err = script.ReadPublished(a, c)
		return err
	})
	if errors.Is(err, errLost) {
		return d.settle(ctx, settling{key, up.Folder, true, up.Size, sum}, err)
	}
	if err != nil {
		return remotefs.WriteResult{}, translate(err)
	}
	return result(got, up.Size), nil
}

// discard removes what is staged, as far as that is possible.
func (d *shellFiles) discard(folder string) {
	ctx, cancel := context.WithTimeout(context.Background(), d.sh.dialer.settings.ConnectTimeout)
	defer cancel()
	c := script.Discard(folder)
	d.sh.ask(ctx, c, func(a *script.Answer) error { return script.ReadDone(a, c) })
}
