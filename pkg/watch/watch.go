// Package watch tells what changes below directories: by the kernel's own notices
// on this machine, elsewhere by looking again and again and comparing.
package watch

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// Kind says what happened.
type Kind string

// The kinds. Ready comes once, when everything that happens from then on is seen;
// Overflow says that events were lost and everything was looked through again.
const (
	Ready    Kind = "ready"
	Created  Kind = "created"
	Modified Kind = "modified" // content, mode or times
	Removed  Kind = "removed"
	Renamed  Kind = "renamed"
	Overflow Kind = "overflow"
)

// Event is one change. Paths are absolute, raw bytes; From is the old name.
type Event struct {
	Kind Kind
	Path string
	From string
	Type remotefs.Type // "" = not known
}

// Root is a directory to watch with all that is below it, or one entry of it.
type Root struct {
	Dir  string // key
	Only string // name of the one entry; "" = all
}

// known is what a look found.
type known map[string]remotefs.Node

// scan looks through a root.
func scan(ctx context.Context, walker remotefs.Arranger, r Root) (known, error) {
	found := known{}
	o := remotefs.WalkOptions{}
	if r.Only != "" {
		o.Depth = 1
	}
	err := walker.Walk(ctx, r.Dir, o, func(n remotefs.Node) error {
		if n.Path != "" && (r.Only == "" || n.Path == r.Only) {
			found[path.Join(r.Dir, n.Path)] = remotefs.Node{Type: n.Type, State: n.State}
		}
		return nil
	})
	if fault.Is(err, fault.FSNotFound) || errors.Is(err, fs.ErrNotExist) {
		return found, nil // it went away, and with it everything in it
	}
	return found, err
}

// lacks reports whether something of an earlier look is not there. A look takes
// time: what is renamed meanwhile can be missed under both names, so that a look
// that lacks something is repeated.
func (k known) lacks(before known) bool {
	for p := range before {
		if _, there := k[p]; !there {
			return true
		}
	}
	return false
}

// identity is the part of a state that a rename keeps.
func identity(n remotefs.Node) string {
	id, _, _ := strings.Cut(n.State, ":")
	return string(n.Type) + ":" + id
}

// compare gives what happened between two looks, in byte order of the paths.
// Something that is gone and something new with its identity are one rename; what
// was inside goes with a directory.
func compare(before, after known) []Event {
	var events []Event
	gone := map[string]string{}
	for p, n := range before {
		if _, still := after[p]; !still {
			gone[identity(n)] = p
		}
	}
	from := map[string]string{} // new names of what was renamed
	for p, n := range after {
		if old, ok := gone[identity(n)]; ok && before[p].State == "" {
			from[p] = old
			delete(gone, identity(n))
		}
	}
	for p, n := range after {
		old, there := before[p]
		switch {
		case from[p] != "":
			if from[path.Dir(p)] == "" || path.Join(from[path.Dir(p)], path.Base(p)) != from[p] {
				events = append(events, Event{Renamed, p, from[p], n.Type})
			}
		case !there:
			events = append(events, Event{Created, p, "", n.Type})
		case identity(old) != identity(n), n.State != old.State && n.Type != remotefs.TypeDirectory:
			events = append(events, Event{Modified, p, "", n.Type})
		}
	}
	for _, p := range gone {
		events = append(events, Event{Removed, p, "", before[p].Type})
	}
	slices.SortFunc(events, func(a, b Event) int { return strings.Compare(a.Path, b.Path) })
	return events
}

// Poll looks every interval until ctx ends, and gives emit what changed. It
// returns the error of emit or of a look, or nil when ctx has ended.
func Poll(ctx context.Context, walker remotefs.Arranger, roots []Root, interval time.Duration, emit func(Event) error) error {
	last := make([]known, len(roots))
	for i, r := range roots {
		var err error
		if last[i], err = scan(ctx, walker, r); err != nil {
			return ended(ctx, err)
		}
	}
	if err := emit(Event{Kind: Ready}); err != nil {
		return err
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		for i, r := range roots {
			now, err := scan(ctx, walker, r)
			if err == nil && now.lacks(last[i]) {
				now, err = scan(ctx, walker, r)
			}
			if err != nil {
				return ended(ctx, err)
			}
			for _, e := range compare(last[i], now) {
				if err := emit(e); err != nil {
					return err
				}
			}
			last[i] = now
		}
	}
}

// ended takes away an error that the end of ctx explains.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
