package wire

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Limits of the files API.
const (
	MaxRange       = 8 << 20   // bytes of one ranged read
	MaxUpload      = 100 << 20 // bytes of one uploaded file
	MaxUploadFiles = 10        // files of one upload
)

// bulkLimit bounds one transfer of content.
const bulkLimit = 10 * time.Minute

// ReadRange gives up to length bytes of a file from offset on. Fewer mean that
// the file ends there. length must not be above MaxRange.
func (c *Client) ReadRange(ctx context.Context, id, path string, offset, length int64) ([]byte, error) {
	if offset < 0 || length < 0 || length > MaxRange {
		return nil, &Error{Text: fmt.Sprintf("a range of %d bytes at %d is not possible", length, offset)}
	}
	q := url.Values{"path": {path}, "encoding": {"base64"},
		"offset": {strconv.FormatInt(offset, 10)}, "length": {strconv.FormatInt(length, 10)}}
	content, err := c.content(ctx, id, q)
	if err == nil && int64(len(content)) > length {
		return nil, &Error{Status: http.StatusOK, Sent: true, Corrupt: true,
			Text: fmt.Sprintf("the service gave %d bytes for a range of %d", len(content), length)}
	}
	return content, err
}

func (c *Client) content(ctx context.Context, id string, q url.Values) ([]byte, error) {
	route, err := boxPath(id, "/files/read")
	if err != nil {
		return nil, err
	}
	var reply struct {
		Content string `json:"content"`
	}
	if err := c.do(ctx, call{method: http.MethodGet, path: route, query: q, limit: bulkLimit}, &reply); err != nil {
		return nil, err
	}
	content, err := base64.StdEncoding.DecodeString(reply.Content)
	if err != nil {
		return nil, &Error{Status: http.StatusOK, Sent: true, Corrupt: true, Err: err,
			Text: "the content of a file is not base64"}
	}
	return content, nil
}

// Write stores a small file. It is neither atomic nor guarded.
func (c *Client) Write(ctx context.Context, id, path string, content []byte) error {
	return c.filesPost(ctx, id, "/files/write", map[string]string{
		"path": path, "content": base64.StdEncoding.EncodeToString(content), "encoding": "base64"})
}

// Mkdir makes a directory, and its parents if asked.
func (c *Client) Mkdir(ctx context.Context, id, path string, parents bool) error {
	return c.filesPost(ctx, id, "/files/mkdir", map[string]any{"path": path, "parents": parents})
}

// Rename gives a file another name.
func (c *Client) Rename(ctx context.Context, id, from, to string) error {
	return c.filesPost(ctx, id, "/files/rename", map[string]string{"from": from, "to": to})
}

// Remove removes a file, or a directory with what is in it if asked.
func (c *Client) Remove(ctx context.Context, id, path string, recursive bool) error {
	return c.filesPost(ctx, id, "/files/remove", map[string]any{"path": path, "recursive": recursive})
}

func (c *Client) filesPost(ctx context.Context, id, route string, body any) error {
	path, err := boxPath(id, route)
	if err != nil {
		return err
	}
	k, err := jsonCall(http.MethodPost, path, body)
	if err != nil {
		return &Error{Text: err.Error(), Err: err}
	}
	k.limit = bulkLimit
	return c.do(ctx, k, nil)
}

// FileInfo is what the files API knows of an entry. Its version has the
// resolution of seconds and is no guard.
type FileInfo struct {
	Type    string `json:"type"` // file, directory, symlink, other
	Size    int64  `json:"size"`
	ModTime string `json:"mod_time"`
	Inode   uint64 `json:"inode"`
	Version string `json:"version"`
}

// Stat looks at an entry, at what it points to if follow is set.
func (c *Client) Stat(ctx context.Context, id, path string, follow bool) (FileInfo, error) {
	route, err := boxPath(id, "/files/stat")
	if err != nil {
		return FileInfo{}, err
	}
	q := url.Values{"path": {path}}
	if follow {
		q.Set("follow", "true")
	}
	var info FileInfo
	err = c.do(ctx, call{method: http.MethodGet, path: route, query: q}, &info)
	return info, err
}

// FileEntry is one name of a listing of the files API, which knows no links.
type FileEntry struct {
	Name    string `json:"name"`
	Path    string `json:"path"`
	Size    int64  `json:"size"`
	IsDir   bool   `json:"is_dir"`
	ModTime string `json:"mod_time"`
}

// ListFiles gives the entries of a directory.
func (c *Client) ListFiles(ctx context.Context, id, folder string) ([]FileEntry, error) {
	route, err := boxPath(id, "/files/list")
	if err != nil {
		return nil, err
	}
	var reply struct {
		Files []FileEntry `json:"files"`
	}
	err = c.do(ctx, call{method: http.MethodGet, path: route, query: url.Values{"folder": {folder}}}, &reply)
	return reply.Files, err
}

// UploadFile is one file of an upload.
type UploadFile struct {
	Path    string
	Content []byte
}

// Upload stores files. Executable bits are lost. Its limits are checked before
// anything is sent.
func (c *Client) Upload(ctx context.Context, id string, files []UploadFile) error {
	route, err := boxPath(id, "/files/upload")
	if err != nil {
		return err
	}
	if len(files) == 0 || len(files) > MaxUploadFiles {
		return &Error{Text: fmt.Sprintf("an upload takes 1 to %d files", MaxUploadFiles)}
	}
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for _, f := range files {
		if len(f.Content) > MaxUpload {
			return &Error{Status: http.StatusRequestEntityTooLarge,
				Text: fmt.Sprintf("%q has %d bytes; an upload takes at most %d", f.Path, len(f.Content), MaxUpload)}
		}
		if err := addFile(form, f); err != nil {
			return &Error{Text: err.Error(), Err: err}
		}
	}
	if err := form.Close(); err != nil {
		return &Error{Text: err.Error(), Err: err}
	}
	k := call{method: http.MethodPost, path: route, body: body.Bytes(), ctype: form.FormDataContentType(), limit: bulkLimit}
	return c.do(ctx, k, nil)
}

// addFile writes the pair of fields that name and hold one file.
func addFile(form *multipart.Writer, f UploadFile) error {
	if err := form.WriteField("paths", f.Path); err != nil {
		return err
	}
	h := textproto.MIMEHeader{}
	h.Set("Content-Disposition", `form-data; name="files"; filename="`+quoteField(f.Path)+`"`)
	h.Set("Content-Type", "application/octet-stream")
	part, err := form.CreatePart(h)
	if err != nil {
		return err
	}
	_, err = io.Copy(part, bytes.NewReader(f.Content))
	return err
}

// quoteField escapes what would end a quoted parameter of a header.
func quoteField(s string) string {
	return strings.NewReplacer(`"`, "%22", "\r", "%0D", "\n", "%0A").Replace(s)
}

// Download gives the content of one file as a stream. The caller closes it.
func (c *Client) Download(ctx context.Context, id, path string) (io.ReadCloser, error) {
	route, err := boxPath(id, "/files/download")
	if err != nil {
		return nil, err
	}
	req, err := c.request(ctx, call{method: http.MethodGet, path: route, query: url.Values{"folder": {path}}})
	if err != nil {
		return nil, &Error{Text: err.Error(), Err: err}
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.failed(ctx, err, true)
	}
	c.trace("GET "+route, max(resp.ContentLength, 0))
	if resp.StatusCode/100 != 2 {
		defer resp.Body.Close()
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
		return nil, c.refused(resp, body)
	}
	return resp.Body, nil
}
