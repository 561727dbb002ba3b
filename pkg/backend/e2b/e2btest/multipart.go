package e2btest

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"

	"github.com/afield-dev/afield/pkg/backend/e2b/wire"
)

// storeParts writes the files of a form. The name of a part is the path, with
// its folders, unless the query has one.
func (c *call) storeParts(body io.Reader, boundary, path string, meta map[string]string) ([]wire.WriteInfo, error) {
	var infos []wire.WriteInfo
	seen := map[string]bool{}
	for parts := multipart.NewReader(body, boundary); ; {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return infos, nil
		} else if err != nil {
			return nil, fail(wire.CodeInvalidArgument, "error parsing form: %s", err)
		}
		if part.FormName() != "file" {
			continue
		}
		name := path
		if name == "" {
			// Part.FileName would cut the folders off.
			_, params, _ := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
			name = params["filename"]
		}
		if seen[name] {
			return nil, fail(wire.CodeInvalidArgument, "you cannot upload multiple files to the same path '%s'", name)
		}
		seen[name] = true
		info, err := c.store(name, part, meta)
		if err != nil {
			return nil, err
		}
		infos = append(infos, info)
	}
}
