package transfer

import (
	"context"
	"errors"
	"strings"
)

// plan is what is to be done.
type plan struct {
	send   []entry
	remove []string
	dirs   []entry // directories that are new or whose modes and times may be wrong
}

// plan compares both sides.
func (r *run) plan(ctx context.Context, src, dst Place) (*plan, error) {
	from, to, err := r.both(ctx, src, dst)
	if err != nil {
		return nil, err
	}
	same, err := r.sameContent(ctx, src, dst, from, to)
	if err != nil {
		return nil, err
	}
	p := &plan{}
	wrong := false // some directory differs by itself
	gone := ""     // what is below it goes with it
	for i, j := 0, 0; i < len(from) || j < len(to); {
		switch {
		case j == len(to) || i < len(from) && from[i].path < to[j].path:
			wrong = r.compare(p, &from[i], nil, false) || wrong
			i++
		case i == len(from) || to[j].path < from[i].path:
			if gone == "" || !strings.HasPrefix(to[j].path, gone) {
				if r.o.Delete && to[j].path != "" {
					gone = to[j].path + "/"
					r.deletes(p, &to[j])
				}
			}
			j++
		default:
			if to[j].kind == 'd' && from[i].kind != 'd' && r.o.Delete {
				gone = to[j].path + "/"
			}
			wrong = r.compare(p, &from[i], &to[j], same[from[i].path]) || wrong
			i, j = i+1, j+1
		}
	}
	if !wrong && len(p.send) == 0 && len(p.remove) == 0 {
		p.dirs = nil
	}
	return p, nil
}

// both lists both sides at the same time.
func (r *run) both(ctx context.Context, src, dst Place) (from, to []entry, err error) {
	var far error
	done := make(chan struct{})
	go func() {
		defer close(done)
		to, far = r.kept(ctx, dst)
	}()
	from, err = r.kept(ctx, src)
	<-done
	return from, to, errors.Join(err, far)
}

// kept lists a side in order, without what the filters leave out.
func (r *run) kept(ctx context.Context, side Place) ([]entry, error) {
	list, err := side.list(ctx)
	if err != nil {
		return nil, err
	}
	sortEntries(list)
	if r.o.Keep == nil {
		return list, nil
	}
	out := ""
	kept := list[:0]
	for _, e := range list {
		if out != "" && strings.HasPrefix(e.path, out) {
			continue
		}
		if e.path == "" || r.o.Keep(e.path, e.kind == 'd') {
			kept = append(kept, e)
		} else if e.kind == 'd' {
			out = e.path + "/"
		}
	}
	return kept, nil
}

// deletes removes an entry of the target.
func (r *run) deletes(p *plan, e *entry) {
	p.remove = append(p.remove, e.path)
	r.event(Event{Kind: Deleted, Path: e.path, Type: e.typ()})
}

// compare decides about one entry of the source; b is that of the target, or nil.
// It says whether a directory is missing or differs.
func (r *run) compare(p *plan, a, b *entry, same bool) (wrong bool) {
	switch a.kind {
	case 'e':
		r.skip(a, a.link)
		return false
	case 'o':
		r.skip(a, "it is no file, directory or link")
		return false
	}
	if b != nil && (a.kind == 'd') != (b.kind == 'd') {
		if !r.o.Delete {
			r.skip(a, "something of another type is in the way; --delete replaces it")
			return false
		}
		r.deletes(p, b)
		b = nil
	}
	if a.kind == 'd' {
		p.dirs = append(p.dirs, *a)
		return b == nil || a.mode != b.mode || a.mtime != b.mtime
	}
	if b != nil && a.kind == b.kind && unchanged(a, b) && (!r.o.Checksum || a.kind == 'l' || same) {
		r.sum.Unchanged++
		return false
	}
	if r.o.DryRun {
		r.event(Event{Kind: Sent, Path: a.path, Type: a.typ(), Bytes: a.size})
	}
	p.send = append(p.send, *a)
	return false
}

// unchanged compares facts.
func unchanged(a, b *entry) bool {
	if a.kind == 'l' {
		return a.link == b.link && a.mtime == b.mtime
	}
	return a.size == b.size && a.mtime == b.mtime && a.mode == b.mode
}

// sameContent compares, with Checksum, the content of files of one size.
func (r *run) sameContent(ctx context.Context, src, dst Place, from, to []entry) (map[string]bool, error) {
	if !r.o.Checksum {
		return nil, nil
	}
	sizes := map[string]int64{}
	for i := range to {
		if to[i].kind == 'f' {
			sizes[to[i].path] = to[i].size
		}
	}
	var paths []string
	for i := range from {
		if size, ok := sizes[from[i].path]; ok && from[i].kind == 'f' && size == from[i].size {
			paths = append(paths, from[i].path)
		}
	}
	if len(paths) == 0 {
		return nil, nil
	}
	a, err := src.sums(ctx, paths)
	if err != nil {
		return nil, err
	}
	b, err := dst.sums(ctx, paths)
	if err != nil {
		return nil, err
	}
	same := map[string]bool{}
	for i, p := range paths {
		same[p] = a[i] != "" && a[i] == b[i]
	}
	return same, nil
}
