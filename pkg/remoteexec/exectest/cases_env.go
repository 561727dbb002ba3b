package exectest

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
)

// envCases are section E. What a world removes from its own base is each
// backend's to test (C65, C66, C74).
func envCases() []Case {
	return []Case{
		{ID: "C67", Name: "explicit entries reach the program whatever their names", Run: func(w *World) {
			w.prints(map[string]string{"DEEPSEEK_API_KEY": "k", "DSH_SESSION_ID": "s"}, nil,
				`echo "$DEEPSEEK_API_KEY $DSH_SESSION_ID"`, "k s\n")
		}},
		{ID: "C69", Name: "an empty value is not an absent one", Run: func(w *World) {
			w.prints(map[string]string{"E": ""}, nil, `echo "[${E-gone}]"`, "[]\n")
		}},
		{ID: "C70", Name: "a variable of the world can be removed", Excuse: remoteOnly, Run: func(w *World) {
			name := w.Do(`for n in USER LOGNAME HOME; do if eval "[ -n \"\${$n}\" ]"; then printf %s $n; exit; fi; done`)
			if name == "" {
				w.Fatalf("the world sets neither USER, LOGNAME nor HOME")
			}
			w.prints(nil, []string{name}, `echo "${`+name+`-gone}"`, "gone\n")
		}},
		{ID: "C71", Name: "removing what is not set does nothing", Run: func(w *World) {
			w.prints(nil, []string{"NOT_SET_AT_ALL"}, `echo "${NOT_SET_AT_ALL-gone}"`, "gone\n")
		}},
		{ID: "C72", Name: "our own variables do not cross", Excuse: remoteOnly, Run: func(w *World) {
			// A name of its own: worlds that are opened later may have our environment.
			name := fmt.Sprintf("EXECTEST_HOST_%d", time.Now().UnixNano())
			os.Setenv(name, "ours")
			defer os.Unsetenv(name)
			w.prints(nil, nil, `echo "${`+name+`-absent}"`, "absent\n")
		}},
		{ID: "C75", Name: "names that are none are refused", Run: func(w *World) {
			for _, name := range []string{"", "A=B", "A\x00"} {
				w.refusedEnv(map[string]string{name: "x"}, nil)
				w.refusedEnv(nil, []string{name})
			}
			w.refusedEnv(map[string]string{"A": "x"}, []string{"A"})
		}},
		{ID: "C76", Name: "a NUL byte in a value is refused", Run: func(w *World) {
			w.refusedEnv(map[string]string{"A": "x\x00y"}, nil)
		}},
		{ID: "C77", Name: "newlines in a value arrive", Run: func(w *World) {
			spec := w.Spec("printenv", "V")
			spec.Env.Set["V"] = "a\nb\n"
			w.Equal("out", w.Run(spec).Out, "a\nb\n\n")
		}},
		{ID: "C78", Name: "names that are no shell identifiers arrive", Run: oddNames},
		{ID: "C79", Name: "a value is no script", Run: func(w *World) {
			value := `你好 $(touch pwned) "q" 'r' \`
			spec := w.Spec("printenv", "V")
			spec.Env.Set["V"] = value
			w.Equal("out", w.Run(spec).Out, value+"\n")
			w.Absent(w.Dir + "/pwned")
		}},
		{ID: "C80", Name: "large values arrive whole", Run: func(w *World) {
			set, want := map[string]string{}, ""
			for i := range 16 {
				set[fmt.Sprintf("V%d", i)] = strings.Repeat("x", 65536)
				want += "65536\n"
			}
			w.prints(set, nil, `for i in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do eval "echo \${#V$i}"; done`, want)
		}},
		{ID: "C81", Name: "a value that is too long is never shortened", Run: func(w *World) {
			spec := w.Sh(`echo ${#V}`)
			spec.Env.Set["V"] = strings.Repeat("x", 1<<20)
			tooLong(w, spec)
		}},
		{ID: "C82", Name: "the longest entry arrives whole", Excuse: localOnly, Run: func(w *World) {
			spec := w.Sh(`echo ${#A}`)
			spec.Env.Set["A"] = strings.Repeat("x", 131071-2)
			w.Equal("out", w.Run(spec).Out, "131069\n")
			spec.Env.Set["A"] += "x"
			tooLong(w, spec)
		}},
	}
}

// prints runs a script with an environment and compares what it prints.
func (w *World) prints(set map[string]string, remove []string, script, want string) {
	w.Helper()
	spec := w.Sh(script)
	for name, value := range set {
		spec.Env.Set[name] = value
	}
	spec.Env.Remove = remove
	r := w.Run(spec)
	w.Ends(r, "0")
	w.Equal("out", r.Out, want)
}

func (w *World) refusedEnv(set map[string]string, remove []string) {
	w.Helper()
	spec := w.Spec("true")
	spec.Env = remoteexec.Env{Set: set, Remove: remove}
	w.Refused(spec, fault.ExecInvalidSpec)
	term := w.Terminal("true")
	term.Env = spec.Env
	_, err := w.Runtime.OpenTerminal(w.Context(), term)
	w.Equal("terminal", fault.CodeOf(err), fault.ExecInvalidSpec)
}

func oddNames(w *World) {
	spec := w.Spec("env", "-0")
	odd := []string{"FOO-BAR", "a.b", "--split-string", "-u"}
	for i, name := range odd {
		spec.Env.Set[name] = fmt.Sprint("value ", i)
	}
	entries := strings.Split(w.Run(spec).Out, "\x00")
	for i, name := range odd {
		found := 0
		for _, entry := range entries {
			if entry == fmt.Sprintf("%s=value %d", name, i) {
				found++
			}
		}
		w.Equal("entries of "+name, found, 1)
	}
}
