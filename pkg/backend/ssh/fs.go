package ssh

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"sync"
	"syscall"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
	"github.com/afield-dev/afield/pkg/script"
)

// shellFiles are the files of a host through the programs of package script: two
// round trips for what only reads, three for a guarded write, one less with a
// session opened in advance. Version tokens carry nanoseconds, inode and ctime.
type shellFiles struct {
	sh    *shell
	facts remotefs.Facts
}

var (
	_ remotefs.Driver = (*shellFiles)(nil)
	_ remotefs.Writer = (*shellFiles)(nil)
)

// Facts are those of a POSIX host.
func (d *shellFiles) Facts() remotefs.Facts { return d.facts }

// Canon resolves links in the world.
func (d *shellFiles) Canon(ctx context.Context, path string) (string, error) {
	e, err := d.stat(ctx, script.Stat(path, false))
	if err == nil && e.NotDir {
		err = syscall.ENOTDIR
	}
	return e.Key, err
}

func (d *shellFiles) stat(ctx context.Context, c script.Call) (e script.Entry, err error) {
	defer d.sh.prepare()
	err = d.sh.ask(ctx, c, func(a *script.Answer) (err error) {
		e, err = script.ReadStat(a, c)
		return err
	})
	return e, translate(err)
}

// Stat follows links.
func (d *shellFiles) Stat(ctx context.Context, ref remotefs.Ref) (string, *remotefs.Info, error) {
	e, err := d.stat(ctx, script.Stat(ref.Path, ref.Canonical))
	if err != nil {
		return ref.Path, nil, err
	}
	return e.Key, info(e.Facts, ""), nil
}

// Lstat does not follow the last component.
func (d *shellFiles) Lstat(ctx context.Context, path string) (string, *remotefs.Info, error) {
	e, err := d.stat(ctx, script.Lstat(path))
	if err != nil {
		return path, nil, err
	}
	return e.Key, info(e.Facts, e.Link), nil
}

// info gives facts in the words of the contract; nil for absence.
func info(f *script.Facts, link string) *remotefs.Info {
	if f == nil {
		return nil
	}
	i := &remotefs.Info{Version: f.Version, Type: remotefs.TypeOther, Size: -1, Mode: f.Perm(),
		ModTime: f.ModTime, Owner: f.Owner, Group: f.Group, LinkTarget: link}
	switch {
	case f.IsRegular():
		i.Type, i.Size = remotefs.TypeFile, f.Size
	case f.IsDirectory():
		i.Type = remotefs.TypeDirectory
	case f.IsLink():
		i.Type, i.Size = remotefs.TypeSymlink, f.Size
	}
	return i
}

// translate gives the refusals of the programs their codes.
func translate(err error) error {
	var f *script.Failure
	if !errors.As(err, &f) {
		return ioError(err)
	}
	switch f.Kind {
	case script.NotFound:
		return &fault.Error{Code: fault.FSNotFound, Err: fs.ErrNotExist}
	case script.NotDirectory:
		return &fault.Error{Code: fault.FSNotDirectory, Err: f}
	case script.NotRegular, script.Odd:
		return &fault.Error{Code: fault.FSNotRegularFile, Err: f}
	case script.TooLarge:
		return &fault.Error{Code: fault.FSTooLarge, Err: f}
	case script.Exists:
		return &fault.Error{Code: fault.FSNotObserved, Err: f}
	case script.Stale:
		return &fault.Error{Code: fault.FSStaleVersion}
	case script.Gone:
		return &fault.Error{Code: fault.FSStaleVersion, Err: fs.ErrNotExist}
	case script.Link, script.Lost, script.Short:
		return &fault.Error{Code: fault.FSIOError, Err: f}
	}
	if errno := f.Unwrap(); errno != nil {
		return errno
	}
	return &fault.Error{Code: fault.FSIOError, Err: f}
}

// ioError gives a lost connection the code of the file contract.
func ioError(err error) error {
	if fault.Is(err, fault.ExecTransportLost) {
		return &fault.Error{Code: fault.FSIOError, Message: err.Error(), Err: err, Retry: fault.RetrySafe}
	}
	return err
}

// List gives the entries of a directory in one answer.
func (d *shellFiles) List(ctx context.Context, ref remotefs.Ref) (string, []remotefs.Entry, error) {
	defer d.sh.prepare()
	c := script.List(ref.Path, ref.Canonical)
	var key string
	var children []script.Child
	err := d.sh.ask(ctx, c, func(a *script.Answer) (err error) {
		key, children, err = script.ReadList(a, c)
		return err
	})
	if err != nil {
		return ref.Path, nil, translate(err)
	}
	entries := make([]remotefs.Entry, len(children))
	for i, child := range children {
		entries[i] = remotefs.Entry{Name: child.Name, Key: child.Key, Info: info(child.Facts, "")}
	}
	return key, entries, nil
}

// Open begins to read a file. Facts and content come from one opened file.
func (d *shellFiles) Open(ctx context.Context, ref remotefs.Ref, limit int64) (remotefs.File, error) {
	f := &shellFile{ctx: ctx}
	c := script.Read(ref.Path, ref.Canonical, limit)
	err := d.open(ctx, c, f)
	if errors.Is(err, script.ErrNoMarker) && !d.sh.plain.Load() && ctx.Err() == nil {
		d.sh.plain.Store(true)
		err = d.open(ctx, c, f)
	}
	if err != nil {
		return nil, translate(err)
	}
	return f, nil
}

