package remotefs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/afield-dev/afield/pkg/fault"
)

// checkFirst is the amount of content that is checked before any I/O (design.md
// 4.24).
const checkFirst = 1 << 20

// content is what a write stores. It is an io.Reader that checks what passes:
// that it is text, unless raw, and that it has the announced size.
type content struct {
	op, display string
	raw         bool
	size        int64 // announced or known, or -1
	head        []byte
	rest        io.Reader // nil when head is all there is
	done        int64     // bytes handed out
	tail        [utf8.UTFMax]byte
	unfinished  int // bytes of an unfinished sequence in tail
	keep        *keeper
	patient     *patient
}

// newContent reads and checks the beginning of w.Content.
func newContent(ctx context.Context, display string, w WriteRequest) (*content, error) {
	c := &content{op: "write", display: display, raw: w.Raw, size: w.Size}
	src := w.Content
	if src == nil {
		src = bytes.NewReader(nil)
	}
	if _, quick := src.(interface{ Len() int }); !quick {
		enlargePipe(src)
		c.patient = newPatient(ctx, src)
		src = c.patient
	}
	var b bytes.Buffer
	_, err := b.ReadFrom(io.LimitReader(src, checkFirst+1))
	if err != nil {
		c.close()
		return nil, c.broken(ctx, err)
	}
	if c.head = b.Bytes(); len(c.head) > checkFirst {
		c.rest = src
	}
	if err := c.checkHead(); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// close ends the reading of the source.
func (c *content) close() {
	if c.patient != nil {
		c.patient.stop()
	}
}

// checkHead refuses what is no text before any I/O.
func (c *content) checkHead() error {
	end := len(c.head)
	if c.rest != nil {
		end -= unfinished(c.head)
	} else if err := c.checkSize(int64(end)); err != nil {
		return err
	} else {
		c.size = int64(end)
	}
	if c.raw {
		return nil
	}
	if !validText(c.head[:end]) {
		return notText(c.op, c.display, "the content is not UTF-8 text")
	}
	return nil
}

// whole reports whether all of the content is in memory.
func (c *content) whole() bool { return c.rest == nil }

// Read gives checked bytes.
func (c *content) Read(p []byte) (int, error) {
	if c.done < int64(len(c.head)) {
		n := copy(p, c.head[c.done:])
		return c.pass(p[:n])
	}
	if c.rest == nil {
		return 0, io.EOF
	}
	n, err := c.rest.Read(p)
	if n > 0 {
		return c.pass(p[:n])
	}
	if errors.Is(err, io.EOF) {
		return 0, c.end()
	}
	return 0, err
}

// pass checks a piece on its way.
func (c *content) pass(p []byte) (int, error) {
	c.done += int64(len(p))
	if c.size >= 0 && c.done > c.size {
		return 0, c.checkSize(c.done)
	}
	if c.rest != nil && !c.raw && !c.valid(p) {
		return 0, notText(c.op, c.display, "the content is not UTF-8 text")
	}
	if c.keep != nil {
		c.keep.add(p)
	}
	return len(p), nil
}

// valid reports whether p goes on what came before as text.
func (c *content) valid(p []byte) bool {
	for c.unfinished > 0 && len(p) > 0 {
		c.tail[c.unfinished] = p[0]
		c.unfinished++
		p = p[1:]
		if seq := c.tail[:c.unfinished]; utf8.FullRune(seq) {
			if !utf8.Valid(seq) {
				return false
			}
			c.unfinished = 0
		}
	}
	end := len(p) - unfinished(p)
	if end < len(p) {
		c.unfinished = copy(c.tail[:], p[end:])
	}
	return validText(p[:end])
}

// end is the verdict at the end of the source.
func (c *content) end() error {
	if c.unfinished > 0 {
		return notText(c.op, c.display, "the content is not UTF-8 text")
	}
	if err := c.checkSize(c.done); err != nil {
		return err
	}
	return io.EOF
}

// checkSize refuses content that is not what was announced.
func (c *content) checkSize(n int64) error {
	if c.size < 0 || n == c.size {
		return nil
	}
	return fault.New(fault.FSIOError, c.op, c.display,
		"cannot %s %q: the content does not have the announced %d bytes", c.op, c.display, c.size)
}

// broken is the error of a source that cannot be read.
func (c *content) broken(ctx context.Context, err error) error {
	if ctx.Err() != nil || fault.CodeOf(err) != "" {
		return failure(ctx, err, c.op, c.display)
	}
	return fault.Wrap(err, fault.FSIOError, c.op, c.display,
		"cannot %s %q: reading the content: %s", c.op, c.display, reason(err))
}

// keepUpTo remembers the content for an outcome, if it is smaller than max.
func (c *content) keepUpTo(max int64) {
	c.keep = &keeper{max: max}
}

// kept gives the remembered content, nil if there is none.
func (c *content) kept() []byte {
	if c.keep == nil || c.keep.over {
		return nil
	}
	if c.keep.bytes == nil {
		return []byte{}
	}
	return c.keep.bytes
}

// keeper collects less than max bytes.
type keeper struct {
	max   int64
	bytes []byte
	over  bool
}

func (k *keeper) add(p []byte) {
	if k.over || int64(len(k.bytes)+len(p)) >= k.max {
		k.over, k.bytes = true, nil
		return
	}
	k.bytes = append(k.bytes, p...)
}

// fold gives text with each CR LF as LF; a lone CR stays.
func fold(p []byte) []byte { return bytes.ReplaceAll(p, []byte("\r\n"), []byte("\n")) }

// folded gives the text of an outcome: nil stays nil.
func folded(p []byte) *string {
	if p == nil {
		return nil
	}
	s := string(fold(p))
	return &s
}

// priorText gives the text of a prior content for an outcome, nil if it is none
// (remotefs.md 7, step 4).
func priorText(p []byte) *string {
	if p == nil || bytes.IndexByte(p, 0) >= 0 || !validText(p) {
		return nil
	}
	return folded(bytes.TrimPrefix(p, byteOrderMark))
}

// checkMode refuses what is no file mode.
func checkMode(display string, mode int) error {
	if mode < -1 || mode > 0o777 {
		return fault.New(fault.Usage, "write", display, "the mode %o is not one of 0 to 0777", mode)
	}
	return nil
}
