package keeper

import (
	"io"
	"os"
	"sync"
	"syscall"
)

// maxLog is the size in bytes at which the log is begun anew; the one before is
// kept beside it.
const maxLog = 256 << 10

// rotated is the log of a running keeper. What the runtime prints on the
// standard error goes to the same file.
type rotated struct {
	mu   sync.Mutex
	path string
	out  io.Writer // standard error, which is the file
	size int64
}

// Write never fails: a keeper that cannot log goes on.
func (l *rotated) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size == 0 {
		if st, err := os.Stat(l.path); err == nil {
			l.size = st.Size()
		}
	}
	if l.size += int64(len(p)); l.size > maxLog {
		l.size = int64(len(p))
		l.rotate()
	}
	l.out.Write(p)
	return len(p), nil
}

// rotate begins a new file under the same descriptors.
func (l *rotated) rotate() {
	os.Rename(l.path, l.path+".1")
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	become(int(f.Fd()), 1)
	become(int(f.Fd()), 2)
}
