package patch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/afield-dev/afield/pkg/remotefs"
)

// fileChange is the JSON of one change.
type fileChange struct {
	Path      string     `json:"path"`
	IfVersion string     `json:"ifVersion"`
	IfAbsent  bool       `json:"ifAbsent"`
	Content   *string    `json:"content"`
	Edits     []fileEdit `json:"edits"`
	Remove    bool       `json:"remove"`
}

type fileEdit struct {
	Old string `json:"old"`
	New string `json:"new"`
	All bool   `json:"all"`
}

// ParseJSON reads a list of changes:
// [{"path", "ifVersion" or "ifAbsent", and one of "content", "edits", "remove"}, …].
func ParseJSON(text []byte) ([]Change, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	var list []fileChange
	if err := dec.Decode(&list); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one list")
	}
	if len(list) == 0 {
		return nil, errors.New("there is no change in it")
	}
	changes := make([]Change, len(list))
	for i, f := range list {
		if err := f.check(); err != nil {
			return nil, fmt.Errorf("change %d: %w", i+1, err)
		}
		c := Change{Path: f.Path, Version: f.IfVersion, Absent: f.IfAbsent, Content: f.Content, Remove: f.Remove}
		for _, e := range f.Edits {
			c.Edits = append(c.Edits, remotefs.Edit{Old: e.Old, New: e.New, All: e.All})
		}
		changes[i] = c
	}
	return changes, nil
}

func (f *fileChange) check() error {
	kinds := 0
	for _, has := range []bool{f.Content != nil, len(f.Edits) > 0, f.Remove} {
		if has {
			kinds++
		}
	}
	switch {
	case remotefs.Blank(f.Path):
		return errors.New("path is missing")
	case kinds != 1:
		return errors.New("exactly one of content, edits and remove is needed")
	case f.IfAbsent && (f.IfVersion != "" || f.Content == nil):
		return errors.New("ifAbsent goes with content alone")
	}
	return nil
}