func (d *shellFiles) open(ctx context.Context, c script.Call, f *shellFile) error {
	s, a, err := d.sh.start(ctx, c)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, s.close)
	e, err := script.ReadStat(a, c)
	if err != nil {
		defer s.close()
		stop()
		return d.sh.explain(ctx, s, err)
	}
	f.session, f.answer, f.stop, f.key, f.info = s, a, stop, e.Key, info(e.Facts, "")
	d.sh.prepare()
	return nil
}

// shellFile is a file that is being read.
type shellFile struct {
	ctx     context.Context
	session *session
	answer  *script.Answer
	stop    func() bool
	key     string
	info    *remotefs.Info
	done    bool
}

// Key is the canonical path.
func (f *shellFile) Key() string { return f.key }

// Info is that of the opened file.
func (f *shellFile) Info() *remotefs.Info { return f.info }

// Read gives content. The end of the stream is the end of the file only if the
// program says so by its status; a lost connection looks the same.
func (f *shellFile) Read(p []byte) (int, error) {
	n, err := f.answer.Read(p)
	if !errors.Is(err, io.EOF) || f.done {
		return n, err
	}
	f.done = true
	if end := f.session.end(f.ctx); end != nil {
		var bad *endedBadly
		if errors.As(end, &bad) {
			end = &fault.Error{Code: fault.FSIOError, Err: end}
		}
		return n, ioError(end)
	}
	return n, io.EOF
}

// Close ends the reading.
func (f *shellFile) Close() error {
	f.stop()
	f.session.close()
	return nil
}

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
	defer d.sh.prepare()
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
	up, err := d.upload(ctx, e, w, content)
	if err != nil {
		return remotefs.WriteResult{}, err
	}
	if ctx.Err() != nil {
		d.discard(up.Folder)
		return remotefs.WriteResult{}, context.Cause(ctx)
	}
	got, err := d.publish(e.Key, up, w)
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

// upload stages content. When the content fails, or the caller cancels, what is
// staged is removed.
func (d *shellFiles) upload(ctx context.Context, e script.Entry, w remotefs.WriteSpec, content io.Reader) (script.Uploaded, error) {
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
	if err == nil && (up.Size != sum.Len() || up.Sum != sum.String()) {
		err = &script.Failure{Kind: script.Short}
	}
	if err != nil {
		d.discard(script.Folder(e.Key, c.Nonce))
		var content *contentFailed
		if errors.As(err, &content) {
			return up, content.error
		}
		return up, translate(err)
	}
	return up, nil
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
func (d *shellFiles) publish(key string, up script.Uploaded, w remotefs.WriteSpec) (remotefs.WriteResult, error) {
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
		return d.settle(ctx, settling{key, up.Folder, true, up.Size, up.Sum}, err)
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

// settling is a write whose answer was lost.
type settling struct {
	key, folder string
	complete    bool // all of the content may have arrived
	size        int64
	sum         string
}

// settle looks what became of a write whose connection was lost around its
// commit (S-13). It never publishes again.
func (d *shellFiles) settle(ctx context.Context, w settling, cause error) (remotefs.WriteResult, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*d.sh.dialer.settings.ConnectTimeout)
	defer cancel()
	c := script.Settle(w.key, w.folder)
	var now script.Settled
	err := d.sh.ask(ctx, c, func(a *script.Answer) (err error) {
		now, err = script.ReadSettle(a, c)
		return err
	})
	switch {
	case err == nil && !now.Staged && now.Facts != nil && now.Size == w.size && now.Sum == w.sum:
		return remotefs.WriteResult{Key: w.key, Operation: remotefs.OpUpdate, Version: now.Facts.Version, Bytes: w.size}, nil
	case !w.complete, err == nil && now.Staged:
		return remotefs.WriteResult{}, &fault.Error{Code: fault.FSIOError, Retry: fault.RetrySafe, Err: cause,
			Message: "cannot write " + quoted(w.key) + ": " + cause.Error() + " before the commit; nothing has changed"}
	}
	return remotefs.WriteResult{}, &fault.Error{Code: fault.FSIOError, Retry: fault.RetryUnknown, Err: cause,
		Message: "cannot write " + quoted(w.key) + ": " + cause.Error() + "; whether the write took effect is unknown",
		Hint:    "read the file before trying again"}
}

func quoted(s string) string { return `"` + s + `"` }

// talk runs a call that takes content. ctx counts until committed is called.
func (sh *shell) talk(ctx context.Context, c script.Call, f func(s *session, a *script.Answer, committed func()) error) error {
	s, a, err := sh.start(ctx, c)
	if err != nil {
		return err
	}
	defer s.close()
	var once sync.Once
	over := make(chan struct{})
	defer close(over)
	stop := context.AfterFunc(ctx, func() {
		// Whoever sends content looks at ctx himself and lets the program clean up;
		// one that is stuck is cut off.
		select {
		case <-over:
		case <-time.After(time.Second):
			s.close()
		}
	})
	committed := func() { once.Do(func() { stop() }) }
	defer committed()
	err = f(s, a, committed)
	if err != nil {
		s.giveUp()
	}
	var known *fault.Error
	var content *contentFailed
	var refused *script.Failure
	if err == nil || errors.As(err, &known) || errors.As(err, &refused) || errors.As(err, &content) {
		return err
	}
	if ctx.Err() == nil && errors.Is(err, script.ErrNoMarker) && !sh.plain.Load() {
		sh.plain.Store(true)
		return sh.talk(ctx, c, f)
	}
	if end := s.end(context.Background()); errors.Is(end, errLost) && ctx.Err() == nil {
		return end
	}
	return sh.explain(ctx, s, err)
}
