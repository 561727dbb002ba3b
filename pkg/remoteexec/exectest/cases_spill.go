package exectest

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/afield-dev/afield/pkg/remoteexec"
)

// spillCases are section H.
func spillCases() []Case {
	return []Case{
		{ID: "C135", Name: "the file holds what memory lost", Run: func(w *World) {
			spec := w.Sh(lines200)
			spec.Stdout = spill(500, 64<<20)
			r := w.Run(spec)
			w.Equal("truncated", r.Stdout.Truncated, true)
			text := w.spilled(r.Stdout)
			w.Equal("whole", len(text), 2000)
			w.Equal("lines", strings.HasPrefix(text, "line-0001\n") && strings.HasSuffix(text, "line-0200\n"), true)
		}},
		{ID: "C136", Name: "the file and its directory are private", Run: func(w *World) {
			spec := w.Sh(lines200)
			spec.Stdout = spill(500, 64<<20)
			r := w.Run(spec)
			w.spilled(r.Stdout)
			w.Equal("file mode", mode(w, r.Stdout.SpillPath), fs.FileMode(0o600))
			w.Equal("directory mode", mode(w, filepath.Dir(r.Stdout.SpillPath)), fs.FileMode(0o700))
			w.Equal("world", r.Stdout.SpillWorld, "host")
			if len(filepath.Base(r.Stdout.SpillPath)) < 12 {
				w.Errorf("the name %s can be guessed", r.Stdout.SpillPath)
			}
		}},
		{ID: "C137", Name: "output below the cap makes no file", Run: func(w *World) {
			spec := w.Sh("printf abc")
			spec.Stdout = spill(500, 1000)
			w.Equal("path", w.Run(spec).Stdout.SpillPath, "")
		}},
		{ID: "C138", Name: "without a request there is no file", Run: func(w *World) {
			spec := w.Sh(lines200)
			spec.Stdout = collect(500)
			w.Equal("path", w.Run(spec).Stdout.SpillPath, "")
		}},
		{ID: "C139", Name: "exactly the spill cap is kept, one byte more is not", Run: func(w *World) {
			spec := w.Sh(`head -c 1000 /dev/zero`)
			spec.Stdout = spill(500, 1000)
			w.Equal("kept", len(w.spilled(w.Run(spec).Stdout)), 1000)
			spec = w.Sh(`head -c 600 /dev/zero; read -r x; head -c 401 /dev/zero`)
			spec.Stdout, spec.Stdin = spill(500, 1000), remoteexec.StdinPipe
			h := w.Start(spec)
			path := w.standing(h)
			h.Stdin().Close()
			w.Equal("path", w.Settle(h).Stdout.SpillPath, "")
			if _, err := os.Lstat(path); !os.IsNotExist(err) {
				w.Errorf("the file stands: %v", err)
			}
		}},
		{ID: "C143", Name: "the path is shown while the program runs", Run: func(w *World) {
			spec := w.Sh(lines200 + "; read -r x")
			spec.Stdout, spec.Stdin = spill(500, 64<<20), remoteexec.StdinPipe
			h := w.Start(spec)
			path := w.standing(h)
			h.Stdin().Close()
			r := w.Settle(h)
			w.Equal("path", r.Stdout.SpillPath, path)
			w.spilled(r.Stdout)
		}},
		{ID: "C145", Name: "both files are exact", Run: spillBoth},
		{ID: "C146", Name: "a stream that was cut has no file", Run: func(w *World) {
			spec := w.Sh(lines200 + "; sleep 60 &")
			spec.Stdout, spec.Grace = spill(500, 64<<20), 100*time.Millisecond
			h := w.Start(spec)
			r := w.Settle(h)
			w.Equal("incomplete", r.Incomplete && r.Stdout.Incomplete, !w.Facts.EndsOutput)
			w.Equal("path is given", r.Stdout.SpillPath != "", w.Facts.EndsOutput)
			h.Terminate()
			w.Quiescent(h)
		}},
	}
}

// standing waits for a spill file of stdout and gives its path.
func (w *World) standing(h remoteexec.Handle) (path string) {
	w.Helper()
	w.Eventually("the spill file", func() bool {
		chunk, _ := h.Collected(remoteexec.Stdout).ReadFrom(0)
		path = chunk.SpillPath
		return path != ""
	})
	return path
}

// spilled gives the content of a spill file on the host and removes it.
func (w *World) spilled(r remoteexec.StreamReport) string {
	w.Helper()
	if r.SpillPath == "" {
		w.Fatalf("no spill file is advertised")
	}
	content, err := os.ReadFile(r.SpillPath)
	if err != nil {
		w.Fatalf("read: %v", err)
	}
	w.Cleanup(func() {
		os.Remove(r.SpillPath)
		os.Remove(filepath.Dir(r.SpillPath))
	})
	return string(content)
}

func mode(w *World, path string) fs.FileMode {
	w.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		w.Fatalf("stat: %v", err)
	}
	return info.Mode().Perm()
}

func spillBoth(w *World) {
	w.Do(`head -c 10000000 /dev/urandom > a; head -c 10000000 /dev/urandom > b`)
	spec := w.Sh("cat a & cat b >&2; wait")
	spec.Stdout, spec.Stderr = spill(4096, 64<<20), spill(4096, 64<<20)
	r := w.Run(spec)
	w.Ends(r, "0")
	for name, stream := range map[string]remoteexec.StreamReport{"a": r.Stdout, "b": r.Stderr} {
		sum := sha256.Sum256([]byte(w.spilled(stream)))
		want, _, _ := strings.Cut(w.Do(`sha256sum "$1"`, name), " ")
		w.Equal("digest of "+name, hex.EncodeToString(sum[:]), want)
	}
}
