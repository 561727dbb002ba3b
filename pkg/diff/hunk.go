package diff

import (
	"fmt"
	"io"
	"strings"
)

// Op says what happened to a line.
type Op byte

// What happened to a line; the values are the marks of a unified diff.
const (
	Same   Op = ' '
	Remove Op = '-'
	Add    Op = '+'
)

// Line is a line of a hunk. Text has no line feed at its end.
type Line struct {
	Op   Op
	Text string
}

// Hunk is a change with the unchanged lines around it. The starts are the line
// numbers, counted from 1, of its first old and new line; where it has none of
// a side, the number of the line before.
type Hunk struct {
	OldStart, OldCount int
	NewStart, NewCount int
	Lines              []Line
}

// OldText gives the old lines of the hunk joined by line feeds, without one at
// the end; nil when there is none.
func (h Hunk) OldText() *string { return h.side(Add) }

// NewText gives the new lines likewise.
func (h Hunk) NewText() *string { return h.side(Remove) }

func (h Hunk) side(other Op) *string {
	var lines []string
	for _, l := range h.Lines {
		if l.Op != other {
			lines = append(lines, l.Text)
		}
	}
	if lines == nil {
		return nil
	}
	text := strings.Join(lines, "\n")
	return &text
}

// Hunks gives the changes from before to after with context unchanged lines
// around each. Changes separated by at most 2×context unchanged lines share a
// hunk (remotefs.md 16). Lines end at line feeds; a last line without one
// differs from the same line with one. Equal texts give none.
func Hunks(before, after string, context int) []Hunk {
	if before == after {
		return nil
	}
	old, new := split(before), split(after)
	c := changes{old: old, new: new, context: context}
	at, to := 0, 0
	for _, r := range Match(old, new) {
		c.change(at, r.Old, to, r.New)
		at, to = r.Old+r.Len, r.New+r.Len
	}
	c.change(at, len(old), to, len(new))
	c.flush()
	return c.hunks
}

// WriteUnified writes hunks in unified form, without a marker for a missing
// line feed at the end of the file.
func WriteUnified(w io.Writer, oldName, newName string, hunks []Hunk) error {
	if len(hunks) == 0 {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", oldName, newName)
	for _, h := range hunks {
		fmt.Fprintf(&b, "@@ -%s +%s @@\n", span(h.OldStart, h.OldCount), span(h.NewStart, h.NewCount))
		for _, l := range h.Lines {
			b.WriteByte(byte(l.Op))
			b.WriteString(l.Text)
			b.WriteByte('\n')
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func span(start, count int) string {
	if count == 1 {
		return fmt.Sprint(start)
	}
	return fmt.Sprintf("%d,%d", start, count)
}

// split keeps the line feed with its line.
func split(text string) []string {
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// changes joins changes that are near each other into hunks.
type changes struct {
	old, new []string
	context  int
	hunks    []Hunk
	open     bool
	hunk     Hunk
	at, to   int // the next old and new line after the open hunk
}

// change takes the old lines from..end, replaced by the new ones first..last.
func (c *changes) change(from, end, first, last int) {
	if from == end && first == last {
		return
	}
	lead := c.context
	if c.open && from-c.at <= 2*c.context {
		lead = from - c.at
	} else {
		c.flush()
		lead = min(lead, from)
		c.at, c.to, c.open = from-lead, first-lead, true
		c.hunk = Hunk{OldStart: c.at + 1, NewStart: c.to + 1}
	}
	c.same(lead)
	for ; c.at < end; c.at++ {
		c.put(Remove, c.old[c.at])
	}
	for ; c.to < last; c.to++ {
		c.put(Add, c.new[c.to])
	}
}

// same takes n unchanged lines.
func (c *changes) same(n int) {
	for range n {
		c.put(Same, c.old[c.at])
		c.at, c.to = c.at+1, c.to+1
	}
}

func (c *changes) put(op Op, line string) {
	c.hunk.Lines = append(c.hunk.Lines, Line{op, strings.TrimSuffix(line, "\n")})
	if op != Add {
		c.hunk.OldCount++
	}
	if op != Remove {
		c.hunk.NewCount++
	}
}

// flush closes the open hunk with context after its last change.
func (c *changes) flush() {
	if !c.open {
		return
	}
	c.same(min(c.context, len(c.old)-c.at))
	if c.hunk.OldCount == 0 {
		c.hunk.OldStart--
	}
	if c.hunk.NewCount == 0 {
		c.hunk.NewStart--
	}
	c.hunks, c.open = append(c.hunks, c.hunk), false
}
