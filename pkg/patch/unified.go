package patch

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Hunk is a part of a unified diff. Lines have their mark (blank, "-" or "+") and
// no end; a line without a line feed at the end of the file is marked so.
type Hunk struct {
	Start int // of the old lines, from 1; 0 where there are none
	Lines []Line
}

// Line is a line of a hunk.
type Line struct {
	Mark  byte
	Text  string
	NoEnd bool
}

// ParseUnified reads a unified diff of any number of files, as diff -u and git
// diff write it. strip is how many leading parts of the names to take away; -1
// takes "a/" and "b/" away.
func ParseUnified(text string, strip int) ([]Change, error) {
	lines := strings.Split(text, "\n")
	if n := len(lines) - 1; lines[n] == "" {
		lines = lines[:n]
	}
	var changes []Change
	for i := 0; i < len(lines); {
		switch {
		case strings.HasPrefix(lines[i], "Binary files "), strings.HasPrefix(lines[i], "GIT binary patch"):
			return nil, fmt.Errorf("line %d: binary changes cannot be applied", i+1)
		case strings.HasPrefix(lines[i], "@@ "):
			return nil, fmt.Errorf("line %d: a hunk without a file", i+1)
		case !strings.HasPrefix(lines[i], "--- ") || i+1 == len(lines) || !strings.HasPrefix(lines[i+1], "+++ "):
			i++
			continue
		}
		c, next, err := parseFile(lines, i, strip)
		if err != nil {
			return nil, err
		}
		changes = append(changes, c)
		i = next
	}
	if len(changes) == 0 {
		return nil, errors.New("there is no change in it")
	}
	return changes, nil
}

// parseFile reads the two names at line i and the hunks behind them.
func parseFile(lines []string, i, strip int) (Change, int, error) {
	from, err1 := fileName(lines[i][4:], strip)
	to, err2 := fileName(lines[i+1][4:], strip)
	if err := errors.Join(err1, err2); err != nil {
		return Change{}, 0, fmt.Errorf("line %d: %w", i+1, err)
	}
	c := Change{Path: to}
	switch {
	case from == "" && to == "":
		return c, 0, fmt.Errorf("line %d: a change of no file", i+1)
	case to == "":
		c.Path, c.Remove = from, true
	case from != "" && from != to:
		return c, 0, fmt.Errorf("line %d: %q becomes %q: renamed files cannot be patched", i+1, from, to)
	}
	for i += 2; i < len(lines) && strings.HasPrefix(lines[i], "@@ "); {
		h, next, err := parseHunk(lines, i)
		if err != nil {
			return c, 0, err
		}
		c.Hunks = append(c.Hunks, h)
		i = next
	}
	if len(c.Hunks) == 0 {
		return c, 0, fmt.Errorf("line %d: no hunk for %q", i, c.Path)
	}
	if from == "" {
		text, err := applyHunks("", c.Hunks)
		if err != nil {
			return c, 0, fmt.Errorf("line %d: %w", i, err)
		}
		c.Content, c.Absent, c.Hunks = &text, true, nil
	}
	return c, i, nil
}

// fileName gives the name of a header line; "" is /dev/null.
func fileName(s string, strip int) (string, error) {
	if strings.HasPrefix(s, `"`) {
		quoted, err := strconv.QuotedPrefix(s)
		if err != nil {
			return "", fmt.Errorf("the name %q cannot be read", s)
		}
		s, _ = strconv.Unquote(quoted)
	} else {
		s, _, _ = strings.Cut(s, "\t")
		s = strings.TrimSuffix(s, "\r")
	}
	if s == "/dev/null" {
		return "", nil
	}
	if strip < 0 {
		if rest, ok := strings.CutPrefix(s, "a/"); ok {
			s = rest
		} else {
			s = strings.TrimPrefix(s, "b/")
		}
	}
	for range max(strip, 0) {
		_, rest, ok := strings.Cut(s, "/")
		if !ok {
			return "", fmt.Errorf("the name %q has fewer parts than are to be taken away", s)
		}
		s = rest
	}
	if s == "" || strings.IndexByte(s, 0) >= 0 {
		return "", errors.New("a file without a usable name")
	}
	return s, nil
}

