package exectest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
)

// programCases are section B.
func programCases() []Case {
	return []Case{
		argument("C15", "a variable is not expanded", "$HOME"),
		argument("C16", "a command in an argument is text", "$HOME; rm -rf /"),
		{ID: "C17", Name: "arguments arrive unchanged whatever they hold", Run: func(w *World) {
			exactArguments(w, "", "a b", "c\nd", `"`, "'", `\`, "*", "`id`", "$(id)", "é€😀", "!x", "~")
		}},
		{ID: "C18", Name: "blanks and a final newline arrive unchanged", Run: func(w *World) {
			exactArguments(w, " ", "\t", "x\n")
		}},
		{ID: "C19", Name: "words that look like options arrive", Run: func(w *World) {
			r := w.Run(w.Spec("/bin/sh", "-c", `printf "%s\n" "$@"`, "x", "--", "-n", "-e", "--help"))
			w.Equal("out", r.Out, "--\n-n\n-e\n--help\n")
		}},
		{ID: "C20", Name: "a thousand arguments arrive", Run: func(w *World) {
			args := slices.Repeat([]string{strings.Repeat("x", 100)}, 1000)
			w.Equal("count", w.Do(`echo $#`, args...), "1000\n")
		}},
		{ID: "C21", Name: "the longest argument arrives whole", Run: func(w *World) {
			w.Equal("length", w.Do(`echo ${#1}`, strings.Repeat("x", 131071)), "131071\n")
		}},
		{ID: "C22", Name: "an argument that is too long is never shortened", Run: func(w *World) {
			tooLong(w, w.Sh(`echo ${#1}`, strings.Repeat("x", 131072)))
		}},
		{ID: "C23", Name: "many long arguments arrive", Run: func(w *World) {
			args := slices.Repeat([]string{strings.Repeat("x", 100000)}, 18)
			w.Equal("total", w.Do(`n=0; for a; do n=$((n + ${#a})); done; echo $n`, args...), "1800000\n")
		}},
		{ID: "C24", Name: "a bare name is searched on the program's own PATH", Excuse: needsPath, Run: func(w *World) {
			w.Place(w.Dir+"/bin/mytool", "#!/bin/sh\necho mine\n", "755")
			spec := w.Spec("mytool")
			spec.Env.Set["PATH"] = w.Dir + "/bin:/usr/bin:/bin"
			w.Equal("out", w.Run(spec).Out, "mine\n")
		}},
		{ID: "C25", Name: "our own PATH is not searched", Excuse: needsPath, Run: func(w *World) {
			spec := w.Spec("touch", "marker")
			spec.Env.Set["PATH"] = w.Dir
			w.FailsToStart(spec, fault.ExecProgramNotFound, 127)
			w.Absent(w.Dir + "/marker")
		}},
		{ID: "C26", Name: "a relative program counts from the working directory, and no PATH finds nothing", Run: relativeProgram},
		{ID: "C27", Name: "an absolute program that is missing is not found", Run: func(w *World) {
			w.FailsToStart(w.Spec(w.Dir+"/missing"), fault.ExecProgramNotFound, 127)
		}},
		{ID: "C28", Name: "a directory is not executable", Run: func(w *World) {
			w.FailsToStart(w.Spec(w.Dir), fault.ExecProgramNotExecutable, 126)
		}},
		{ID: "C29", Name: "a file without the execute bit is not executable", Run: func(w *World) {
			w.Place(w.Dir+"/plain", "#!/bin/sh\n", "644")
			w.FailsToStart(w.Spec(w.Dir+"/plain"), fault.ExecProgramNotExecutable, 126)
		}},
		{ID: "C30", Name: "a script without an interpreter line is no program", Excuse: localOnly, Run: func(w *World) {
			w.Place(w.Dir+"/text", "echo hello\n", "755")
			w.FailsToStart(w.Spec(w.Dir+"/text"), fault.ExecProgramFormat)
		}},
		{ID: "C31", Name: "a missing interpreter names the script", Excuse: localOnly, Run: func(w *World) {
			w.Place(w.Dir+"/script", "#!/no/such/interp\n", "755")
			r := w.FailsToStart(w.Spec(w.Dir+"/script"), fault.ExecProgramNotFound)
			if r.Err == nil || !strings.Contains(r.Err.Error(), w.Dir+"/script") {
				w.Errorf("the error does not name the script: %v", r.Err)
			}
		}},
		{ID: "C32", Name: "a program below a directory with an equals sign runs", Run: func(w *World) {
			equalsInPath(w, nil)
		}},
		{ID: "C33", Name: "it also runs when a variable is removed", Run: func(w *World) {
			equalsInPath(w, []string{"LANG"})
		}},
		{ID: "C34", Name: "deleting the program's file does not disturb it", Excuse: localOnly, Run: func(w *World) {
			w.Place(w.Dir+"/tool", "#!/bin/sh\nrm \"$0\"\necho still here\n", "755")
			w.Equal("out", w.Run(w.Spec(w.Dir+"/tool")).Out, "still here\n")
		}},
	}
}

// argument is a case of one argument that must arrive as it is.
func argument(id, name, text string) Case {
	return Case{ID: id, Name: name, Run: func(w *World) {
		w.Equal("out", w.Run(w.Spec("printf", "%s", text)).Out, text)
	}}
}

func exactArguments(w *World, args ...string) {
	w.Helper()
	want := "[" + strings.Join(args, "][") + "]"
	w.Equal("out", w.Run(w.Spec(append([]string{"printf", "[%s]"}, args...)...)).Out, want)
}

// tooLong says that a start fails, and that nothing arrived shortened.
func tooLong(w *World, spec remoteexec.Spec) {
	w.Helper()
	r := w.Run(spec)
	if r.Out != "" {
		w.Errorf("the program ran and printed %q", r.Out)
	}
	switch {
	case w.Facts.StartFaults && !fault.Is(r.Err, fault.ExecArgumentsTooLong):
		w.Errorf("got %v, want %s", r.Err, fault.ExecArgumentsTooLong)
	case r.Err == nil && r.Outcome == (remoteexec.Outcome{}):
		w.Errorf("the launcher reports success")
	}
}

func relativeProgram(w *World) {
	w.Place(w.Dir+"/tool", "#!/bin/sh\necho here\n", "755")
	w.Equal("out", w.Run(w.Spec("./tool")).Out, "here\n")
	if !w.Facts.Remote {
		spec := w.Spec("true")
		spec.Env.Remove = []string{"PATH"}
		w.FailsToStart(spec, fault.ExecProgramNotFound)
	}
}

func equalsInPath(w *World, remove []string) {
	w.Helper()
	tool := w.Dir + "/a=b/tool"
	w.Place(tool, "#!/bin/sh\necho \"tool $#\"\n", "755")
	spec := w.Spec(tool, "x=y")
	spec.Env.Remove = remove
	r := w.Run(spec)
	w.Ends(r, "0")
	w.Equal("out", r.Out, fmt.Sprintf("tool %d\n", 1))
}
