package e2b

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"sync"
	"time"

	"github.com/afield-dev/afield/pkg/backend/e2b/wire"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// togetherMax is the largest content that is sent together with the looks at
// its target. More is sent when they have shown that it is wanted.
const togetherMax = 1 << 20

// cleanTimeout bounds the removal of what a failed write has left.
const cleanTimeout = 20 * time.Second

// staged is content in the private folder of the sandbox.
type staged struct {
	path string
	mark string // the version mark that was asked for
	kept bool   // the sandbox keeps marks
	size int64
}

// Write stores content in two steps of one round trip each: staging together
// with the looks at the target, and publishing. Content above 1 MiB is staged
// in a step of its own, and so is the reading of what is replaced if it is
// asked for.
func (d *Driver) Write(ctx context.Context, ref remotefs.Ref, w remotefs.WriteSpec) (remotefs.WriteResult, error) {
	set, err := d.session.prepared(ctx)
	if err != nil {
		return remotefs.WriteResult{}, fileError(err)
	}
	st := &staged{path: set.Root + "/st/" + token(), mark: token()}
	l, err := d.stageBeside(ctx, ref, st, w)
	if err == nil {
		var res remotefs.WriteResult
		if res, err = d.place(ctx, l, st, w); err == nil {
			return res, nil
		}
	}
	d.discard(st)
	return remotefs.WriteResult{}, err
}

// stageBeside sends the content and looks at the target, at the same time where
// the content is small.
func (d *Driver) stageBeside(ctx context.Context, ref remotefs.Ref, st *staged, w remotefs.WriteSpec) (looked, error) {
	if w.Size < 0 || w.Size > togetherMax {
		l, err := d.target(ctx, ref, w)
		if err != nil {
			return l, err
		}
		return l, d.upload(ctx, st, func() (io.Reader, int64) { return w.Content, w.Size })
	}
	content, err := io.ReadAll(w.Content)
	if err != nil {
		return looked{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var l looked
	var lookErr, sendErr error
	each(2, func(i int) {
		if i == 0 {
			if l, lookErr = d.target(ctx, ref, w); lookErr != nil {
				cancel() // what is on its way is not wanted
			}
			return
		}
		sendErr = d.upload(ctx, st, func() (io.Reader, int64) { return bytes.NewReader(content), int64(len(content)) })
	})
	if lookErr != nil {
		return l, lookErr
	}
	return l, sendErr
}

// target looks at the file and applies type and intent to what is there
// (remotefs.md 7, steps 2 and 3).
func (d *Driver) target(ctx context.Context, ref remotefs.Ref, w remotefs.WriteSpec) (looked, error) {
	l, err := d.behind(ctx, ref)
	if err != nil {
		return l, err
	}
	e := l.entry
	switch {
	case l.blocked:
		return l, &fault.Error{Code: fault.FSNotFound}
	case e != nil && (e.IsLink() || e.Type != wire.TypeFile):
		return l, &fault.Error{Code: fault.FSNotRegularFile}
	case e != nil && w.Intent == remotefs.IntentCreate:
		return l, &fault.Error{Code: fault.FSNotObserved}
	case e == nil && w.Intent == remotefs.IntentReplace:
		return l, &fault.Error{Code: fault.FSStaleVersion, Err: fs.ErrNotExist}
	case w.Intent == remotefs.IntentReplace && version(l.key, e) != w.Version:
		return l, &fault.Error{Code: fault.FSStaleVersion}
	}
	return l, nil
}

// upload stores content under the staged name. body is asked again if the
// sandbox has to be addressed anew, which content that can be read only once
// never needs: the target was looked at before it.
func (d *Driver) upload(ctx context.Context, st *staged, body func() (io.Reader, int64)) error {
	src := &counted{}
	err := d.session.use(ctx, func(c *wire.Client) error {
		r, size := body()
		src.reset(r)
		info, err := c.Upload(ctx, st.path, src, size, map[string]string{versionKey: st.mark})
		st.kept = info.Metadata[versionKey] == st.mark
		return err
	})
	if src.failed() != nil {
		return src.failed() // the content's own error, not what the connection made of it
	}
	st.size = src.count()
	return fileError(d.session.diagnose(err))
}

// counted counts what is read and remembers the error of the source.
type counted struct {
	mu  sync.Mutex
	src io.Reader
	n   int64
	err error
}

func (c *counted) reset(r io.Reader) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.src, c.n, c.err = r, 0, nil
}

func (c *counted) Read(p []byte) (int, error) {
	c.mu.Lock()
	src := c.src
	c.mu.Unlock()
	n, err := src.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		c.err = err
	}
	return n, err
}

func (c *counted) count() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

func (c *counted) failed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// place takes the lock, reads what is replaced if that is asked for, and
// publishes.
func (d *Driver) place(ctx context.Context, l looked, st *staged, w remotefs.WriteSpec) (remotefs.WriteResult, error) {
	if err := w.Lock(ctx, l.key); err != nil {
		return remotefs.WriteResult{}, err
	}
	res := remotefs.WriteResult{Key: l.key, Operation: remotefs.OpCreate, Bytes: st.size}
	if l.entry != nil {
		res.Operation = remotefs.OpUpdate
		if w.BasisMax > 0 && int64(l.entry.Size) < w.BasisMax {
			var err error
			if res.Before, err = d.before(ctx, l, w.BasisMax); err != nil {
				return res, err
			}
		}
	}
	if ctx.Err() != nil {
		return res, context.Cause(ctx)
	}
	var err error
	res.Version, err = d.publish(l, st, w)
	return res, err
}

// before reads what is about to be replaced; nil if it is not smaller than max
// any more.
func (d *Driver) before(ctx context.Context, l looked, max int64) ([]byte, error) {
	f, _, err := d.download(ctx, l, max)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, max))
	if err != nil || int64(len(content)) != int64(l.entry.Size) {
		return nil, err
	}
	return content, nil
}

// discard removes staged content; an absent one is fine.
func (d *Driver) discard(st *staged) {
	ctx, cancel := context.WithTimeout(context.Background(), cleanTimeout)
	defer cancel()
	err := d.session.diagnose(d.remove(ctx, st.path))
	if err != nil && !fault.Is(err, fault.BackendWorldGone) { // with the sandbox it goes too
		d.session.log.Warn("staged content was not removed", "path", st.path, "reason", err)
	}
}

func (d *Driver) remove(ctx context.Context, p string) error {
	return d.session.use(ctx, func(c *wire.Client) error {
		return c.Call(ctx, wire.MethodRemove, wire.PathRequest{Path: p}, nil)
	})
}
