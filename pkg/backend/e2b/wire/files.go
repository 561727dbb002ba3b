package wire

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// Download is an open file of the file API.
type Download struct {
	Body io.ReadCloser
	// Size is that of the body, -1 when the server does not say.
	Size int64
	// LastModified has whole seconds; "" = not given.
	LastModified string
}

// DownloadOptions are the exceptions from a plain download.
type DownloadOptions struct {
	// Gzip asks for a compressed answer and undoes it: the only way to read
	// files of /proc, which have no size.
	Gzip bool
	// Max bounds the transfer to the first Max bytes; 0 = all.
	Max int64
}

// filePath is the route of a file. Its user is named in the query: the file API
// takes no other.
func (c *Client) filePath(path string) string {
	v := url.Values{"path": {path}}
	if c.User != "" {
		v.Set("username", c.User)
	}
	return "/files?" + v.Encode()
}

// Download opens a file. The daemon reads it as root, and blocks on a FIFO:
// look at the type first. The caller closes the body.
func (c *Client) Download(ctx context.Context, path string, opts DownloadOptions) (*Download, error) {
	hr, err := c.request(ctx, http.MethodGet, c.filePath(path), nil, "")
	if err != nil {
		return nil, err
	}
	// Set by hand, Go's transport neither adds gzip nor undoes it.
	hr.Header.Set("Accept-Encoding", "identity")
	if opts.Gzip {
		hr.Header.Set("Accept-Encoding", "gzip")
	} else if opts.Max > 0 {
		hr.Header.Set("Range", fmt.Sprintf("bytes=0-%d", opts.Max-1))
	}
	res, err := c.HTTP.Do(hr)
	if err != nil {
		return nil, err
	}
	if res.StatusCode == http.StatusRequestedRangeNotSatisfiable {
		res.Body.Close()
		return &Download{Body: http.NoBody, LastModified: res.Header.Get("Last-Modified")}, nil
	}
	if err := refusal(res, "GET /files"); err != nil {
		res.Body.Close()
		return nil, err
	}
	d := &Download{Body: res.Body, Size: res.ContentLength, LastModified: res.Header.Get("Last-Modified")}
	if res.Header.Get("Content-Encoding") == "gzip" {
		d.Size = -1
		d.Body = &gunzipBody{body: res.Body}
	}
	return d, nil
}

// Upload writes a file in place, making its parents: the content of body, size
// bytes of it or -1, and the whole set of metadata. An existing file keeps its
// mode and goes to the default user.
func (c *Client) Upload(ctx context.Context, path string, body io.Reader, size int64, metadata map[string]string) (WriteInfo, error) {
	hr, err := c.request(ctx, http.MethodPost, c.filePath(path), body, "application/octet-stream")
	if err != nil {
		return WriteInfo{}, err
	}
	hr.ContentLength = size
	if size == 0 {
		hr.Body, hr.GetBody = http.NoBody, nil
	}
	for k, v := range metadata {
		hr.Header.Set(HeaderMetadata+k, v)
	}
	var infos []WriteInfo
	if err := answer(c.HTTP, hr, "POST /files", &infos); err != nil {
		return WriteInfo{}, err
	}
	if len(infos) != 1 {
		return WriteInfo{}, fmt.Errorf("POST /files: %d entries in the answer, not 1", len(infos))
	}
	return infos[0], nil
}

// Envs gives the environment that every program of the sandbox starts with,
// beside the variables of its user.
func (c *Client) Envs(ctx context.Context) (map[string]string, error) {
	hr, err := c.request(ctx, http.MethodGet, "/envs", nil, "")
	if err != nil {
		return nil, err
	}
	var envs map[string]string
	return envs, answer(c.HTTP, hr, "GET /envs", &envs)
}

// Health reports whether the daemon answers: nil, or an *Error whose status
// tells more (502: the sandbox is gone).
func (c *Client) Health(ctx context.Context) error {
	hr, err := c.request(ctx, http.MethodGet, "/health", nil, "")
	if err != nil {
		return err
	}
	return answer(c.HTTP, hr, "GET /health", nil)
}

// Stat looks at a name without following it.
func (c *Client) Stat(ctx context.Context, path string) (*EntryInfo, error) {
	var res EntryResponse
	if err := c.Call(ctx, MethodStat, PathRequest{path}, &res); err != nil {
		return nil, err
	}
	return &res.Entry, nil
}
