package remotefs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/afield-dev/afield/pkg/fault"
)

const (
	// sampleSize is the part of a file in which a NUL byte means "binary"
	// (remotefs.md 5.1).
	sampleSize = 8192
	// streamBuffer is the largest piece that a TextStream hands out.
	streamBuffer = 256 << 10
)

var byteOrderMark = []byte{0xEF, 0xBB, 0xBF}

// TextStream gives the exact bytes of a text file in pieces, each proven to be
// UTF-8 before it is handed out. The byte-order mark, if there is one, is part
// of them. It is for one goroutine.
type TextStream struct {
	ctx     context.Context
	file    File
	target  Target
	buf     []byte
	tail    [utf8.UTFMax]byte // unfinished sequence of the last read
	rest    int               // its length
	offset  int64
	started bool
	bom     bool
	err     error
}

// NewTextStream reads the text of an open file, which it owns from then on.
func NewTextStream(ctx context.Context, f File, t Target) *TextStream {
	return &TextStream{ctx: ctx, file: f, target: t, buf: make([]byte, streamBuffer)}
}

// Target is the file that is read.
func (s *TextStream) Target() Target { return s.target }

// Info is that of the opened file.
func (s *TextStream) Info() *Info { return s.file.Info() }

// BOM reports whether the file begins with a byte-order mark. It is known after
// the first call of Next.
func (s *TextStream) BOM() bool { return s.bom }

// Close ends the stream; what is under way is cancelled.
func (s *TextStream) Close() error { return s.file.Close() }

// Next gives the next piece, valid until the following call. It ends with
// io.EOF. Pieces are never empty.
func (s *TextStream) Next() ([]byte, error) {
	for s.err == nil {
		piece, err := s.fill()
		s.err = err
		if len(piece) > 0 {
			return piece, nil
		}
	}
	return nil, s.err
}

// WriteTo writes what is left to w. A pipe is enlarged first, so that fewer
// calls carry more. An error of w is returned as it is.
func (s *TextStream) WriteTo(w io.Writer) (int64, error) {
	enlargePipe(w)
	var total int64
	for {
		piece, err := s.Next()
		if errors.Is(err, io.EOF) {
			return total, nil
		}
		if err != nil {
			return total, err
		}
		n, err := w.Write(piece)
		total += int64(n)
		if err != nil {
			return total, err
		}
	}
}

// fill reads once and gives what is proven by then.
func (s *TextStream) fill() ([]byte, error) {
	if s.ctx.Err() != nil {
		return nil, fault.Aborted(s.ctx, fault.FSAborted, "read", s.target.Display)
	}
	copy(s.buf, s.tail[:s.rest])
	n, err := s.file.Read(s.buf[s.rest:])
	data := s.buf[:s.rest+n]
	if verr := s.sample(s.buf[s.rest : s.rest+n]); verr != nil {
		return nil, verr
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, failure(s.ctx, err, "read", s.target.Display)
	}
	if !s.started && err == nil && len(data) < len(byteOrderMark) {
		return s.hand(data, 0), nil
	}
	if !s.started {
		s.started, s.bom = true, bytes.HasPrefix(data, byteOrderMark)
	}
	end := len(data)
	if err == nil {
		end -= unfinished(data)
	}
	if !validText(data[:end]) {
		return nil, notText("read", s.target.Display, "invalid UTF-8 text")
	}
	return s.hand(data, end), err
}

// hand gives data[:end] and keeps the rest for the next read.
func (s *TextStream) hand(data []byte, end int) []byte {
	s.rest = copy(s.tail[:], data[end:])
	return data[:end]
}

// sample looks for a NUL in the first bytes of the file.
func (s *TextStream) sample(fresh []byte) error {
	if left := sampleSize - s.offset; left > 0 {
		if bytes.IndexByte(fresh[:min(left, int64(len(fresh)))], 0) >= 0 {
			return notText("read", s.target.Display, "binary file")
		}
	}
	s.offset += int64(len(fresh))
	return nil
}

// unfinished counts the bytes at the end of b that may be the beginning of a
// sequence which the next bytes complete.
func unfinished(b []byte) int {
	for n := 1; n <= min(len(b), utf8.UTFMax-1); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}
