package ssh

import (
	"context"
	"io/fs"
	"path"
	"sync"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// List gives the entries; those that are links are looked at in one burst.
func (d *sftpFiles) List(ctx context.Context, ref remotefs.Ref) (string, []remotefs.Entry, error) {
	key, info, err := d.Stat(ctx, ref)
	switch {
	case err != nil:
		return key, nil, err
	case info == nil:
		return key, nil, &fault.Error{Code: fault.FSNotFound, Err: fs.ErrNotExist}
	case info.Type != remotefs.TypeDirectory:
		return key, nil, &fault.Error{Code: fault.FSNotDirectory}
	}
	d.hub.trace("readdir", 2, 0)
	list, err := d.packets.readDir(ctx, key)
	if err != nil {
		return key, nil, sftpError(err)
	}
	entries := make([]remotefs.Entry, 0, len(list))
	for i := range list {
		if n := &list[i]; n.name != "." && n.name != ".." {
			entries = append(entries, remotefs.Entry{Name: n.name, Key: path.Join(key, n.name), Info: weakInfo(&n.facts)})
		}
	}
	d.follow(ctx, entries)
	return key, entries, nil
}

// follow replaces the facts of links by those of what they lead to: nothing for
// nowhere, and for a loop.
func (d *sftpFiles) follow(ctx context.Context, entries []remotefs.Entry) {
	var burst sync.WaitGroup
	room := make(chan struct{}, 64)
	for i := range entries {
		e := &entries[i]
		if e.Info.Type != remotefs.TypeSymlink {
			continue
		}
		room <- struct{}{}
		burst.Go(func() {
			defer func() { <-room }()
			key, info, err := d.Stat(ctx, remotefs.Ref{Path: e.Key})
			if e.Info = info; err == nil {
				e.Key = key
			}
		})
	}
	burst.Wait()
}
