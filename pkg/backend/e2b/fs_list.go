package e2b

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"unicode/utf8"

	"github.com/afield-dev/afield/pkg/backend/e2b/wire"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// List asks for the names together with the identity of the directory, and then
// for all that links lead to: two round trips at most, whatever the number of
// entries.
func (d *Driver) List(ctx context.Context, ref remotefs.Ref) (string, []remotefs.Entry, error) {
	var l looked
	var lookErr, listErr error
	var listed wire.ListDirResponse
	each(2, func(i int) {
		if i == 0 {
			l, lookErr = d.lookAt(ctx, ref)
			return
		}
		listErr = d.session.use(ctx, func(c *wire.Client) error {
			listed = wire.ListDirResponse{}
			return c.Call(ctx, wire.MethodListDir, wire.ListDirRequest{Path: ref.Path, Depth: 1}, &listed)
		})
	})
	if lookErr != nil {
		return "", nil, lookErr
	}
	if listErr == nil {
		entries, err := d.entries(ctx, l.key, listed.Entries)
		return l.key, entries, err
	}
	return d.listFailed(ctx, ref, l, listErr)
}

// lookAt is look, or for a key one look at it.
func (d *Driver) lookAt(ctx context.Context, ref remotefs.Ref) (looked, error) {
	if !ref.Canonical {
		return d.look(ctx, ref.Path)
	}
	e, err := d.entry(ctx, ref.Path)
	return looked{key: ref.Path, entry: e}, err
}

// listFailed tells why there is no listing by what stands at the key, and takes
// the slow way where a name is not UTF-8: the server's answer cannot hold one.
func (d *Driver) listFailed(ctx context.Context, ref remotefs.Ref, l looked, err error) (string, []remotefs.Entry, error) {
	if ctx.Err() != nil {
		return "", nil, err
	}
	var e *wire.Error
	if !errors.As(err, &e) || refused(err) != nil {
		return "", nil, fileError(d.session.diagnose(err))
	}
	at := l.entry
	if l.again {
		var lookErr error
		if at, lookErr = d.entry(ctx, l.key); lookErr != nil {
			return "", nil, lookErr
		}
	}
	switch {
	case at == nil:
		return "", nil, notThere(l.blocked)
	case at.Type != wire.TypeDirectory:
		return "", nil, &fault.Error{Code: fault.FSNotDirectory}
	case !isInternal(err):
		return "", nil, fileError(err)
	}
	entries, err := d.slowList(ctx, l.key)
	return l.key, entries, err
}

// entries gives the entries of a listing; links are looked at behind.
func (d *Driver) entries(ctx context.Context, dir string, found []wire.EntryInfo) ([]remotefs.Entry, error) {
	out := make([]remotefs.Entry, len(found))
	var links []int
	for i := range found {
		e := &found[i]
		out[i] = remotefs.Entry{Name: e.Name, Key: path.Join(dir, e.Name)}
		switch {
		case !e.IsLink():
			out[i].Info = infoOf(out[i].Key, e)
		case !e.Dangles():
			out[i].Key = *e.SymlinkTarget
			links = append(links, i)
		}
	}
	errs := make([]error, len(links))
	each(len(links), func(n int) {
		one := &out[links[n]]
		var e *wire.EntryInfo
		if e, errs[n] = d.entry(ctx, one.Key); e != nil {
			one.Info = infoOf(one.Key, e)
		}
	})
	return out, errors.Join(errs...)
}

// slowList lists by a process, which can say every name, and looks at each name
// that the file service can take.
func (d *Driver) slowList(ctx context.Context, dir string) ([]remotefs.Entry, error) {
	r, err := d.session.run(ctx, "find", dir+"/", "-mindepth", "1", "-maxdepth", "1", "-print0")
	if err != nil {
		return nil, fileError(d.session.diagnose(err))
	}
	if !r.end.Exited || r.end.ExitCode != 0 {
		if r.denied() {
			return nil, &fault.Error{Code: fault.FSPermissionDenied}
		}
		return nil, fmt.Errorf("%s", r.said())
	}
	var out []remotefs.Entry
	var known []int
	for _, raw := range bytes.Split(bytes.TrimSuffix(r.stdout, []byte{0}), []byte{0}) {
		name := string(raw[bytes.LastIndexByte(raw, '/')+1:])
		if utf8.ValidString(name) {
			known = append(known, len(out))
		}
		out = append(out, remotefs.Entry{Name: name, Key: path.Join(dir, name)})
	}
	found, errs := make([]*wire.EntryInfo, len(known)), make([]error, len(known))
	each(len(known), func(n int) { found[n], errs[n] = d.entry(ctx, out[known[n]].Key) })
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	present, at := make([]wire.EntryInfo, 0, len(known)), make([]int, 0, len(known))
	for n, e := range found {
		if e != nil {
			present, at = append(present, *e), append(at, known[n])
		}
	}
	described, err := d.entries(ctx, dir, present)
	for n, e := range described {
		out[at[n]] = e
	}
	return out, err
}
