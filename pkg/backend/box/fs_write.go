package box

import (
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"sync"
	"time"

	"github.com/afield-dev/afield/pkg/backend/box/wire"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
	"github.com/afield-dev/afield/pkg/script"
)

// Write implements remotefs.Writer: one exec session with the content on its
// input. The program in the box tells the canonical path, waits until the lock
// is taken here, applies the guard, stages, compares length and checksum with
// what follows the content, and publishes in one step (upstash-box.md 11.2).
func (f *files) Write(ctx context.Context, ref remotefs.Ref, w remotefs.WriteSpec) (remotefs.WriteResult, error) {
	call := script.Store(script.StoreSpec{Path: ref.Path, Canonical: ref.Canonical, Intent: intent(w.Intent),
		Version: w.Version, Mode: w.Mode, NewMode: w.NewMode, InPlace: w.InPlace, Ready: isLarge(w.Size)})
	j := &writing{files: f, call: call, spec: w, digest: sha256.New()}
	done, err := j.run(ctx)
	if err != nil {
		return remotefs.WriteResult{}, err
	}
	res := remotefs.WriteResult{Key: done.Key, Operation: remotefs.OpUpdate, Version: done.Version, Bytes: j.sum.Len(), Before: j.before}
	if done.Created {
		res.Operation, res.Before = remotefs.OpCreate, nil
	}
	return res, nil
}

// isLarge reports whether content is worth waiting for the guard before it is
// sent.
func isLarge(size int64) bool { return size < 0 || size > inline }

func intent(i remotefs.Intent) script.Intent {
	switch i {
	case remotefs.IntentCreate:
		return script.Create
	case remotefs.IntentReplace:
		return script.Replace
	}
	return script.Any
}

// writing is one guarded write under way.
type writing struct {
	*files
	call script.Call
	spec remotefs.WriteSpec

	key    string // canonical, once it is known
	exists bool
	before []byte
	sum    script.Sum // for settle
	digest hash.Hash  // for the trailer
	// complete: all of the content was handed over, so that the file may have
	// been published whatever becomes of the connection.
	complete bool
}

// talk is the session of a write.
type talk struct {
	*wire.Session
	answer *script.Answer
	ended  chan struct{} // the program has ended or is lost
	once   sync.Once
}

func newTalk(s *wire.Session) *talk {
	r, w := io.Pipe()
	t := &talk{Session: s, answer: script.NewAnswer(r), ended: make(chan struct{})}
	go func() {
		defer close(t.ended)
		_, err := s.Serve(func(stream wire.Stream, b []byte) {
			if stream == wire.Stdout {
				_, _ = w.Write(b)
			}
		})
		_ = w.CloseWithError(err)
	}()
	return t
}

// abortPatience is how long a program may take to remove what it has staged.
const abortPatience = 10 * time.Second

// abort asks the program to go, so that it removes what it has staged, and cuts
// the connection if it does not.
func (t *talk) abort() {
	t.once.Do(func() {
		_ = t.Terminate(abortPatience)
		select {
		case <-t.ended:
		case <-time.After(abortPatience):
		}
		t.Close()
	})
}

// leave waits until a program that has refused has removed what it has staged.
func (t *talk) leave() {
	_ = t.CloseStdin()
	select {
	case <-t.ended:
	case <-time.After(abortPatience):
	}
}

// run opens the session, sends the content and reads the answer.
func (j *writing) run(ctx context.Context) (script.Written, error) {
	s, err := j.session(ctx, wire.Start{Argv: j.call.Argv(), Cwd: "/"})
	if err != nil {
		if ctx.Err() != nil {
			return script.Written{}, context.Cause(ctx)
		}
		return script.Written{}, startFault(err)
	}
	t := newTalk(s)
	defer func() { s.Close(); <-t.ended }()
	stop := context.AfterFunc(ctx, t.abort)
	defer stop()
	own, err := j.hand(ctx, t)
	switch {
	case err != nil && own:
		t.abort()
		return script.Written{}, err
	case ctx.Err() != nil || err == nil && !stop():
		t.abort() // the last look before the point of no return
		return script.Written{}, context.Cause(ctx)
	case err == nil:
		j.complete = true
		err = s.CloseStdin()
	}
	if err == nil || isEarly(err) {
		var done script.Written
		if done, err = script.ReadStored(t.answer); err == nil {
			return done, nil
		}
	}
	if isRefusal(err) {
		t.leave()
		return script.Written{}, refusal(err)
	}
	return j.settle(err)
}

