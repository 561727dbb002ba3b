package remoteexec

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
)

// invalid is a refusal before anything exists (SP-2).
func invalid(op, format string, args ...any) error {
	return fault.New(fault.ExecInvalidSpec, op, "", op+": "+format, args...)
}

// checkSpec holds SP-2 in the order of SP-7; disposing and cancelled are the
// caller's first and last checks.
func checkSpec(s Spec) error {
	if err := checkProgram("spawn", s.Argv, s.Cwd); err != nil {
		return err
	}
	if err := checkStdin(s); err != nil {
		return err
	}
	for i, o := range []Output{s.Stdout, s.Stderr} {
		if err := checkOutput([]string{"stdout", "stderr"}[i], o); err != nil {
			return err
		}
	}
	if err := checkGrace("spawn", s.Grace); err != nil {
		return err
	}
	return checkEnv("spawn", s.Env)
}

// checkTerminal holds TT-1 and TT-2.
func checkTerminal(s TerminalSpec) error {
	if err := checkProgram("terminal", s.Argv, s.Cwd); err != nil {
		return err
	}
	if err := checkSize(s.Rows, s.Cols); err != nil {
		return err
	}
	if err := checkGrace("terminal", s.Grace); err != nil {
		return err
	}
	return checkEnv("terminal", s.Env)
}

func checkProgram(op string, argv []string, cwd string) error {
	switch {
	case len(argv) == 0:
		return invalid(op, "the argument vector is empty")
	case argv[0] == "":
		return invalid(op, "the program's name is empty")
	case slices.ContainsFunc(argv, hasNUL):
		return invalid(op, "an argument holds a NUL byte")
	case cwd == "":
		return invalid(op, "no working directory is given")
	case hasNUL(cwd):
		return invalid(op, "the working directory holds a NUL byte")
	case !path.IsAbs(cwd):
		return invalid(op, "the working directory %q is not absolute", cwd)
	}
	return nil
}

func checkStdin(s Spec) error {
	switch s.Stdin {
	case StdinIgnore, StdinPipe, StdinData:
		return nil
	case StdinInherit:
		if s.InheritStdin == nil {
			return invalid("spawn", "stdin is to be passed on, but none is given")
		}
		return nil
	}
	return invalid("spawn", "stdin mode %d is unknown", s.Stdin)
}

func checkOutput(name string, o Output) error {
	switch {
	case o.Mode == OutputCollect && o.MaxBytes < 1:
		return invalid("spawn", "%s: the cap of %d bytes is not at least 1", name, o.MaxBytes)
	case o.Mode == OutputCollect && o.SpillMax < 0:
		return invalid("spawn", "%s: the spill cap of %d bytes is negative", name, o.SpillMax)
	case o.Mode == OutputInherit && o.To == nil:
		return invalid("spawn", "%s is to be passed on, but nothing is given", name)
	case o.Mode < OutputCollect || o.Mode > OutputInherit:
		return invalid("spawn", "%s: mode %d is unknown", name, o.Mode)
	}
	return nil
}

// checkGrace holds SP-3: whole milliseconds from 1 to MaxDelay.
func checkGrace(op string, grace time.Duration) error {
	if grace < time.Millisecond || grace > MaxDelay || grace%time.Millisecond != 0 {
		return invalid(op, "a grace of %v is not a whole number of milliseconds from 1 to %d", grace, MaxDelay/time.Millisecond)
	}
	return nil
}

// checkLease refuses what the world cannot promise.
func (p *processes) checkLease(lease time.Duration) error {
	switch {
	case lease < 0 || lease > MaxDelay:
		return invalid("spawn", "a lease of %v is not within 0 and %v", lease, MaxDelay)
	case lease > 0 && !p.facts.Leases && !p.facts.DiesWithOwner:
		e := fault.New(fault.BackendUnsupported, "spawn", "", "this world cannot end a program whose owner has gone")
		return e.WithHint("run it without a lease")
	}
	return nil
}

// checkSize holds TT-2.
func checkSize(rows, cols int) error {
	if rows < 1 || rows > 65535 || cols < 1 || cols > 65535 {
		return invalid("terminal", "a size of %d rows and %d columns is not within 1 to 65535", rows, cols)
	}
	return nil
}

// checkEnv holds EN-7.
func checkEnv(op string, env Env) error {
	for name, value := range env.Set {
		if err := checkName(op, name); err != nil {
			return err
		}
		if hasNUL(value) {
			return invalid(op, "the value of %s holds a NUL byte", name)
		}
	}
	for _, name := range env.Remove {
		if err := checkName(op, name); err != nil {
			return err
		}
		if _, both := env.Set[name]; both {
			return invalid(op, "the variable %s is both set and removed", name)
		}
	}
	return nil
}

func checkName(op, name string) error {
	if name == "" || strings.ContainsAny(name, "=\x00") {
		return invalid(op, "%q is not the name of a variable", name)
	}
	return nil
}

// checkCommand holds LK-2 and LK-5.
func checkCommand(command string) error {
	switch {
	case command == "":
		return invalid("which", "the program's name is empty")
	case hasNUL(command):
		return invalid("which", "the program's name holds a NUL byte")
	case strings.Contains(command, "/") && !path.IsAbs(command):
		return invalid("which", "%q is relative to no directory: give an absolute path or a bare name", command)
	}
	return nil
}

// withoutReserved takes the names out that the service refuses to set or remove
// (EN-11), or refuses the request unless drop is set.
func withoutReserved(op string, env Env, reserved []string, drop bool) (Env, []string, error) {
	var hit []string
	for _, name := range reserved {
		if _, set := env.Set[name]; set || slices.Contains(env.Remove, name) {
			hit = append(hit, name)
		}
	}
	if len(hit) > 0 && !drop {
		return env, nil, fault.New(fault.BackendUnsupported, op, "",
			"%s: this service does not let %s be set or removed", op, strings.Join(hit, ", ")).
			WithHint("leave the variable out, or allow entries to be dropped")
	}
	slices.Sort(hit)
	out := Env{Set: make(map[string]string, len(env.Set))}
	for name, value := range env.Set {
		if !slices.Contains(hit, name) {
			out.Set[name] = value
		}
	}
	for _, name := range env.Remove {
		if !slices.Contains(hit, name) {
			out.Remove = append(out.Remove, name)
		}
	}
	return out, hit, nil
}

func hasNUL(s string) bool { return strings.IndexByte(s, 0) >= 0 }
