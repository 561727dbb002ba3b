package remotefs

import (
	"context"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

func (c *core) ListDir(ctx context.Context, at At) (Target, []DirEntry, error) {
	ref, display, err := c.locate(ctx, "list", at)
	if err != nil {
		return Target{}, nil, err
	}
	key, found, err := c.driver.List(ctx, ref)
	if err != nil || ctx.Err() != nil {
		return Target{}, nil, failure(ctx, err, "list", display)
	}
	slices.SortFunc(found, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	entries := make([]DirEntry, 0, len(found))
	for _, e := range found {
		child := Target{Key: e.Key, Display: path.Join(display, e.Name)}
		if e.Err != nil {
			return Target{}, nil, failure(ctx, e.Err, "list", child.Display)
		}
		entries = append(entries, dirEntry(e, child))
	}
	return Target{Key: key, Display: display}, entries, nil
}

// dirEntry gives the entry by the table of remotefs.md 4. A name that is not
// text is reported lossy with its bytes beside it, and nothing else (S-6).
func dirEntry(e Entry, t Target) DirEntry {
	out := DirEntry{Name: e.Name, Type: TypeOther, Size: -1, Target: t}
	if !utf8.ValidString(e.Name) {
		out.RawName = []byte(e.Name)
		out.Name = strings.ToValidUTF8(e.Name, "\uFFFD")
		return out
	}
	if e.Info == nil {
		return out
	}
	out.Type, out.Version = e.Info.Type, e.Info.Version
	if out.Type == TypeFile {
		out.Size = e.Info.Size
	}
	return out
}
