package watch

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"os"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/afield-dev/afield/pkg/remotefs"
)

// wanted are the notices that are asked for.
const wanted = unix.IN_CREATE | unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO |
	unix.IN_ONLYDIR | unix.IN_DONT_FOLLOW

// pairWait is how long the second half of a rename is waited for: the kernel
// gives both at once, so only what left the watched trees waits in vain.
const pairWait = 20 * time.Millisecond

// native is a watch under way, for one goroutine.
type native struct {
	ctx    context.Context
	walker remotefs.Arranger
	roots  []Root
	emit   func(Event) error
	file   *os.File
	fd     int              // of file, whose own method would make it block
	dirs   map[int32]string // by watch
	only   map[string]string
	// found are the entries that a look through a new directory has told: the
	// notice of their making may still come, and is no second one.
	found  map[string]bool
	moved  *Event // the first half of a rename
	cookie uint32
	last   Event
}

// Native watches this machine by inotify until ctx ends, and gives emit what
// changed. It returns the error of emit or of a look, or nil when ctx has ended.
func Native(ctx context.Context, walker remotefs.Arranger, roots []Root, emit func(Event) error) error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return err
	}
	n := &native{ctx: ctx, walker: walker, roots: roots, emit: emit, file: os.NewFile(uintptr(fd), "inotify"), fd: fd,
		dirs: map[int32]string{}, only: map[string]string{}, found: map[string]bool{}}
	defer n.file.Close()
	defer context.AfterFunc(ctx, func() { n.file.SetReadDeadline(time.Now()) })()
	for _, r := range roots {
		if err := n.addRoot(r); err != nil {
			return ended(ctx, err)
		}
	}
	if err := emit(Event{Kind: Ready}); err != nil {
		return err
	}
	return ended(ctx, n.loop())
}

// addRoot watches a root and every directory below it.
func (n *native) addRoot(r Root) error {
	if err := n.add(r.Dir); err != nil {
		return err
	}
	if r.Only != "" {
		n.only[r.Dir] = r.Only
		return nil
	}
	return n.walk(r.Dir, nil)
}

// walk watches the directories below one, and tells every entry to found.
func (n *native) walk(dir string, found func(p string, t remotefs.Type) error) error {
	return n.walker.Walk(n.ctx, dir, remotefs.WalkOptions{Names: true}, func(e remotefs.Node) error {
		p := path.Join(dir, e.Path)
		if found != nil {
			if err := found(p, e.Type); err != nil {
				return err
			}
		}
		if e.Type != remotefs.TypeDirectory {
			return nil
		}
		return gone(n.add(p))
	})
}

// gone takes away the error of a directory that is not there any more.
func gone(err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	return err
}

func (n *native) add(dir string) error {
	wd, err := unix.InotifyAddWatch(n.fd, dir, wanted)
	if err != nil {
		return err
	}
	n.dirs[int32(wd)] = dir
	return nil
}

