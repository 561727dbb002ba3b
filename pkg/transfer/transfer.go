// Package transfer moves trees between two places, this host and a world: with
// modes, times and links as links, unchanged files passed over, every file
// compared by its SHA-256 and published in one step. Archives of tar travel
// between the sides, one process of the world a batch.
//
// Owners, hard links, extended attributes, devices, sockets and FIFOs are not
// carried over; what is left out is told as an event. Nothing is forced to the
// disk: after a crash of a machine run it again.
package transfer

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// Options are how a transfer is done. The zero value is complete.
type Options struct {
	// Checksum compares files of one size by content instead of time.
	Checksum bool
	// Delete removes what the source lacks.
	Delete bool
	// DryRun changes nothing; the events say what would be done.
	DryRun bool
	// Keep, if set, says which paths take part; a directory that does not keeps
	// what is below it out as well. What it leaves out is never deleted.
	Keep func(path string, dir bool) bool
	// Event is told what was done, in no certain order; may be nil.
	Event func(Event)
	// Progress is told how many bytes of content went by; may be nil.
	Progress func(n int64)
}

// Kind says what happened to an entry.
type Kind string

// The kinds of events.
const (
	Sent    Kind = "sent"
	Deleted Kind = "deleted"
	Skipped Kind = "skipped" // left out, with the reason
	Retried Kind = "retried" // it changed while it was sent, and is sent again
)

// Event is what happened to one entry.
type Event struct {
	Kind   Kind
	Path   string // below the roots, raw bytes; "." is the root
	Type   remotefs.Type
	Bytes  int64
	Reason string
}

// Summary counts a transfer.
type Summary struct {
	Sent      int   // entries made or replaced
	Bytes     int64 // of the files among them
	Unchanged int
	Deleted   int
	Skipped   int
	Retried   int
}

// Bounds of a batch, which is staged as a whole, and of the tries of a file that
// changes while it is sent.
const (
	batchFiles = 16384
	batchBytes = 1 << 30
	maxTries   = 3
)

// entry is what is known of one side's entry; it is kept small, since there may be
// a hundred thousand.
type entry struct {
	path  string // "" is the root
	link  string
	size  int64
	mtime int64 // ns
	mode  int32
	kind  byte // of the type: f, d, l, o, or e if it could not be looked at
}

func newEntry(n remotefs.Node) entry {
	e := entry{path: n.Path, link: n.Link, mtime: n.ModTime.UnixNano(), mode: int32(n.Mode), kind: 'o'}
	if n.Type == remotefs.TypeFile {
		e.size = n.Size
	}
	switch {
	case n.Err != nil:
		e.kind, e.link = 'e', n.Err.Error()
	case n.Type == remotefs.TypeFile:
		e.kind = 'f'
	case n.Type == remotefs.TypeDirectory:
		e.kind = 'd'
	case n.Type == remotefs.TypeSymlink:
		e.kind = 'l'
	}
	return e
}

func (e *entry) typ() remotefs.Type {
	switch e.kind {
	case 'f':
		return remotefs.TypeFile
	case 'd':
		return remotefs.TypeDirectory
	case 'l':
		return remotefs.TypeSymlink
	}
	return remotefs.TypeOther
}

// place is one side of a transfer.
type place interface {
	// list gives everything below the root, and the root as "" if it is a
	// directory; nothing if nothing is there.
	list(ctx context.Context) ([]entry, error)
	// sums gives the SHA-256 of files in hex, "" of what cannot be read.
	sums(ctx context.Context, paths []string) ([]string, error)
}

// Run copies a tree: what is below the root of src to the root of dst, which is
// made if it is not there. Exactly one of the two is a Host at least.
func Run(ctx context.Context, src, dst Place, o Options) (Summary, error) {
	r := &run{o: o}
	p, err := r.plan(ctx, src, dst)
	if err == nil && !o.DryRun {
		err = r.do(ctx, src, dst, p)
	}
	if err != nil && ctx.Err() != nil {
		err = fault.Aborted(ctx, fault.FSAborted, "transfer", "")
	}
	return r.sum, remotefs.Explain(ctx, err, "transfer", dst.Name())
}

// Place is a side of a transfer: a Host, a World, or Absent.
type Place interface {
	place
	// Name is what it is called in messages.
	Name() string
	// Rename gives the one entry that takes part another name at the target.
	Rename(to string)
}

// renaming is the name at the target of the one entry that takes part.
type renaming struct{ from, to string }

// target gives the name at the target.
func (n renaming) target(p string) string {
	if n.to != "" && p == n.from {
		return n.to
	}
	return p
}

// source gives the name at the source.
func (n renaming) source(p string) string {
	if n.to != "" && p == n.to {
		return n.from
	}
	return p
}