// errEarly says that the program answered before it had all of the content: it
// has refused the write.
var errEarly = errors.New("the program answered early")

func isEarly(err error) bool { return errors.Is(err, errEarly) }

func isRefusal(err error) bool {
	var r *script.Failure
	return errors.As(err, &r)
}

// hand is the talk up to the end of the content: path, lock, prior content,
// content, trailer. own says that the failure is not the connection's.
func (j *writing) hand(ctx context.Context, t *talk) (own bool, err error) {
	if j.key, j.exists, err = script.ReadPlace(t.answer, j.call); err != nil {
		return false, err
	}
	if err := j.spec.Lock(ctx, j.key); err != nil {
		return true, err
	}
	if j.exists && j.spec.BasisMax > 0 {
		if j.before, err = j.prior(ctx); err != nil {
			return true, err
		}
	}
	if _, err := t.Write([]byte("go\n")); err != nil {
		return false, err
	}
	if isLarge(j.spec.Size) {
		if err := script.ReadReady(t.answer); err != nil {
			return false, err
		}
	}
	if own, err := j.copy(t); err != nil {
		return own, err
	}
	_, err = t.Write(script.Trailer(j.call, j.sum.Len(), [sha256.Size]byte(j.digest.Sum(nil))))
	return false, err
}

// copy sends the content. It stops when the program has ended.
func (j *writing) copy(t *talk) (own bool, err error) {
	buf := make([]byte, 64<<10)
	for {
		n, rerr := j.spec.Content.Read(buf)
		if n > 0 {
			_, _ = j.sum.Write(buf[:n])
			_, _ = j.digest.Write(buf[:n])
			if _, err := t.Write(buf[:n]); err != nil {
				return false, err
			}
		}
		switch {
		case errors.Is(rerr, io.EOF):
			return false, nil
		case rerr != nil:
			return true, rerr
		}
		select {
		case <-t.ended:
			return false, errEarly
		default:
		}
	}
}

// prior gives the content that is about to be replaced, nil if it is not smaller
// than was asked for or cannot be read. The lock is held.
func (j *writing) prior(ctx context.Context) ([]byte, error) {
	file, err := j.Open(ctx, remotefs.Ref{Path: j.key, Canonical: true}, j.spec.BasisMax-1)
	if err == nil {
		defer file.Close()
		var before []byte
		before, err = io.ReadAll(io.LimitReader(file, j.spec.BasisMax))
		if err == nil && int64(len(before)) < j.spec.BasisMax {
			return before, nil
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, nil
}

// settleLimit bounds the look at what became of a write.
const settleLimit = 20 * time.Second

// settle finds out what became of a write whose connection was lost (S-13). What
// is staged is removed, so that nothing is published later.
func (j *writing) settle(cause error) (script.Written, error) {
	if j.key == "" {
		return script.Written{}, lostWrite(cause, fault.RetrySafe, "the connection was lost before anything was written")
	}
	ctx, cancel := context.WithTimeout(context.Background(), settleLimit)
	defer cancel()
	const unknown = "the connection was lost; whether the file was published is unknown"
	call := script.Settle(j.key, script.Folder(j.key, j.call.Nonce))
	a, err := j.files.run(ctx, true, call)
	if err != nil {
		return script.Written{}, lostWrite(cause, fault.RetryUnknown, unknown)
	}
	now, err := script.ReadSettle(a, call)
	switch {
	case err != nil:
	case j.spec.InPlace && j.exists:
	case now.Staged || !j.complete:
		return script.Written{}, lostWrite(cause, fault.RetrySafe, "the connection was lost; nothing was published")
	case now.Facts != nil && now.Size == j.sum.Len() && now.Sum == j.sum.String():
		return script.Written{Key: j.key, Created: !j.exists, Version: now.Facts.Version}, nil
	}
	return script.Written{}, lostWrite(cause, fault.RetryUnknown, unknown)
}

func lostWrite(cause error, r fault.Retry, text string) error {
	e := fault.Wrap(cause, fault.FSIOError, "write", "", "cannot write: %s", text)
	e.Backend = name
	if r == fault.RetryUnknown {
		return e.WithRetry(r).WithHint("look at the file before writing it again")
	}
	return e.WithRetry(r).WithHint("write it again")
}

// startFault gives the error of a session for a write that did not start.
func startFault(err error) error {
	var e *wire.Error
	if errors.As(err, &e) && (e.Session || e.Corrupt && e.Status == 0) {
		return lostWrite(err, fault.RetrySafe, "the box did not start the program that writes: "+e.Text)
	}
	return remote(err)
}
