package e2b

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/afield-dev/afield/pkg/backend/e2b/wire"
)

// looked is what one round of looks at a path gave.
type looked struct {
	key string
	// entry is what stands at key; nil if there is nothing, or if again is set.
	entry *wire.EntryInfo
	// again: the last component was a link, so that key must be looked at.
	again bool
	// blocked: a component in the middle is there and is no directory.
	blocked bool
}

// look resolves a path by one round of parallel looks at all its prefixes, and
// a process where a link leads nowhere.
func (d *Driver) look(ctx context.Context, p string) (looked, error) {
	entries, err := d.prefixes(ctx, p)
	if err != nil {
		return looked{}, err
	}
	return d.follow(ctx, p, entries)
}

// prefixesOf gives "/", or every prefix of a clean path but "/".
func prefixesOf(p string) []string {
	if p == "/" {
		return []string{"/"}
	}
	var out []string
	for i := 1; i < len(p); i++ {
		if p[i] == '/' {
			out = append(out, p[:i])
		}
	}
	return append(out, p)
}

// prefixes looks at every prefix of a path at the same time; what is absent, or
// below something that is no directory, is nil.
func (d *Driver) prefixes(ctx context.Context, p string) ([]*wire.EntryInfo, error) {
	if !utf8.ValidString(p) {
		return nil, fmt.Errorf("the path is not valid UTF-8, and the sandbox's file service takes no other")
	}
	paths := prefixesOf(p)
	entries, errs := make([]*wire.EntryInfo, len(paths)), make([]error, len(paths))
	each(len(paths), func(i int) { entries[i], errs[i] = d.statOne(ctx, paths[i]) })
	for i, err := range errs {
		switch {
		case err == nil:
		case isAbsent(err):
			return entries, nil // so is all below it
		case isInternal(err) && i > 0 && entries[i-1] != nil && entries[i-1].Type != wire.TypeDirectory:
			return entries, nil
		default:
			return nil, fileError(d.session.diagnose(err))
		}
	}
	return entries, nil
}

// follow gives the identity of p from the looks at its prefixes: the deepest
// link among them is fully resolved by the server, and what stands below it is
// known to hold no link.
func (d *Driver) follow(ctx context.Context, p string, entries []*wire.EntryInfo) (looked, error) {
	if len(entries) == 0 {
		return looked{key: "/"}, nil
	}
	last := len(entries) - 1
	l := looked{key: p, entry: entries[last]}
	for i, e := range entries {
		if e != nil && i < last && entries[i+1] == nil && e.Type != wire.TypeDirectory && !e.Dangles() {
			l.blocked = true
		}
	}
	for i := last; i >= 0; i-- {
		e := entries[i]
		if e == nil || !e.IsLink() {
			continue
		}
		if e.Dangles() {
			return d.realpath(ctx, p)
		}
		prefix := prefixesOf(p)[i]
		l.key = path.Join(*e.SymlinkTarget, strings.TrimPrefix(p[len(prefix):], "/"))
		if i == last {
			l.entry, l.again = nil, true
		}
		break
	}
	return l, nil
}

// realpath asks the sandbox's own tool where a dangling link leads.
func (d *Driver) realpath(ctx context.Context, p string) (looked, error) {
	r, err := d.session.run(ctx, "realpath", "-mz", "--", p)
	if err != nil {
		return looked{}, fileError(d.session.diagnose(err))
	}
	if !r.end.Exited || r.end.ExitCode != 0 {
		return looked{}, fmt.Errorf("cannot resolve a link that leads nowhere: %s", r.said())
	}
	key, err := oneRecord(r.stdout)
	return looked{key: key, again: true}, err
}

// oneRecord takes the answer of realpath -z: exactly one absolute path, ended by
// the only NUL, in UTF-8 (remotefs.md 2.4).
func oneRecord(out []byte) (string, error) {
	p, ok := bytes.CutSuffix(out, []byte{0})
	if !ok || bytes.IndexByte(p, 0) >= 0 || !utf8.Valid(p) || !path.IsAbs(string(p)) {
		return "", fmt.Errorf("the sandbox's realpath gave no single absolute path")
	}
	return string(p), nil
}

// maxTogether bounds how many requests of one round are under way.
const maxTogether = 48

// each calls f for 0 to n-1 at the same time, at most maxTogether at once.
func each(n int, f func(i int)) {
	if n == 1 {
		f(0)
		return
	}
	var wg sync.WaitGroup
	slots := make(chan struct{}, maxTogether)
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			f(i)
			<-slots
		})
	}
	wg.Wait()
}