// parseHunk reads "@@ -start,count +start,count @@" and its lines.
func parseHunk(lines []string, i int) (Hunk, int, error) {
	bad := fmt.Errorf("line %d: %.60q is no head of a hunk", i+1, lines[i])
	w := strings.Fields(lines[i])
	if len(w) < 4 || w[3] != "@@" || w[1][0] != '-' || w[2][0] != '+' {
		return Hunk{}, 0, bad
	}
	start, old, err1 := hunkRange(w[1][1:])
	_, added, err2 := hunkRange(w[2][1:])
	if err1 != nil || err2 != nil {
		return Hunk{}, 0, bad
	}
	h := Hunk{Start: start}
	for i++; old > 0 || added > 0; i++ {
		if i == len(lines) {
			return h, 0, fmt.Errorf("line %d: the hunk ends early", i)
		}
		mark, text := byte(' '), ""
		if lines[i] != "" { // some programs take the blank of an empty line away
			mark, text = lines[i][0], lines[i][1:]
		}
		switch mark {
		case ' ':
			old, added = old-1, added-1
		case '-':
			old--
		case '+':
			added--
		case '\\':
			h.noEnd()
			continue
		default:
			return h, 0, fmt.Errorf("line %d: %.60q is no line of a hunk", i+1, lines[i])
		}
		if old < 0 || added < 0 {
			return h, 0, fmt.Errorf("line %d: the hunk has more lines than it says", i+1)
		}
		h.Lines = append(h.Lines, Line{Mark: mark, Text: text})
	}
	if i < len(lines) && strings.HasPrefix(lines[i], `\`) {
		h.noEnd()
		i++
	}
	return h, i, nil
}

func (h *Hunk) noEnd() {
	if n := len(h.Lines); n > 0 {
		h.Lines[n-1].NoEnd = true
	}
}

// maxLines bounds the numbers of a hunk.
const maxLines = 1 << 28

func hunkRange(s string) (start, count int, err error) {
	a, b, both := strings.Cut(s, ",")
	count = 1
	if start, err = strconv.Atoi(a); err == nil && both {
		count, err = strconv.Atoi(b)
	}
	if err == nil && (start < 0 || count < 0 || start > maxLines || count > maxLines) {
		err = errors.New("out of range")
	}
	return start, count, err
}

// applyHunks gives the text after the hunks. A hunk that is not where it says is
// looked for nearby, exactly as it stands; new lines get the ends that the file
// has most.
func applyHunks(before string, hunks []Hunk) (string, error) {
	lines := strings.SplitAfter(before, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	end := "\n"
	if n := strings.Count(before, "\r\n"); n > strings.Count(before, "\n")-n {
		end = "\r\n"
	}
	var b strings.Builder
	at, shift := 0, 0 // of the old lines
	for n, h := range hunks {
		start := h.Start - 1
		if h.old() == 0 {
			start = h.Start
		}
		found := find(lines, h, start+shift, at)
		if found < 0 {
			return "", fmt.Errorf("hunk %d does not match the file", n+1)
		}
		shift = found - start
		for ; at < found; at++ {
			b.WriteString(lines[at])
		}
		at = h.write(&b, lines, at, end)
	}
	for ; at < len(lines); at++ {
		b.WriteString(lines[at])
	}
	return b.String(), nil
}

// old counts the lines that a hunk wants to find.
func (h *Hunk) old() int {
	n := 0
	for _, l := range h.Lines {
		if l.Mark != '+' {
			n++
		}
	}
	return n
}

// write writes the new lines; kept ones are those of the file itself.
func (h *Hunk) write(b *strings.Builder, lines []string, at int, end string) int {
	for _, l := range h.Lines {
		switch l.Mark {
		case ' ':
			b.WriteString(lines[at])
			at++
		case '-':
			at++
		default:
			text := strings.TrimSuffix(l.Text, "\r")
			if end == "\n" {
				text = l.Text
			}
			b.WriteString(text)
			if !l.NoEnd {
				b.WriteString(end)
			}
		}
	}
	return at
}

// find gives where a hunk matches: at the wanted place, else the nearest one from
// the line min on; -1 for none.
func find(lines []string, h Hunk, want, min int) int {
	last := len(lines) - h.old()
	if h.old() == 0 {
		if want >= min && want <= last {
			return want
		}
		return -1
	}
	for d := 0; want-d >= min || want+d <= last; d++ {
		if p := want - d; p >= min && p <= last && matches(lines[p:], h) {
			return p
		}
		if p := want + d; p >= min && p <= last && matches(lines[p:], h) {
			return p
		}
	}
	return -1
}

func matches(lines []string, h Hunk) bool {
	i := 0
	for _, l := range h.Lines {
		if l.Mark == '+' {
			continue
		}
		line, ended := strings.CutSuffix(lines[i], "\n")
		if ended == l.NoEnd || line != l.Text && strings.TrimSuffix(line, "\r") != l.Text {
			return false
		}
		i++
	}
	return true
}
