package boxtest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"strconv"
	"syscall"
	"time"
)

const (
	maxRange  = 8 << 20
	maxUpload = 100 << 20
	maxFiles  = 10
)

func (a *agent) addFiles(mux *http.ServeMux) {
	mux.HandleFunc("GET /files/read", a.readFile)
	mux.HandleFunc("POST /files/write", a.writeFile)
	mux.HandleFunc("GET /files/list", a.listFiles)
	mux.HandleFunc("GET /files/stat", a.statFile)
	mux.HandleFunc("POST /files/mkdir", a.mkdir)
	mux.HandleFunc("POST /files/rename", a.rename)
	mux.HandleFunc("POST /files/remove", a.remove)
	mux.HandleFunc("POST /files/upload", a.upload)
	mux.HandleFunc("GET /files/download", a.download)
}

// refuseFile answers a failed file call. Absence is 404, the rest 400.
func refuseFile(w http.ResponseWriter, err error) {
	status := http.StatusBadRequest
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		status = http.StatusNotFound
	}
	refuse(w, status, "%s", err)
}

func (a *agent) readFile(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	f, err := os.Open(folder(q.Get("path")))
	if err != nil {
		refuseFile(w, err)
		return
	}
	defer f.Close()
	content, err := rangeOf(f, q.Get("offset"), q.Get("length"))
	if err != nil {
		refuse(w, http.StatusBadRequest, "%s", err)
		return
	}
	text := string(content)
	if q.Get("encoding") == "base64" {
		text = base64.StdEncoding.EncodeToString(content)
	}
	answer(w, http.StatusOK, map[string]string{"content": text})
}

// rangeOf reads a range when a length is given, else the whole.
func rangeOf(f *os.File, offset, length string) ([]byte, error) {
	if length == "" {
		return io.ReadAll(f)
	}
	n, err := strconv.ParseInt(length, 10, 64)
	if err != nil || n < 0 || n > maxRange {
		return nil, fmt.Errorf("length must be between 0 and %d", maxRange)
	}
	start, _ := strconv.ParseInt(offset, 10, 64)
	return io.ReadAll(io.NewSectionReader(f, start, n))
}

// fileBody is the body of every call that changes files.
type fileBody struct {
	Path      string `json:"path"`
	Content   string `json:"content"`
	Encoding  string `json:"encoding"`
	From      string `json:"from"`
	To        string `json:"to"`
	Parents   bool   `json:"parents"`
	Recursive bool   `json:"recursive"`
}

// change decodes a body and does one change.
func change(w http.ResponseWriter, r *http.Request, do func(fileBody) error) {
	var b fileBody
	if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
		refuse(w, http.StatusBadRequest, "invalid request body")
		return
	}
	if err := do(b); err != nil {
		refuseFile(w, err)
		return
	}
	answer(w, http.StatusOK, map[string]string{})
}

func (a *agent) writeFile(w http.ResponseWriter, r *http.Request) {
	change(w, r, func(b fileBody) error {
		content := []byte(b.Content)
		if b.Encoding == "base64" {
			var err error
			if content, err = base64.StdEncoding.DecodeString(b.Content); err != nil {
				return err
			}
		}
		return a.store(folder(b.Path), content)
	})
}

// store writes a file as the box's user.
func (a *agent) store(name string, content []byte) error {
	if err := a.makeDirs(path.Dir(name)); err != nil {
		return err
	}
	if err := os.WriteFile(name, content, 0o644); err != nil {
		return err
	}
	return a.give(name)
}

