package remotefs

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/afield-dev/afield/pkg/fault"
)

// View is a window of a file.
type View struct {
	Target  Target
	Version string
	Window
}

// ReadView gives a window of a file (remotefs.md 15): a usage error for bad
// options before any I/O, then the errors of StreamText, and FS_NOT_FOUND for an
// offset behind the last line. Memory is bounded by the window.
func ReadView(ctx context.Context, files FS, at At, opts WindowOptions) (View, error) {
	if err := checkView(at, &opts); err != nil {
		return View{}, err
	}
	s, err := files.StreamText(ctx, at)
	if err != nil {
		return View{}, err
	}
	return viewOf(s, opts)
}

// checkView refuses what can be told before any I/O and fills in defaults.
func checkView(at At, opts *WindowOptions) error {
	if at.Target.Key == "" && Blank(at.Path) {
		return fault.New(fault.Usage, "read", at.Path, "file_path must be a non-empty string")
	}
	checked, err := opts.Check()
	*opts = checked
	return err
}

// viewOf reads a stream to its end, closes it, and gives the window.
func viewOf(s *TextStream, opts WindowOptions) (View, error) {
	defer s.Close()
	w := newWindower(opts)
	for {
		piece, err := s.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return View{}, err
		}
		w.write(piece)
	}
	win, err := w.finish(s.Target().Display)
	return View{Target: s.Target(), Version: s.Info().Version, Window: win}, err
}

// WindowOf gives the window of content that is in memory: what ReadView gives
// for a file of these bytes, errors included.
func WindowOf(content []byte, display string, opts WindowOptions) (Window, error) {
	opts, err := opts.Check()
	if err != nil {
		return Window{}, err
	}
	if err := CheckText(content, display); err != nil {
		return Window{}, err
	}
	w := newWindower(opts)
	w.write(content)
	return w.finish(display)
}

// CheckText reports FS_NOT_TEXT for the content of a file that is no text
// (remotefs.md 5.1).
func CheckText(content []byte, display string) error {
	if bytes.IndexByte(content[:min(len(content), sampleSize)], 0) >= 0 {
		return notText("read", display, "binary file")
	}
	if !validText(content) {
		return notText("read", display, "invalid UTF-8 text")
	}
	return nil
}
