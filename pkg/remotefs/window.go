package remotefs

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/afield-dev/afield/pkg/fault"
)

// Defaults of a read window (remotefs.md 15).
const (
	DefaultReadLimit         = 2000
	DefaultReadMaxLineLength = 2000
	DefaultReadMaxBytes      = 51_200
)

// WindowOptions choose the lines of one view.
type WindowOptions struct {
	Offset int // the first line, counted from 1
	Limit  int // at most so many lines

	MaxLimit      int // the largest Limit; 0 = DefaultReadLimit
	MaxLineLength int // UTF-16 units kept of one line; 0 = DefaultReadMaxLineLength
	MaxBytes      int // cap on the selected lines; 0 = DefaultReadMaxBytes
}

// Check fills in the defaults of the caps. A bad offset or limit is a usage
// error (case 269).
func (o WindowOptions) Check() (WindowOptions, error) {
	for _, cap := range []struct {
		value    *int
		fallback int
	}{{&o.MaxLimit, DefaultReadLimit}, {&o.MaxLineLength, DefaultReadMaxLineLength}, {&o.MaxBytes, DefaultReadMaxBytes}} {
		if *cap.value <= 0 {
			*cap.value = cap.fallback
		}
	}
	switch {
	case o.Offset < 1:
		return o, fault.New(fault.Usage, "read", "", "offset must be a positive integer")
	case o.Limit < 1:
		return o, fault.New(fault.Usage, "read", "", "limit must be a positive integer")
	case o.Limit > o.MaxLimit:
		return o, fault.New(fault.Usage, "read", "", "limit must be less than or equal to %d", o.MaxLimit)
	}
	return o, nil
}

// WindowLine is a numbered line, cut to the line length, without line ending.
type WindowLine struct {
	Number int
	Text   string
}

// Window is what one view shows of a text.
type Window struct {
	Offset int
	Limit  int
	Lines  []WindowLine
	// Total counts all lines of the text.
	Total int
	// Capped says that the byte cap ended the window.
	Capped bool
	// BOM says that the text begins with a byte-order mark, which no line shows.
	BOM bool
}

// End is the number of the last line shown, or Offset-1.
func (w Window) End() int { return w.Offset - 1 + len(w.Lines) }

// NextOffset is where to go on reading; 0 at the end of the file.
func (w Window) NextOffset() int {
	if w.End() < w.Total {
		return w.End() + 1
	}
	return 0
}

// Render gives the text of a view, without a line feed at its end.
func (w Window) Render(display string) string {
	var b strings.Builder
	b.WriteString("<path>" + display + "</path>\n<type>file</type>\n<content>\n")
	for _, l := range w.Lines {
		b.WriteString(strconv.Itoa(l.Number))
		b.WriteString(": ")
		b.WriteString(l.Text)
		b.WriteByte('\n')
	}
	if len(w.Lines) > 0 {
		b.WriteByte('\n')
	}
	b.WriteString(w.footer())
	b.WriteString("\n</content>")
	return b.String()
}

func (w Window) footer() string {
	end := w.End()
	switch {
	case w.Capped:
		return fmt.Sprintf("(Output capped. Showing lines %d-%d. Use offset=%d to continue.)", w.Offset, end, end+1)
	case end < w.Total:
		return fmt.Sprintf("(Showing lines %d-%d of %d. Use offset=%d to continue.)", w.Offset, end, w.Total, end+1)
	default:
		return fmt.Sprintf("(End of file - total %d lines)", w.Total)
	}
}

// windower builds a window from the pieces of a text. It keeps the selected
// lines and at most a bounded part of the current one.
type windower struct {
	opts  WindowOptions
	win   Window
	bytes int    // cost of the selected lines
	line  []byte // beginning of the current line, if it is selected
	more  bool   // the current line went on after what line holds
	open  bool   // the current line has begun
	begun bool   // the text has begun
}

func newWindower(opts WindowOptions) *windower {
	return &windower{opts: opts, win: Window{Offset: opts.Offset, Limit: opts.Limit}}
}

// write takes a piece of the text, the first of which holds the byte-order mark
// if there is one.
func (w *windower) write(p []byte) {
	if !w.begun {
		w.begun, w.win.BOM = true, bytes.HasPrefix(p, byteOrderMark)
		p = bytes.TrimPrefix(p, byteOrderMark)
	}
	for len(p) > 0 {
		if w.full() {
			w.win.Total += bytes.Count(p, []byte{'\n'})
			w.open = p[len(p)-1] != '\n'
			return
		}
		part, rest, ended := bytes.Cut(p, []byte{'\n'})
		p = rest
		w.open = true
		if w.win.Total+1 >= w.opts.Offset {
			w.keep(part, ended)
		}
		if ended {
			w.win.Total++
			w.open = false
		}
	}
}

// full reports whether the current line and all after it are only counted.
func (w *windower) full() bool {
	return w.win.Capped || len(w.win.Lines) == w.opts.Limit
}

// keep adds part to the current line and selects the line when it has ended.
func (w *windower) keep(part []byte, ended bool) {
	if ended && len(w.line) == 0 {
		w.take(part, false)
		return
	}
	// A unit takes at most three bytes: what is kept is always longer than the
	// line length when something is dropped.
	if room := 3*(w.opts.MaxLineLength+1) + 1 - len(w.line); len(part) > room {
		part, w.more = part[:room], true
	}
	w.line = append(w.line, part...)
	if ended {
		w.take(w.line, w.more)
		w.line, w.more = w.line[:0], false
	}
}

// take selects a line unless it would pass the cap.
func (w *windower) take(line []byte, more bool) {
	if !more {
		line = bytes.TrimSuffix(line, []byte{'\r'})
	}
	text := CutLine(line, w.opts.MaxLineLength)
	cost := len(text)
	if len(w.win.Lines) > 0 {
		cost++
	}
	if w.bytes+cost > w.opts.MaxBytes {
		w.win.Capped = true
		return
	}
	w.bytes += cost
	w.win.Lines = append(w.win.Lines, WindowLine{w.opts.Offset + len(w.win.Lines), text})
}

// finish ends the text and gives the window.
func (w *windower) finish(display string) (Window, error) {
	if w.open {
		if !w.full() && w.win.Total+1 >= w.opts.Offset {
			w.take(w.line, w.more)
		}
		w.win.Total++
	}
	if total := w.win.Total; w.opts.Offset > total && (total > 0 || w.opts.Offset > 1) {
		return Window{}, fault.New(fault.FSNotFound, "read", display, "offset %d is out of range for %q (%d lines)",
			w.opts.Offset, display, total)
	}
	return w.win, nil
}

// CutLine keeps the first max UTF-16 units of a line and says when it cut. No
// surrogate pair is split (cases 257 to 261).
func CutLine(line []byte, max int) string {
	if len(line) <= max {
		return string(line)
	}
	text, units := string(line), 0
	for i, r := range text {
		units++
		if r > 0xFFFF {
			units++
		}
		if units > max {
			return text[:i] + LineCutSuffix(max)
		}
	}
	return text
}

// LineCutSuffix is what follows a line that was cut after max units.
func LineCutSuffix(max int) string {
	return "... (line truncated to " + strconv.Itoa(max) + " chars)"
}
