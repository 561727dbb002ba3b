package exectest

import (
	"context"
	"errors"
	"path"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
)

// lookupCases are section C.
func lookupCases() []Case {
	return []Case{
		{ID: "C35", Name: "an absolute executable is itself", Run: func(w *World) {
			w.Finds("/bin/sh", nil, "/bin/sh")
		}},
		{ID: "C36", Name: "a bare name gives one absolute path", Run: func(w *World) {
			found, err := w.Runtime.LookPath(w.Context(), "sh", remoteexec.Env{})
			if err != nil || !path.IsAbs(found) {
				w.Fatalf("got %q, %v", found, err)
			}
			w.Finds(found, nil, found)
		}},
		{ID: "C37", Name: "an explicit PATH replaces the world's", Run: func(w *World) {
			w.Place(w.Dir+"/bin/sh", "#!/bin/sh\n", "755")
			w.Finds("sh", w.path(w.Dir+"/bin"), w.Dir+"/bin/sh")
		}},
		{ID: "C38", Name: "a relative element of PATH gives an absolute path", Run: func(w *World) {
			w.Place(w.Dir+"/tools/bin/reltool", "#!/bin/sh\n", "755")
			w.Finds("reltool", w.path("tools/bin"), w.Dir+"/tools/bin/reltool")
		}},
		{ID: "C39", Name: "an empty name is refused", Run: func(w *World) {
			w.FindsNot("", nil, fault.ExecInvalidSpec)
		}},
		{ID: "C40", Name: "a relative name with a separator is refused", Run: func(w *World) {
			w.FindsNot("./bin/x", nil, fault.ExecInvalidSpec)
			w.FindsNot("node_modules/.bin/server", nil, fault.ExecInvalidSpec)
		}},
		{ID: "C41", Name: "an unknown name with an empty PATH is not found", Run: func(w *World) {
			w.FindsNot("no-such-program", w.path(""), fault.ExecProgramNotFound)
		}},
		{ID: "C42", Name: "an empty PATH means the lookup base", Run: func(w *World) {
			w.Place(w.Dir+"/basetool", "#!/bin/sh\n", "755")
			w.Finds("basetool", w.path(""), w.Dir+"/basetool")
		}},
		{ID: "C43", Name: "a directory of that name is passed over", Run: func(w *World) {
			w.Do(`mkdir -p "$1/one/tool"`, w.Dir)
			w.Place(w.Dir+"/two/tool", "#!/bin/sh\n", "755")
			w.Finds("tool", w.path(w.Dir+"/one:"+w.Dir+"/two"), w.Dir+"/two/tool")
		}},
		{ID: "C44", Name: "a file without the execute bit is passed over", Run: func(w *World) {
			w.Place(w.Dir+"/one/tool", "#!/bin/sh\n", "644")
			w.Place(w.Dir+"/two/tool", "#!/bin/sh\n", "755")
			w.Finds("tool", w.path(w.Dir+"/one:"+w.Dir+"/two"), w.Dir+"/two/tool")
		}},
		{ID: "C45", Name: "builtins resolve to their files", Run: func(w *World) {
			for _, name := range []string{"echo", "printf", "test", "[", "kill"} {
				found, err := w.Runtime.LookPath(w.Context(), name, remoteexec.Env{})
				if err != nil || !path.IsAbs(found) || path.Base(found) != name {
					w.Errorf("%s: got %q, %v", name, found, err)
				}
			}
		}},
		{ID: "C47", Name: "a link is found by its own path, a dangling one is not found", Run: func(w *World) {
			w.Do(`mkdir "$1/bin" && ln -s /bin/sh "$1/bin/link" && ln -s /no/such "$1/bin/dangling"`, w.Dir)
			w.Finds("link", w.path(w.Dir+"/bin"), w.Dir+"/bin/link")
			w.FindsNot("dangling", w.path(w.Dir+"/bin"), fault.ExecProgramNotFound)
		}},
		{ID: "C48", Name: "an absolute directory or missing file is not executable", Run: func(w *World) {
			w.FindsNot(w.Dir, nil, fault.ExecProgramNotExecutable)
			w.FindsNot(w.Dir+"/missing", nil, fault.ExecProgramNotExecutable)
		}},
		{ID: "C49", Name: "a lookup that is already cancelled keeps the reason", Run: func(w *World) {
			reason := errors.New("never mind")
			ctx, cancel := context.WithCancelCause(w.Context())
			cancel(reason)
			_, err := w.Runtime.LookPath(ctx, "sh", remoteexec.Env{})
			w.Cause(err, reason)
		}},
		{ID: "C53", Name: "a name is no script", Run: func(w *World) {
			w.FindsNot("x$(touch pwned)'", nil, fault.ExecProgramNotFound)
			w.Absent(w.Dir + "/pwned")
		}},
	}
}

// path is an environment with a PATH.
func (w *World) path(value string) *remoteexec.Env {
	return &remoteexec.Env{Set: map[string]string{"PATH": value}}
}

// Finds says what a lookup gives.
func (w *World) Finds(command string, env *remoteexec.Env, want string) {
	w.Helper()
	if env == nil {
		env = &remoteexec.Env{}
	}
	got, err := w.Runtime.LookPath(w.Context(), command, *env)
	if err != nil || got != want {
		w.Errorf("which %s: got %q, %v, want %q", command, got, err, want)
	}
}

// FindsNot says why a lookup fails.
func (w *World) FindsNot(command string, env *remoteexec.Env, code fault.Code) {
	w.Helper()
	if env == nil {
		env = &remoteexec.Env{}
	}
	got, err := w.Runtime.LookPath(w.Context(), command, *env)
	if !fault.Is(err, code) {
		w.Errorf("which %q: got %q, %v, want %s", command, got, err, code)
	}
}
