package cmd

import (
	"context"
	"encoding/base64"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/remotefs"
)

func newFS(a *app) *cobra.Command {
	return newGroup("fs", "Read and change files in the world",
		newFSRead(a), newFSView(a), newFSWrite(a), newFSEdit(a),
		newFSStat(a), newFSLstat(a), newFSLs(a),
		newFSResolve(a), newFSPath(a), newFSURL(a), newFSContains(a),
		newFSMkdir(a), newFSRm(a), newFSMv(a), newFSCp(a), newFSChmod(a), newFSLn(a), newFSTouch(a),
		newFSDu(a), newFSTree(a), newFSGlob(a), newFSGrep(a),
		newFSPush(a), newFSPull(a), newFSPatch(a), newFSWatch(a), newFSUndo(a))
}

// withFiles opens the world, hands its files to f, and closes it.
func (a *app) withFiles(ctx context.Context, f func(remotefs.FS) error) error {
	return a.withWorld(ctx, func(w *world) error {
		fs, err := w.files()
		if err != nil {
			return err
		}
		return f(fs)
	})
}

// targetResult is a target as scripts see it.
type targetResult struct {
	Key         string  `json:"key"`
	DisplayPath string  `json:"displayPath"`
	ProcessPath *string `json:"processPath"`
	URL         *string `json:"url"`
}

func newTargetResult(fs remotefs.FS, t remotefs.Target) targetResult {
	r := targetResult{Key: t.Key, DisplayPath: t.Display}
	if path, err := fs.ProcessPath(t); err == nil {
		r.ProcessPath = &path
	}
	if url, err := fs.FileURL(t); err == nil {
		r.URL = &url
	}
	return r
}

// statResult is what fs stat and fs lstat give of one path.
type statResult struct {
	Target     targetResult  `json:"target"`
	Type       remotefs.Type `json:"type"`
	Size       *int64        `json:"size"`
	Version    *string       `json:"version"`
	Mode       *string       `json:"mode"`
	ModTime    *string       `json:"mtime"`
	Owner      *string       `json:"owner"`
	Group      *string       `json:"group"`
	LinkTarget *string       `json:"linkTarget"`
}

func newStatResult(fs remotefs.FS, t remotefs.Target, info *remotefs.Info) *statResult {
	if info == nil {
		return nil
	}
	return &statResult{
		Target: newTargetResult(fs, t), Type: info.Type,
		Size: sizeOrNull(info.Size), Version: orNull(info.Version),
		Mode: modeOrNull(info.Mode), ModTime: timeOrNull(info.ModTime),
		Owner: orNull(info.Owner), Group: orNull(info.Group), LinkTarget: orNull(info.LinkTarget),
	}
}

func sizeOrNull(n int64) *int64 {
	if n < 0 {
		return nil
	}
	return &n
}

func modeOrNull(mode int) *string {
	if mode < 0 {
		return nil
	}
	text := octal(mode)
	return &text
}

// timeOrNull gives RFC 3339 with nanoseconds, in UTC.
func timeOrNull(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	text := t.UTC().Format("2006-01-02T15:04:05.000000000Z07:00")
	return &text
}

// base64OrNull gives bytes that are not text.
func base64OrNull(b []byte) *string {
	if utf8.Valid(b) {
		return nil
	}
	text := base64.StdEncoding.EncodeToString(b)
	return &text
}