// loop reads notices to the end of the context.
func (n *native) loop() error {
	buf := make([]byte, 64<<10)
	for n.ctx.Err() == nil {
		if n.moved != nil {
			n.file.SetReadDeadline(time.Now().Add(pairWait))
		}
		size, err := n.file.Read(buf)
		n.last = Event{}
		switch {
		case n.ctx.Err() != nil:
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			n.file.SetReadDeadline(time.Time{})
			if n.ctx.Err() != nil {
				return nil
			}
			err = n.settleMoved()
		case err == nil:
			err = n.notices(buf[:size])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// notices handles what one read gave.
func (n *native) notices(b []byte) error {
	for len(b) >= unix.SizeofInotifyEvent {
		wd, mask := int32(binary.NativeEndian.Uint32(b)), binary.NativeEndian.Uint32(b[4:])
		cookie, size := binary.NativeEndian.Uint32(b[8:]), binary.NativeEndian.Uint32(b[12:])
		name, _, _ := bytes.Cut(b[unix.SizeofInotifyEvent:unix.SizeofInotifyEvent+size], []byte{0})
		b = b[unix.SizeofInotifyEvent+size:]
		if err := n.notice(wd, mask, cookie, string(name)); err != nil {
			return err
		}
	}
	return nil
}

func (n *native) notice(wd int32, mask, cookie uint32, name string) error {
	dir, known := n.dirs[wd]
	switch {
	case mask&unix.IN_Q_OVERFLOW != 0:
		return n.overflow()
	case mask&unix.IN_IGNORED != 0:
		delete(n.dirs, wd)
		return nil
	case !known || name == "" || n.only[dir] != "" && n.only[dir] != name:
		return nil
	case strings.HasPrefix(name, remotefs.StageName) && strings.HasSuffix(name, remotefs.StageEnd):
		return nil
	}
	p, kind := path.Join(dir, name), remotefs.Type("")
	if mask&unix.IN_ISDIR != 0 {
		kind = remotefs.TypeDirectory
	}
	if n.moved != nil && (mask&unix.IN_MOVED_TO == 0 || cookie != n.cookie) {
		if err := n.settleMoved(); err != nil {
			return err
		}
	}
	switch {
	case mask&unix.IN_CREATE != 0 && n.found[p]:
		delete(n.found, p)
		return nil
	case mask&unix.IN_MOVED_FROM != 0:
		maps.DeleteFunc(n.found, func(q string, _ bool) bool { return remotefs.PathContains(p, q) })
		n.moved, n.cookie = &Event{Removed, p, "", kind}, cookie
		return nil
	case mask&unix.IN_MOVED_TO != 0 && n.moved != nil:
		from := n.moved.Path
		n.moved = nil
		n.rename(from, p)
		return n.tell(Event{Renamed, p, from, kind})
	case mask&(unix.IN_CREATE|unix.IN_MOVED_TO) != 0:
		return n.created(p, kind)
	case mask&unix.IN_DELETE != 0:
		delete(n.found, p)
		return n.tell(Event{Removed, p, "", kind})
	case kind == remotefs.TypeDirectory:
		return nil // its times follow what happens inside
	}
	return n.tell(Event{Modified, p, "", kind})
}

// tell gives an event, unless it repeats the one before.
func (n *native) tell(e Event) error {
	if e == n.last {
		return nil
	}
	n.last = e
	return n.emit(e)
}

// settleMoved tells what was moved away to where nobody watches.
func (n *native) settleMoved() error {
	if n.moved == nil {
		return nil
	}
	e := *n.moved
	n.moved = nil
	for wd, dir := range n.dirs {
		if remotefs.PathContains(e.Path, dir) {
			unix.InotifyRmWatch(n.fd, uint32(wd))
			delete(n.dirs, wd)
		}
	}
	return n.tell(e)
}

// rename follows a directory with its watches.
func (n *native) rename(from, to string) {
	for wd, dir := range n.dirs {
		if remotefs.PathContains(from, dir) {
			n.dirs[wd] = to + strings.TrimPrefix(dir, from)
		}
	}
}

// created tells a new entry, and of a directory what is in it already.
func (n *native) created(p string, kind remotefs.Type) error {
	if err := n.tell(Event{Created, p, "", kind}); err != nil || kind != remotefs.TypeDirectory {
		return err
	}
	if n.only[path.Dir(p)] != "" {
		return nil
	}
	if err := gone(n.add(p)); err != nil {
		return err
	}
	return gone(n.walk(p, func(q string, t remotefs.Type) error {
		if t == remotefs.TypeFile {
			t = ""
		}
		n.found[q] = true
		return n.tell(Event{Created, q, "", t})
	}))
}

// overflow says that events were lost, and watches everything anew.
func (n *native) overflow() error {
	if err := n.settleMoved(); err != nil {
		return err
	}
	clear(n.found)
	if err := n.emit(Event{Kind: Overflow}); err != nil {
		return err
	}
	for _, r := range n.roots {
		if err := gone(n.addRoot(r)); err != nil {
			return err
		}
	}
	return nil
}
