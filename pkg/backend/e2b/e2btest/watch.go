package e2btest

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/afield-dev/afield/pkg/backend/e2b/wire"
)

// watcher reports changes in one folder.
type watcher struct {
	f       *os.File
	dir     string
	entries bool
	box     *Sandbox

	mu     sync.Mutex
	queued []wire.FilesystemEvent
}

// changes maps the kernel's bits to the daemon's names, in the order in which
// one kernel event is reported.
var changes = []struct {
	bits uint32
	name string
}{
	{unix.IN_CREATE | unix.IN_MOVED_TO, "EVENT_TYPE_CREATE"},
	{unix.IN_MOVED_FROM, "EVENT_TYPE_RENAME"},
	{unix.IN_ATTRIB, "EVENT_TYPE_CHMOD"},
	{unix.IN_MODIFY, "EVENT_TYPE_WRITE"},
	{unix.IN_DELETE, "EVENT_TYPE_REMOVE"},
}

func (c *call) newWatcher(req wire.WatchDirRequest) (*watcher, error) {
	dir, err := c.path(req.Path)
	if err != nil {
		return nil, err
	}
	fi, err := os.Stat(dir)
	if err != nil {
		return nil, fileError(err, dir)
	}
	if !fi.IsDir() {
		return nil, fail(wire.CodeInvalidArgument, "path %s not a directory", dir)
	}
	if req.Recursive {
		return nil, fail(wire.CodeUnimplemented, "this stand-in watches one folder only")
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fail(wire.CodeInternal, "error creating watcher: %s", err)
	}
	w := &watcher{f: os.NewFile(uintptr(fd), "inotify"), dir: dir, entries: req.IncludeEntry, box: c.box}
	var mask uint32
	for _, ch := range changes {
		mask |= ch.bits
	}
	if _, err := unix.InotifyAddWatch(fd, dir, mask); err != nil {
		w.f.Close()
		return nil, fail(wire.CodeInternal, "error adding path %s to watcher: %s", dir, err)
	}
	return w, nil
}

// read waits for changes.
func (w *watcher) read() ([]wire.FilesystemEvent, error) {
	buf := make([]byte, 64<<10)
	n, err := w.f.Read(buf)
	if err != nil {
		return nil, err
	}
	var events []wire.FilesystemEvent
	for rest := buf[:n]; len(rest) >= unix.SizeofInotifyEvent; {
		ev := (*unix.InotifyEvent)(unsafe.Pointer(&rest[0]))
		name := string(bytes.TrimRight(rest[unix.SizeofInotifyEvent:unix.SizeofInotifyEvent+ev.Len], "\x00"))
		rest = rest[unix.SizeofInotifyEvent+ev.Len:]
		for _, ch := range changes {
			if ev.Mask&ch.bits != 0 && name != "" {
				events = append(events, w.event(name, ch.name))
			}
		}
	}
	return events, nil
}

func (w *watcher) event(name, kind string) wire.FilesystemEvent {
	ev := wire.FilesystemEvent{Name: name, Type: kind}
	if w.entries && kind != "EVENT_TYPE_REMOVE" && kind != "EVENT_TYPE_RENAME" {
		if e, err := w.box.entryOf(filepath.Join(w.dir, name)); err == nil {
			ev.Entry = &e
		}
	}
	return ev
}

func watchDir(c *call, in *wire.EnvelopeReader, send func(any) error) error {
	var req wire.WatchDirRequest
	if err := readOne(in, &req); err != nil {
		return err
	}
	w, err := c.newWatcher(req)
	if err != nil {
		return err
	}
	defer w.f.Close()
	ctx, cancel := context.WithCancel(c.ctx)
	if c.timeout > 0 {
		ctx, cancel = context.WithTimeout(c.ctx, c.timeout)
	}
	defer cancel()
	if err := send(wire.WatchDirResponse{Start: &struct{}{}}); err != nil {
		return err
	}
	go func() {
		<-ctx.Done()
		w.f.SetReadDeadline(time.Unix(1, 0))
	}()
	for {
		events, err := w.read()
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return fail(wire.CodeDeadlineExceeded, "the operation timed out")
		}
		if err != nil {
			return fail(wire.CodeInternal, "watcher error: %s", err)
		}
		for i := range events {
			if err := send(wire.WatchDirResponse{Filesystem: &events[i]}); err != nil {
				return err
			}
		}
	}
}

func createWatcher(c *call, req wire.WatchDirRequest) (wire.WatcherRequest, error) {
	w, err := c.newWatcher(req)
	if err != nil {
		return wire.WatcherRequest{}, err
	}
	id := word(12)
	c.box.mu.Lock()
	c.box.watch[id] = w
	c.box.mu.Unlock()
	go func() {
		for {
			events, err := w.read()
			if err != nil {
				return
			}
			w.mu.Lock()
			w.queued = append(w.queued, events...)
			w.mu.Unlock()
		}
	}()
	return wire.WatcherRequest{WatcherID: id}, nil
}

func (b *Sandbox) watcher(id string) (*watcher, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.watch[id]
	if w == nil {
		return nil, fail(wire.CodeNotFound, "watcher with id %s not found", id)
	}
	return w, nil
}

func watcherEvents(c *call, req wire.WatcherRequest) (wire.WatcherEventsResponse, error) {
	w, err := c.box.watcher(req.WatcherID)
	if err != nil {
		return wire.WatcherEventsResponse{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	events := w.queued
	w.queued = nil
	return wire.WatcherEventsResponse{Events: events}, nil
}

func removeWatcher(c *call, req wire.WatcherRequest) (struct{}, error) {
	w, err := c.box.watcher(req.WatcherID)
	if err != nil {
		return struct{}{}, err
	}
	c.box.mu.Lock()
	delete(c.box.watch, req.WatcherID)
	c.box.mu.Unlock()
	return struct{}{}, w.f.Close()
}
