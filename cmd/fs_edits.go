package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"unicode/utf16"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// readEdits gives the edits that the flags ask for, checked.
func (a *app) readEdits(ctx context.Context, opts fsEditOptions) ([]remotefs.Edit, error) {
	if opts.editsFile == "" {
		edit, err := a.readEdit(ctx, opts)
		if err != nil {
			return nil, err
		}
		return []remotefs.Edit{edit}, checkEdit(edit)
	}
	text, err := a.readHostText(ctx, opts.editsFile)
	if err != nil {
		return nil, err
	}
	edits, err := parseEdits([]byte(text))
	if err != nil {
		return nil, usage("cannot use --edits %q: %s", opts.editsFile, err).
			WithHint(`the file holds a JSON list of {"old": TEXT, "new": TEXT, "all": true or false}`)
	}
	return edits, nil
}

// readEdit gives the one edit of --old and --new.
func (a *app) readEdit(ctx context.Context, opts fsEditOptions) (remotefs.Edit, error) {
	edit := opts.edit
	for _, source := range []struct {
		file string
		text *string
	}{{opts.oldFile, &edit.Old}, {opts.newFile, &edit.New}} {
		if source.file == "" {
			continue
		}
		text, err := a.readHostText(ctx, source.file)
		if err != nil {
			return edit, err
		}
		*source.text = text
	}
	return edit, nil
}

// checkEdit refuses an edit that cannot apply (remotefs.md 16).
func checkEdit(e remotefs.Edit) error {
	switch {
	case e.Old == "":
		return usage("old_string must be a non-empty string")
	case e.Old == e.New:
		return usage("old_string and new_string must differ")
	}
	return nil
}

// parseEdits reads a list of edits strictly: no unknown or missing key, nothing
// after the list, no text that JSON cannot carry unchanged.
func parseEdits(data []byte) ([]remotefs.Edit, error) {
	var list []struct {
		Old *string `json:"old"`
		New *string `json:"new"`
		All bool    `json:"all"`
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&list); err != nil {
		return nil, jsonProblem(data, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more after the list")
	}
	if len(list) == 0 {
		return nil, errors.New("the list is empty")
	}
	if at := loneSurrogate(data); at >= 0 {
		return nil, usage("%s: half a surrogate pair", position(data, at))
	}
	edits := make([]remotefs.Edit, len(list))
	for i, e := range list {
		if e.Old == nil || e.New == nil {
			return nil, usage(`edit %d needs "old" and "new"`, i+1)
		}
		edits[i] = remotefs.Edit{Old: *e.Old, New: *e.New, All: e.All}
		if err := checkEdit(edits[i]); err != nil {
			return nil, fault.Wrap(err, fault.Usage, "", "", "edit %d: %s", i+1, err)
		}
	}
	return edits, nil
}

// jsonProblem gives the position of a syntax error.
func jsonProblem(data []byte, err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return usage("%s: %s", position(data, int(syntax.Offset)-1), err)
	}
	return err
}

// position gives line and column of an offset, counted from 1.
func position(data []byte, offset int) string {
	before := data[:min(max(offset, 0), len(data))]
	line := bytes.Count(before, []byte{'\n'}) + 1
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return "line " + strconv.Itoa(line) + ", column " + strconv.Itoa(column)
}

// loneSurrogate gives the offset of an escaped surrogate without its other
// half, which decoding would silently replace; -1 if there is none.
func loneSurrogate(data []byte) int {
	for i := 0; i+1 < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		r, ok := escapedUnit(data[i:])
		switch {
		case !ok || !utf16.IsSurrogate(r):
			i++
		default:
			low, ok := escapedUnit(data[i+6:])
			if !ok || utf16.DecodeRune(r, low) == '\uFFFD' {
				return i
			}
			i += 11
		}
	}
	return -1
}

// escapedUnit reads \uXXXX at the start of data.
func escapedUnit(data []byte) (rune, bool) {
	if len(data) < 6 || data[0] != '\\' || data[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(data[2:6]), 16, 32)
	return rune(n), err == nil
}
