package keeper

import (
	"io"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// guard makes a socket that somebody removes again: what the keeper holds must
// stay within reach. Closing what it gives ends it.
func (k *keeper) guard() io.Closer {
	path := k.Setup.Socket
	w := watch(filepath.Dir(path))
	go func() {
		buf := make([]byte, 4096)
		for {
			if _, err := w.Read(buf); err != nil {
				return
			}
			if _, err := os.Lstat(path); err != nil {
				k.relisten(path)
			}
		}
	}()
	return w
}

// relisten makes the socket again. The old listener goes on serving whoever is in
// its queue.
func (k *keeper) relisten(path string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ending {
		return
	}
	f, err := listen(path)
	if err != nil {
		k.log.Warn("the socket was removed and cannot be made again", "error", err)
		return
	}
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		return
	}
	k.log.Info("the socket was removed and made again")
	go k.accept(l)
	go func() { <-k.finished; l.Close() }()
}

// watch gives a descriptor that becomes readable when something is removed from
// a directory; one that never does where that cannot be watched.
func watch(dir string) *os.File {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil
	}
	unix.InotifyAddWatch(fd, dir, unix.IN_DELETE|unix.IN_MOVED_FROM)
	return os.NewFile(uintptr(fd), "inotify")
}
