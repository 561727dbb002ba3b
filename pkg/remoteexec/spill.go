package remoteexec

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// spillDir is the private directory of a Runtime's spill files (SF-4), made at
// the first spill.
type spillDir struct {
	parent string
	mu     sync.Mutex
	path   string
}

// create makes a new file that nobody can have prepared.
func (d *spillDir) create(name string) (*os.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.path == "" {
		path, err := os.MkdirTemp(d.parent, "afield-spill-")
		if err != nil {
			return nil, err
		}
		d.path = path
	}
	return os.OpenFile(filepath.Join(d.path, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
}

// removeEmpty removes the directory unless files stand in it (SF-9).
func (d *spillDir) removeEmpty() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.path != "" && os.Remove(d.path) == nil {
		d.path = ""
	}
}

// spillName is unguessable.
func spillName(stream string) string {
	var random [16]byte
	rand.Read(random[:])
	return stream + "-" + hex.EncodeToString(random[:])
}

// spillFile is what spill needs of an open file.
type spillFile interface {
	Write(p []byte) (int, error)
	Close() error
	Name() string
}

// spill keeps a whole stream in a file, from the first byte that no longer fits
// into memory (SF-1, SF-2). It is used by one goroutine.
type spill struct {
	max    int64
	open   func() (spillFile, error)
	remove func(path string) error
	file   spillFile
	dead   bool // given up for good
}

func newSpill(dir *spillDir, stream string, max int64) *spill {
	open := func() (spillFile, error) { return dir.create(spillName(stream)) }
	return &spill{max: max, open: open, remove: os.Remove}
}

// add takes the next bytes p of c's stream, before c does.
func (s *spill) add(c *Collected, p []byte) {
	total := c.Total()
	switch after := total + int64(len(p)); {
	case s.dead || after <= c.max:
		return
	case after > s.max:
		s.giveUp(c)
		return
	}
	if s.file == nil && !s.begin(c) {
		return
	}
	if _, err := s.file.Write(p); err != nil {
		s.giveUp(c)
		return
	}
	c.setSpill(s.file.Name())
}

// begin creates the file and stores what memory holds: the stream so far.
func (s *spill) begin(c *Collected) bool {
	file, err := s.open()
	if err != nil {
		s.dead = true
		return false
	}
	s.file = file
	sofar, _ := c.ReadFrom(0)
	if _, err := file.Write(sofar.Bytes); err != nil {
		s.giveUp(c)
		return false
	}
	return true
}

// giveUp removes the file; a failure to do so leaves at most max bytes behind
// (SF-7).
func (s *spill) giveUp(c *Collected) {
	s.dead = true
	c.setSpill("")
	if s.file != nil {
		s.file.Close()
		s.remove(s.file.Name())
		s.file = nil
	}
}

// end closes the file at settlement. The path is withheld if that fails or if
// bytes may be missing (SF-5, SF-6).
func (s *spill) end(c *Collected, complete bool) {
	if s.file == nil {
		return
	}
	if !complete {
		s.giveUp(c)
		return
	}
	if s.file.Close() != nil {
		c.setSpill("")
	}
	s.file = nil
}
