package shell

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/afield-dev/afield/pkg/remoteexec"
)

// unavailable stands for the path of output that nothing holds.
const unavailable = "(unavailable)"

// Render gives a result as one text for a reader (SH-8).
func Render(r Result) string {
	var b lines
	b.stream(r.Stdout)
	if r.Stderr.Text != "" {
		b.line("[stderr]")
		b.stream(r.Stderr)
	}
	if b.text.Len() == 0 {
		b.text.WriteString("(no output)")
	}
	if r.TimedOut {
		b.line(fmt.Sprintf("[timed out after %dms]", r.Timeout.Milliseconds()))
	}
	switch {
	case r.Outcome.Signal != "":
		b.line("[killed by signal: " + r.Outcome.Signal + "]")
	case r.Outcome.ExitCode != 0:
		b.line(fmt.Sprintf("[exit code: %d]", r.Outcome.ExitCode))
	}
	return strings.TrimSuffix(b.text.String(), b.end)
}

// lines is a text that is made of streams and of lines of our own.
type lines struct {
	text strings.Builder
	last byte
	end  string // the line break after a line of ours
}

func (b *lines) write(s string) {
	if s != "" {
		b.text.WriteString(s)
		b.last, b.end = s[len(s)-1], ""
	}
}

// line adds a line of our own, after a line break where one is needed.
func (b *lines) line(s string) {
	if b.text.Len() > 0 && b.last != '\n' {
		b.write("\n")
	}
	b.write(s + "\n")
	b.end = "\n"
}

func (b *lines) stream(c remoteexec.TextChunk) {
	b.write(c.Text)
	if c.Lossy {
		path := c.SpillPath
		if path == "" {
			path = unavailable
		}
		b.line("[output truncated; full output: " + path + "]")
	}
}

// Parse reads the outcome back from a rendered text: only a last line that
// follows a line break counts; without one the command exited with 0 (SH-9).
func Parse(text string) remoteexec.Outcome {
	at := strings.LastIndexByte(text, '\n')
	if at < 0 {
		return remoteexec.Outcome{}
	}
	last := text[at+1:]
	if name, ok := bracketed(last, "[killed by signal: "); ok && name != "" {
		return remoteexec.Outcome{Signal: name}
	}
	if digits, ok := bracketed(last, "[exit code: "); ok {
		if code, err := strconv.Atoi(digits); err == nil && code >= 0 && code <= 255 {
			return remoteexec.Outcome{ExitCode: code}
		}
	}
	return remoteexec.Outcome{}
}

func bracketed(line, before string) (string, bool) {
	rest, ok := strings.CutPrefix(line, before)
	if !ok {
		return "", false
	}
	return strings.CutSuffix(rest, "]")
}
