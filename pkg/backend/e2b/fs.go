package e2b

import (
	"context"
	"io/fs"
	"path"
	"syscall"

	"github.com/afield-dev/afield/pkg/backend/e2b/wire"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// Driver is the files half: it implements remotefs.Driver and
// remotefs.Writer.
type Driver struct{ session *session }

// Facts gives what is true of a sandbox's files. A change by others that keeps
// size, mode and the nanosecond of the time is not seen by a version.
func (d *Driver) Facts() remotefs.Facts {
	return remotefs.Facts{
		Backend: name, Cwd: d.session.cfg.cwd,
		FollowsDangling: true, IgnoresModes: true, StagesApart: true, LosesOwner: true, TextNames: true,
	}
}

// Canon gives what realpath -m would: every link followed, also one that leads
// nowhere, and missing components kept.
func (d *Driver) Canon(ctx context.Context, p string) (string, error) {
	l, err := d.look(ctx, p)
	if err != nil {
		return "", err
	}
	if l.blocked {
		return "", syscall.ENOTDIR
	}
	return l.key, nil
}

// Stat follows links. A path that ends in a link costs a second round trip:
// the answer for a link has the size and time of the link itself.
func (d *Driver) Stat(ctx context.Context, ref remotefs.Ref) (string, *remotefs.Info, error) {
	key, e, err := d.stat(ctx, ref)
	if err != nil || e == nil {
		return key, nil, err
	}
	return key, infoOf(key, e), nil
}

// stat gives the key and the entry behind it; absent: nil.
func (d *Driver) stat(ctx context.Context, ref remotefs.Ref) (string, *wire.EntryInfo, error) {
	if ref.Canonical {
		e, err := d.entry(ctx, ref.Path)
		if err != nil || e == nil || !e.IsLink() {
			return ref.Path, e, err
		}
		// A link has taken the place of the file that the key named.
	}
	l, err := d.look(ctx, ref.Path)
	if err != nil {
		return "", nil, err
	}
	if !l.again {
		return l.key, l.entry, nil
	}
	e, err := d.entry(ctx, l.key)
	return l.key, e, err
}

// Lstat does not follow the last component: one round trip, and one more for the
// text of a link.
func (d *Driver) Lstat(ctx context.Context, p string) (string, *remotefs.Info, error) {
	if p == "/" {
		return d.Stat(ctx, remotefs.Ref{Path: p})
	}
	entries, err := d.prefixes(ctx, p)
	if err != nil {
		return "", nil, err
	}
	parent, err := d.follow(ctx, path.Dir(p), entries[:len(entries)-1])
	if err != nil {
		return "", nil, err
	}
	key := path.Join(parent.key, path.Base(p))
	e := entries[len(entries)-1]
	if e == nil {
		return key, nil, nil
	}
	in := linkInfo(key, e)
	if e.IsLink() {
		in.LinkTarget = d.readlink(ctx, key)
	}
	return key, in, nil
}

// readlink gives the text of a link, "" if it cannot be told. The daemon tells
// only where a link leads in the end, so it takes a process.
func (d *Driver) readlink(ctx context.Context, p string) string {
	r, err := d.session.run(ctx, "readlink", "-n", "--", p)
	if err != nil || !r.end.Exited || r.end.ExitCode != 0 {
		return ""
	}
	return string(r.stdout)
}

// entry looks at one path; absent, also below something that is no directory:
// nil. It is one round trip.
func (d *Driver) entry(ctx context.Context, p string) (*wire.EntryInfo, error) {
	e, err := d.statOne(ctx, p)
	if err == nil || !isAbsent(err) && !isInternal(err) {
		return e, fileError(d.session.diagnose(err))
	}
	if isAbsent(err) {
		return nil, nil
	}
	// The daemon does not name a path through a file: look at its parents.
	l, lookErr := d.look(ctx, p)
	if lookErr != nil || l.blocked {
		return nil, lookErr
	}
	return nil, fileError(err)
}

func (d *Driver) statOne(ctx context.Context, p string) (*wire.EntryInfo, error) {
	var e *wire.EntryInfo
	err := d.session.use(ctx, func(c *wire.Client) (err error) {
		e, err = c.Stat(ctx, p)
		return err
	})
	return e, err
}

// notThere is the error of reading or listing something absent.
func notThere(blocked bool) error {
	if blocked {
		return syscall.ENOTDIR
	}
	return fs.ErrNotExist
}
