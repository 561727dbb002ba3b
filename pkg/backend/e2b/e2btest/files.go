package e2btest

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/afield-dev/afield/pkg/backend/e2b/wire"
)

// serveFiles is the file API.
func (b *Sandbox) serveFiles(w http.ResponseWriter, r *http.Request) {
	user, ok := b.account(r.URL.Query().Get("username"))
	if !ok {
		refuse(w, http.StatusUnauthorized, "invalid username: '"+r.URL.Query().Get("username")+"'")
		return
	}
	c := &call{ctx: r.Context(), box: b, user: user}
	switch r.Method {
	case http.MethodGet:
		c.download(w, r)
	case http.MethodPost:
		c.upload(w, r)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

func (c *call) download(w http.ResponseWriter, r *http.Request) {
	path, err := c.path(r.URL.Query().Get("path"))
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	fi, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		refuse(w, http.StatusNotFound, "path '"+path+"' does not exist")
		return
	case err != nil:
		refuse(w, http.StatusInternalServerError, "error checking if path exists '"+path+"': "+err.Error())
		return
	case fi.IsDir():
		refuse(w, http.StatusBadRequest, "path '"+path+"' is a directory")
		return
	}
	f, err := os.Open(path) // a FIFO holds this until somebody writes to it
	if err != nil {
		refuse(w, http.StatusInternalServerError, "error opening file '"+path+"': "+err.Error())
		return
	}
	defer f.Close()
	w.Header().Set("Content-Disposition", mime.FormatMediaType("inline", map[string]string{"filename": filepath.Base(path)}))
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Type", "application/octet-stream")
		z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // the level is a valid one
		io.Copy(z, f)
		z.Close()
		return
	}
	http.ServeContent(copying{w}, r, path, fi.ModTime(), f)
}

// copying hides that a response can take a file's pages themselves: those that
// are still to be sent would change with the file.
type copying struct{ http.ResponseWriter }

// upload writes files in place.
func (c *call) upload(w http.ResponseWriter, r *http.Request) {
	body := io.Reader(r.Body)
	switch encoding := r.Header.Get("Content-Encoding"); encoding {
	case "":
	case "gzip":
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			refuse(w, http.StatusBadRequest, err.Error())
			return
		}
		body = z
	default:
		refuse(w, http.StatusBadRequest, "unsupported Content-Encoding: "+encoding)
		return
	}
	meta, err := metadataHeaders(r.Header)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	kind, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	var infos []wire.WriteInfo
	switch kind {
	case "application/octet-stream":
		path := r.URL.Query().Get("path")
		if path == "" {
			refuse(w, http.StatusBadRequest, "path is required")
			return
		}
		var info wire.WriteInfo
		info, err = c.store(path, body, meta)
		infos = append(infos, info)
	case "multipart/form-data":
		infos, err = c.storeParts(body, params["boundary"], r.URL.Query().Get("path"), meta)
	default:
		refuse(w, http.StatusBadRequest, "unsupported content type")
		return
	}
	if err != nil {
		refuse(w, uploadStatus(err), err.Error())
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	json.NewEncoder(w).Encode(infos)
}

func uploadStatus(err error) int {
	var e *rpcError
	switch {
	case errors.As(err, &e) && e.Code == wire.CodeInvalidArgument:
		return http.StatusBadRequest
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		return http.StatusInsufficientStorage
	}
	return http.StatusInternalServerError
}

// metadataHeaders collects the X-Metadata- headers.
func metadataHeaders(h http.Header) (map[string]string, error) {
	meta, total := map[string]string{}, 0
	for name, values := range h {
		key, ok := strings.CutPrefix(name, http.CanonicalHeaderKey(wire.HeaderMetadata))
		if !ok || len(values) == 0 {
			continue
		}
		key = strings.ToLower(key)
		total += len(wire.MetadataXattr) + len(key) + len(values[0])
		if key == "" || len(key) > 246 || total > 4096 || strings.IndexFunc(values[0], notPrintable) >= 0 {
			return nil, fail(wire.CodeInvalidArgument, "invalid metadata %s", strconv.Quote(key))
		}
		meta[key] = values[0]
	}
	return meta, nil
}

func notPrintable(r rune) bool { return r < 0x20 || r > 0x7E }

// store writes one file in place: an existing one is truncated and goes to the
// user, a new one has mode 0644, missing parents have 0755.
func (c *call) store(name string, body io.Reader, meta map[string]string) (wire.WriteInfo, error) {
	path, err := c.path(name)
	if err == nil {
		err = c.mayChange(path)
	}
	if err != nil {
		return wire.WriteInfo{}, err
	}
	fi, err := os.Stat(path)
	if err == nil && fi.IsDir() {
		return wire.WriteInfo{}, fail(wire.CodeInvalidArgument, "path is a directory: %s", path)
	}
	isNew := err != nil
	if err := makeDirs(filepath.Dir(path)); err != nil {
		return wire.WriteInfo{}, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return wire.WriteInfo{}, err
	}
	defer f.Close()
	if isNew {
		f.Chmod(0o644)
	} else {
		f.Chown(c.user.uid, c.user.gid)
	}
	if _, err := io.Copy(f, body); err != nil {
		return wire.WriteInfo{}, err
	}
	info := wire.WriteInfo{Name: filepath.Base(path), Path: path, Type: "file"}
	if !c.box.server.opts.NoMetadata {
		setMetadata(path, meta)
		info.Metadata = metadataOf(path)
	}
	return info, nil
}

// serveCompose joins files.
func (b *Sandbox) serveCompose(w http.ResponseWriter, r *http.Request) {
	var req wire.ComposeRequest
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	user, ok := b.account(req.Username)
	if !ok {
		refuse(w, http.StatusUnauthorized, "invalid username: '"+req.Username+"'")
		return
	}
	c := &call{ctx: r.Context(), box: b, user: user}
	path, err := c.compose(req)
	if err != nil {
		refuse(w, uploadStatus(err), err.Error())
		return
	}
	reply(w, http.StatusOK, wire.WriteInfo{Name: filepath.Base(path), Path: path, Type: "file"})
}

func (c *call) compose(req wire.ComposeRequest) (string, error) {
	dest, err := c.path(req.Destination)
	if err == nil {
		err = c.mayChange(dest)
	}
	if err != nil {
		return "", err
	}
	tmp := dest + ".compose-" + word(8)
	out, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return "", err
	}
	defer os.Remove(tmp)
	defer out.Close()
	for _, src := range req.SourcePaths {
		path, err := c.path(src)
		if err != nil {
			return "", err
		}
		if err := appendFile(out, path); err != nil {
			return "", err
		}
	}
	if err := os.Rename(tmp, dest); err != nil {
		return "", err
	}
	for _, src := range req.SourcePaths {
		if path, err := c.path(src); err == nil && c.mayChange(path) == nil {
			os.Remove(path)
		}
	}
	return dest, nil
}

func appendFile(out io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(out, f)
	return err
}