// makeDirs makes missing directories, each owned by the box's user.
func (a *agent) makeDirs(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := a.makeDirs(path.Dir(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	return a.give(dir)
}

func (a *agent) give(name string) error {
	if !a.cfg.Root {
		return nil
	}
	return os.Lchown(name, boxUID, boxGID)
}

func (a *agent) mkdir(w http.ResponseWriter, r *http.Request) {
	change(w, r, func(b fileBody) error {
		dir := folder(b.Path)
		if b.Parents {
			return a.makeDirs(dir)
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		return a.give(dir)
	})
}

func (a *agent) rename(w http.ResponseWriter, r *http.Request) {
	change(w, r, func(b fileBody) error { return os.Rename(folder(b.From), folder(b.To)) })
}

func (a *agent) remove(w http.ResponseWriter, r *http.Request) {
	change(w, r, func(b fileBody) error {
		name := folder(b.Path)
		info, err := os.Lstat(name)
		switch {
		case err != nil:
			return err
		case info.IsDir() && !b.Recursive:
			return fmt.Errorf("%s is a directory", name)
		}
		return os.RemoveAll(name)
	})
}

// statFile gives a version that knows seconds only, as the service's does.
func (a *agent) statFile(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	look := os.Lstat
	if q.Get("follow") == "true" {
		look = os.Stat
	}
	info, err := look(folder(q.Get("path")))
	if err != nil {
		refuseFile(w, err)
		return
	}
	kind := "other"
	switch {
	case info.Mode().IsRegular():
		kind = "file"
	case info.IsDir():
		kind = "directory"
	case info.Mode()&fs.ModeSymlink != 0:
		kind = "symlink"
	}
	inode := info.Sys().(*syscall.Stat_t).Ino
	answer(w, http.StatusOK, map[string]any{"type": kind, "size": info.Size(), "inode": inode,
		"mod_time": info.ModTime().UTC().Format(time.RFC3339),
		"version":  fmt.Sprintf("%d-%d-%d", inode, info.ModTime().Unix(), info.Size())})
}

// listFiles knows no links, gives null for an empty directory and nothing for a
// file.
func (a *agent) listFiles(w http.ResponseWriter, r *http.Request) {
	dir := folder(r.URL.Query().Get("folder"))
	names, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, syscall.ENOTDIR) {
		refuseFile(w, err)
		return
	}
	var list []map[string]any
	for _, e := range names {
		info, err := os.Stat(path.Join(dir, e.Name()))
		if err != nil {
			if info, err = os.Lstat(path.Join(dir, e.Name())); err != nil {
				continue
			}
		}
		list = append(list, map[string]any{"name": e.Name(), "path": path.Join(dir, e.Name()), "size": info.Size(),
			"is_dir": info.IsDir(), "mod_time": info.ModTime().UTC().Format(time.RFC3339)})
	}
	answer(w, http.StatusOK, map[string]any{"files": list})
}

// upload takes pairs of a destination and a file.
func (a *agent) upload(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseMultipartForm(maxFiles * maxUpload); err != nil {
		refuse(w, http.StatusBadRequest, "%s", err)
		return
	}
	defer func() { _ = r.MultipartForm.RemoveAll() }()
	paths, files := r.MultipartForm.Value["paths"], r.MultipartForm.File["files"]
	if len(paths) != len(files) || len(files) == 0 || len(files) > maxFiles {
		refuse(w, http.StatusBadRequest, "paths and files must match, at most %d", maxFiles)
		return
	}
	for i, f := range files {
		if f.Size > maxUpload {
			refuse(w, http.StatusRequestEntityTooLarge, "file is too large")
			return
		}
		part, err := f.Open()
		if err != nil {
			refuseFile(w, err)
			return
		}
		content, err := io.ReadAll(part)
		part.Close()
		if err == nil {
			err = a.store(folder(paths[i]), content)
		}
		if err != nil {
			refuseFile(w, err)
			return
		}
	}
	answer(w, http.StatusOK, map[string]string{})
}

func (a *agent) download(w http.ResponseWriter, r *http.Request) {
	f, err := os.Open(folder(r.URL.Query().Get("folder")))
	if err != nil {
		refuseFile(w, err)
		return
	}
	defer f.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = io.Copy(w, f)
}
