package cmd

import (
	"bytes"
	"strings"

	"github.com/afield-dev/afield/pkg/diff"
)

// diffContext is how many unchanged lines stand around a change.
const diffContext = 3

// hunkResult is one hunk of a diff in JSON: the lines of each side joined by
// line feeds, null where a side has none (remotefs.md 16).
type hunkResult struct {
	Path    string  `json:"path"`
	OldText *string `json:"oldText"`
	NewText *string `json:"newText"`
}

// newHunks gives the change as data. Without a text before, or without a change,
// a write shows its whole content as new.
func newHunks(path string, before, after *string) []hunkResult {
	if after == nil {
		return nil
	}
	hunks := []hunkResult{}
	if before != nil {
		for _, h := range diff.Hunks(*before, *after, diffContext) {
			hunks = append(hunks, hunkResult{path, h.OldText(), h.NewText()})
		}
	}
	if len(hunks) == 0 {
		text := strings.TrimSuffix(*after, "\n")
		hunks = append(hunks, hunkResult{path, nil, &text})
	}
	return hunks
}

// writeDiff writes the change for a person, in colour on a terminal.
func (a *app) writeDiff(path string, before, after *string) error {
	if after == nil {
		return nil
	}
	old, oldName := "", "/dev/null"
	if before != nil {
		old, oldName = *before, path
	}
	var b bytes.Buffer
	if err := diff.WriteUnified(&b, oldName, path, diff.Hunks(old, *after, diffContext)); err != nil {
		return err
	}
	_, err := a.Out.Write([]byte(a.paintDiff(b.String())))
	return err
}

// paintDiff colours the lines of a unified diff.
func (a *app) paintDiff(text string) string {
	if !a.wantsColor() {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		body, end := strings.CutSuffix(line, "\n")
		switch line[0] {
		case '+':
			body = a.paint(green, body)
		case '-':
			body = a.paint(red, body)
		case '@':
			body = a.paint(cyan, body)
		}
		b.WriteString(body)
		if end {
			b.WriteByte('\n')
		}
	}
	return b.String()
}
