package keeper

import (
	"bufio"
	"encoding/json"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
)

// recording writes what a terminal says as asciicast version 2: a header, then
// one line for each piece with its time in seconds. A file that cannot be written
// any more ends the recording and nothing else.
type recording struct {
	mu    sync.Mutex
	file  *os.File
	w     *bufio.Writer
	began time.Time
	text  remoteexec.Decoder
}

// record makes the file, which must not be there.
func record(path string, spec remoteexec.TerminalSpec) (*recording, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fault.Wrap(err, fault.FSIOError, "record", path, "cannot make the recording %q: %s", path, err)
	}
	r := &recording{file: f, w: bufio.NewWriter(f), began: time.Now()}
	r.line(map[string]any{"version": 2, "width": spec.Cols, "height": spec.Rows, "timestamp": r.began.Unix()})
	return r, nil
}

func (r *recording) line(v any) {
	b, err := json.Marshal(v)
	if err == nil && r.file != nil {
		r.w.Write(append(b, '\n'))
		err = r.w.Flush()
	}
	if err != nil && r.file != nil {
		r.file.Close()
		r.file = nil
	}
}

func (r *recording) event(kind, text string) {
	if text != "" {
		r.line([]any{time.Since(r.began).Seconds(), kind, text})
	}
}

func (r *recording) output(p []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.event("o", r.text.Decode(p, false))
}

func (r *recording) resize(rows, cols int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.event("r", strconv.Itoa(cols)+"x"+strconv.Itoa(rows))
}

// close ends the recording. It may be called more than once.
func (r *recording) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file != nil {
		r.event("o", r.text.Decode(nil, true))
		r.file.Close()
		r.file = nil
	}
}
