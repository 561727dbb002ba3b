package provider

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"strings"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// WriteText sends content behind the call; it is published after its end only.
func (f *Files) WriteText(ctx context.Context, at remotefs.At, w remotefs.WriteRequest) (remotefs.WriteOutcome, error) {
	p := writeParams{atParams: atParams{f.world, f.at(at)}, Bytes: size(w.Size), Raw: w.Raw, Version: w.Version, InPlace: w.InPlace, Nonce: nonce()}
	if w.Mode >= 0 {
		p.Mode = &w.Mode
	}
	switch w.Intent {
	case remotefs.IntentCreate:
		p.Intent = "create"
	case remotefs.IntentReplace:
		p.Intent = "replace"
	}
	after := &keeper{max: w.BasisMax}
	if w.BasisMax > 0 {
		p.Want, p.BasisMax = []string{"before"}, w.BasisMax
	}
	s, err := f.call(ctx, "fs.write", "write", nameOf(at), p)
	if err != nil {
		return remotefs.WriteOutcome{}, err
	}
	n, err := f.send(ctx, s, io.TeeReader(w.Content, after))
	if err != nil {
		return remotefs.WriteOutcome{}, err
	}
	before, lost := receive(ctx, s, max(w.BasisMax, 0))
	var r writeResult
	if err := f.result(ctx, s, "write", nameOf(at), &r); err != nil {
		return remotefs.WriteOutcome{}, err
	}
	out := remotefs.WriteOutcome{Target: r.Target.decode(), Operation: r.Operation, Version: r.Version, Bytes: n, After: after.folded()}
	if r.Before != nil && lost == nil && int64(len(before)) == r.Before.Bytes {
		text := string(before)
		out.Before = &text
	}
	return out, nil
}

// send copies content to the call's input and ends it. Content that cannot be
// read cancels the call; a serving side that has ended it keeps its result. A
// call that has ended, or whose ctx has, is not held up by content that does not
// come: the copy then ends with its next piece.
func (f *Files) send(ctx context.Context, s *Stream, content io.Reader) (int64, error) {
	stop := context.AfterFunc(ctx, func() { s.Cancel(); s.Writer(PortInput).Close() })
	defer stop()
	type copied struct {
		n           int64
		read, write error
	}
	done := make(chan copied, 1)
	go func() {
		in := &source{Reader: content}
		n, err := io.CopyBuffer(struct{ io.Writer }{s.Writer(PortInput)}, in, make([]byte, MaxData))
		done <- copied{n, in.err, err}
	}()
	var c copied
	select {
	case c = <-done:
	case <-s.Ended():
		return 0, nil
	case <-ctx.Done():
		return 0, nil
	}
	if c.read != nil && ctx.Err() == nil {
		s.Cancel()
		s.Result(ctx, nil)
		return c.n, fault.Wrap(c.read, fault.FSIOError, "write", "", "cannot read the content to write: %s", c.read)
	}
	if c.write == nil && ctx.Err() == nil {
		c.write = s.Writer(PortInput).Close()
	}
	if c.write != nil && !errors.Is(c.write, io.ErrClosedPipe) {
		return c.n, s.Result(ctx, nil)
	}
	return c.n, nil
}

// source remembers that reading, not writing, has failed.
type source struct {
	io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// keeper keeps what passes, as long as it is smaller than its limit.
type keeper struct {
	max  int64
	b    []byte
	over bool
}

func (k *keeper) Write(p []byte) (int, error) {
	if k.over = k.over || int64(len(k.b)+len(p)) >= k.max; k.over {
		k.b = nil
	} else {
		k.b = append(k.b, p...)
	}
	return len(p), nil
}

// folded gives the text with CR LF folded to LF, nil where it was not kept.
func (k *keeper) folded() *string {
	if k.over || k.max <= 0 {
		return nil
	}
	text := strings.ReplaceAll(string(k.b), "\r\n", "\n")
	return &text
}

func nonce() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// EditText sends the texts behind the call.
func (f *Files) EditText(ctx context.Context, at remotefs.At, e remotefs.EditRequest) (remotefs.EditOutcome, error) {
	if special := len(e.Edits) != 1 || e.NormalizeEOL || e.DryRun || e.InPlace; special && !f.edits {
		return remotefs.EditOutcome{}, fault.New(fault.BackendUnsupported, "edit", nameOf(at), "this provider takes one plain edit in a call")
	}
	p := editParams{atParams: atParams{f.world, f.at(at)}, Version: e.Version, NormalizeEOL: e.NormalizeEOL, DryRun: e.DryRun, InPlace: e.InPlace, Nonce: nonce()}
	var texts strings.Builder
	for i, x := range e.Edits {
		texts.WriteString(x.Old)
		texts.WriteString(x.New)
		sizes := editSizes{int64(len(x.Old)), int64(len(x.New)), x.All}
		if i == 0 {
			p.editSizes = sizes
		} else {
			p.More = append(p.More, sizes)
		}
	}
	if e.BasisMax > 0 {
		p.Want, p.BasisMax = []string{"before", "after"}, e.BasisMax
	}
	s, err := f.call(ctx, "fs.edit", "edit", nameOf(at), p)
	if err != nil {
		return remotefs.EditOutcome{}, err
	}
	if _, err := f.send(ctx, s, strings.NewReader(texts.String())); err != nil {
		return remotefs.EditOutcome{}, err
	}
	return f.editOutcome(ctx, s, at, e.BasisMax)
}

func (f *Files) editOutcome(ctx context.Context, s *Stream, at remotefs.At, basisMax int64) (remotefs.EditOutcome, error) {
	texts, lost := receive(ctx, s, min(max(basisMax, 0), math.MaxInt32)*2)
	var r editResult
	if err := f.result(ctx, s, "edit", nameOf(at), &r); err != nil {
		return remotefs.EditOutcome{}, err
	}
	out := remotefs.EditOutcome{Target: r.Target.decode(), Version: r.Version, Bytes: r.Bytes, Replacements: r.Replacements}
	if basisMax > 0 && r.Basis && lost == nil && int64(len(texts)) == r.BeforeBytes+r.AfterBytes {
		before, after := string(texts[:r.BeforeBytes]), string(texts[r.BeforeBytes:])
		out.Before, out.After = &before, &after
	}
	return out, nil
}
