package remotefs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/afield-dev/afield/pkg/fault"
)

// open opens a file for reading.
func (c *core) open(ctx context.Context, op string, at At, limit int64) (File, Target, error) {
	ref, display, err := c.locate(ctx, op, at)
	if err != nil {
		return nil, Target{}, err
	}
	f, err := c.driver.Open(ctx, ref, limit)
	if err != nil {
		if fault.Is(err, fault.FSTooLarge) {
			err = tooLarge(op, display, limit)
		}
		return nil, Target{}, failure(ctx, err, op, display)
	}
	return f, Target{Key: f.Key(), Display: display}, nil
}

func (c *core) StreamText(ctx context.Context, at At) (*TextStream, error) {
	f, t, err := c.open(ctx, "read", at, -1)
	if err != nil {
		return nil, err
	}
	return NewTextStream(ctx, f, t), nil
}

func (c *core) ReadText(ctx context.Context, at At) (Text, error) {
	s, err := c.StreamText(ctx, at)
	if err != nil {
		return Text{}, err
	}
	defer s.Close()
	var b strings.Builder
	if size := s.Info().Size; size > 0 {
		b.Grow(int(min(size, maxGuess)))
	}
	n, err := s.WriteTo(&b)
	if err != nil {
		return Text{}, err
	}
	if ctx.Err() != nil {
		return Text{}, failure(ctx, nil, "read", s.Target().Display)
	}
	text := strings.TrimPrefix(b.String(), string(byteOrderMark))
	return Text{Target: s.Target(), Text: text, BOM: s.BOM(), Bytes: n, Version: s.Info().Version}, nil
}

// maxGuess bounds what is set aside for a file by its reported size alone.
const maxGuess = 64 << 20

func (c *core) ReadBytes(ctx context.Context, at At, maxBytes int64) (Bytes, error) {
	if maxBytes < 0 {
		return Bytes{}, fault.New(fault.Usage, "read", at.Path, "the byte limit must be a non-negative integer")
	}
	f, t, err := c.open(ctx, "read", at, maxBytes)
	if err != nil {
		return Bytes{}, err
	}
	defer f.Close()
	content, err := readUpTo(ctx, f, maxBytes)
	if err != nil || ctx.Err() != nil {
		if errors.Is(err, errOverLimit) {
			err = tooLarge("read", t.Display, maxBytes)
		}
		return Bytes{}, failure(ctx, err, "read", t.Display)
	}
	return Bytes{Target: t, Content: content, Version: f.Info().Version}, nil
}

var errOverLimit = errors.New("content exceeds the limit")

// readUpTo reads f to its end, at most limit bytes and one more, with a look at
// ctx between pieces.
func readUpTo(ctx context.Context, f File, limit int64) ([]byte, error) {
	limit = min(limit, math.MaxInt64-1)
	buf := make([]byte, 0, min(max(f.Info().Size, 0), limit, maxGuess)+1)
	for ctx.Err() == nil {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		end := min(int64(cap(buf)), limit+1, int64(len(buf))+streamBuffer)
		n, err := f.Read(buf[len(buf):end])
		buf = buf[:len(buf)+n]
		if int64(len(buf)) > limit {
			return nil, errOverLimit
		}
		if errors.Is(err, io.EOF) {
			return buf, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, ctx.Err()
}

func tooLarge(op, display string, limit int64) error {
	return complete(&fault.Error{Code: fault.FSTooLarge,
		Message: fmt.Sprintf("cannot %s %q: content exceeds the %d-byte limit", op, display, limit)}, op, display)
}