// Absent is a target that is not there and, by a dry run, is not made.
func Absent(name string) Place { return absent(name) }

type absent string

func (a absent) Name() string                                     { return string(a) }
func (a absent) Rename(string)                                    {}
func (a absent) list(context.Context) ([]entry, error)            { return nil, nil }
func (a absent) sums(context.Context, []string) ([]string, error) { return nil, nil }

// Stream writes the content of one file below src to w; a content that differs
// from what the world then sums up is an error after it was written.
func Stream(ctx context.Context, src Place, name string, w io.Writer) error {
	var err error
	switch src := src.(type) {
	case *Host:
		err = src.stream(name, w)
	case *World:
		err = src.stream(ctx, name, w)
	}
	return remotefs.Explain(ctx, err, "read", name)
}

// run is a transfer under way.
type run struct {
	o   Options
	sum Summary
}

func (r *run) event(e Event) {
	switch e.Kind {
	case Sent:
		r.sum.Sent++
		r.sum.Bytes += e.Bytes
	case Deleted:
		r.sum.Deleted++
	case Skipped:
		r.sum.Skipped++
	case Retried:
		r.sum.Retried++
	}
	if r.o.Event != nil {
		if e.Path == "" {
			e.Path = "."
		}
		r.o.Event(e)
	}
}

func (r *run) skip(e *entry, reason string) {
	r.event(Event{Kind: Skipped, Path: e.path, Type: e.typ(), Reason: reason})
}

// progress counts content that goes by.
func (r *run) progress(n int64) {
	if r.o.Progress != nil {
		r.o.Progress(n)
	}
}

// batch is what is staged and published together.
type batch struct {
	files  []entry // and links
	remove []string
	dirs   []entry // modes and times, set at the end
}

// do sends the plan in batches; what changed meanwhile is sent again.
func (r *run) do(ctx context.Context, src, dst Place, p *plan) error {
	left, remove := p.send, p.remove
	if len(left) == 0 && len(remove) == 0 && len(p.dirs) == 0 {
		return nil
	}
	for try := 1; ; try++ {
		var again []entry
		for first := true; first || len(left) > 0; first = false {
			b := batch{remove: remove}
			b.files, left = cut(left)
			remove = nil
			if len(left) == 0 {
				b.dirs = p.dirs
			}
			changed, err := r.batch(ctx, src, dst, b)
			if err != nil {
				return err
			}
			again = append(again, changed...)
		}
		if len(again) == 0 {
			return nil
		}
		if left = r.again(again, try); len(left) == 0 {
			return nil
		}
	}
}

// again says what is tried once more.
func (r *run) again(changed []entry, try int) []entry {
	for i := range changed {
		if try == maxTries {
			r.skip(&changed[i], "it changed each time it was sent")
		} else {
			r.event(Event{Kind: Retried, Path: changed[i].path, Type: remotefs.TypeFile, Reason: "it changed while it was sent"})
		}
	}
	if try == maxTries {
		return nil
	}
	return changed
}

// cut takes the first batch.
func cut(files []entry) (first, rest []entry) {
	var size int64
	for i := range files {
		if size += files[i].size; i == batchFiles || i > 0 && size > batchBytes {
			return files[:i], files[i:]
		}
	}
	return files, nil
}

// batch sends one batch and gives the files that changed while they were sent.
func (r *run) batch(ctx context.Context, src, dst Place, b batch) ([]entry, error) {
	switch dst := dst.(type) {
	case *World:
		return r.push(ctx, src.(*Host), dst, b)
	case *Host:
		if from, ok := src.(*World); ok {
			return r.pull(ctx, from, dst, b)
		}
		return r.copy(ctx, src.(*Host), dst, b)
	}
	return nil, nil
}

// changedOf gives the entries whose outcome says that they changed, and tells of
// the others.
func (r *run) outcomes(files []entry, sent []outcome) []entry {
	var changed []entry
	for i := range files {
		switch f := &files[i]; {
		case sent[i].changed:
			changed = append(changed, *f)
		case sent[i].failed != "":
			r.skip(f, sent[i].failed)
		default:
			r.event(Event{Kind: Sent, Path: f.path, Type: f.typ(), Bytes: max(f.size, 0)})
		}
	}
	return changed
}

// outcome is what became of one entry of a batch.
type outcome struct {
	sum     string // of what was sent of a file
	changed bool
	failed  string
}

// counting tells of what goes by.
type counting struct {
	r   io.Reader
	run *run
}

func (c counting) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.run.progress(int64(n))
	return n, err
}

func sortEntries(list []entry) {
	slices.SortFunc(list, func(a, b entry) int { return strings.Compare(a.path, b.path) })
}
