package profile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/afield-dev/afield/pkg/fault"
)

// readBounded reads a regular file of at most limit bytes. It never blocks on
// what is no regular file; streams says that one may be read all the same,
// because the caller named it.
func readBounded(path string, limit int64, streams bool) ([]byte, fs.FileInfo, error) {
	flags := os.O_RDONLY | syscall.O_NONBLOCK
	if streams {
		flags = os.O_RDONLY
	}
	f, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if info.IsDir() || !streams && !info.Mode().IsRegular() {
		return nil, info, errNotRegular
	}
	content, err := io.ReadAll(io.LimitReader(f, limit+1))
	return content, info, err
}

var errNotRegular = errors.New("it is not a regular file")

// reasonOf gives the reason of a failed file operation without its path.
func reasonOf(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return err.Error()
}

// Source is a file that takes part in a composition, or would.
type Source struct {
	Layer  Layer
	Path   string
	Exists bool
	// Trusted is set for project files only.
	Trusted *bool
	// Mode is the permission bits; -1 = there is no file.
	Mode int
}

// readSource reads the file of a layer. Absence is an answer: nil.
func (c *Composition) readSource(layer Layer, path string, ps *problems) []byte {
	at := Origin{Layer: layer, Source: path}
	content, info, err := readBounded(path, maxDocumentBytes, layer == LayerFile)
	source := Source{Layer: layer, Path: path, Exists: info != nil || err != nil && !errors.Is(err, fs.ErrNotExist), Mode: -1}
	if info != nil {
		source.Mode = int(info.Mode().Perm())
	}
	c.Sources = append(c.Sources, source)
	switch {
	case err == nil:
		return content
	case errors.Is(err, fs.ErrNotExist) && layer != LayerFile:
	case errors.Is(err, fs.ErrNotExist):
		ps.add(fault.ProfileNotFound, at, "", "the profile file does not exist")
	default:
		ps.invalid(at, "", "the profile file cannot be read: %s", reasonOf(err))
	}
	return nil
}
