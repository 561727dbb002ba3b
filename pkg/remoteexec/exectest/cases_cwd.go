package exectest

import (
	"strings"

	"github.com/afield-dev/afield/pkg/fault"
)

// cwdCases are section D.
func cwdCases() []Case {
	return []Case{
		{ID: "C55", Name: "a program runs in its working directory", Run: func(w *World) {
			w.Equal("pwd", w.Do("pwd -P"), w.Do(`cd "$1" && pwd -P`, w.Dir))
		}},
		{ID: "C56", Name: "a missing directory is named and nothing runs", Run: func(w *World) {
			w.badDirectory(w.Dir+"/missing", fault.ExecCwdMissing)
		}},
		{ID: "C57", Name: "a file is no directory", Run: func(w *World) {
			w.Place(w.Dir+"/file", "", "644")
			w.badDirectory(w.Dir+"/file", fault.ExecCwdNotDirectory)
		}},
		{ID: "C59", Name: "a directory may have any name", Run: func(w *World) {
			dir := w.Dir + "/a 'b' \"c\"\nd€"
			w.Do(`mkdir "$1"`, dir)
			spec := w.Spec("/bin/sh", "-c", "pwd")
			spec.Cwd = dir
			w.Equal("pwd", w.Run(spec).Out, w.Do(`cd "$1" && pwd`, dir))
		}},
		{ID: "C60", Name: "with the directory and the program missing, the directory is reported", Excuse: localOnly, Run: func(w *World) {
			spec := w.Spec("no-such-program")
			spec.Cwd = w.Dir + "/missing"
			w.FailsToStart(spec, fault.ExecCwdMissing)
		}},
		{ID: "C64", Name: "a directory of the caller's machine is not made", Excuse: remoteOnly, Run: func(w *World) {
			w.badDirectory("/Users/x/y", fault.ExecCwdMissing)
			w.Absent("/Users/x/y")
		}},
	}
}

func (w *World) badDirectory(dir string, code fault.Code) {
	w.Helper()
	spec := w.Spec("touch", w.Dir+"/ran")
	spec.Cwd = dir
	r := w.Run(spec)
	if !fault.Is(r.Err, code) || !strings.Contains(r.Err.Error(), dir) {
		w.Errorf("got %v, want %s that names %s", r.Err, code, dir)
	}
	w.Absent(w.Dir + "/ran")
}
