package box

import (
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/afield-dev/afield/pkg/backend/box/wire"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/script"
)

// processes is the driver of the process contract.
type processes struct{ *link }

// Facts implements remoteexec.Driver.
func (p *processes) Facts() remoteexec.Facts {
	return remoteexec.Facts{
		Backend: name, Remote: true, EndsOutput: true, Terminals: true, DiesWithOwner: true,
		ReservedEnv: reservedEnv(), Poll: 100 * time.Millisecond,
	}
}

// LookPath searches in the box by one request.
func (p *processes) LookPath(ctx context.Context, command string, env remoteexec.Env) (string, error) {
	if err := textual("the name of the program", command); err != nil {
		return "", err
	}
	var given *string
	if v, ok := env.Set["PATH"]; ok {
		given = &v
	} else if slices.Contains(env.Remove, "PATH") {
		given = new(string)
	}
	call := script.Lookup(command, given, p.owner.cfg.cwd)
	a, err := p.run(ctx, true, call)
	if err != nil {
		return "", protocolError(err)
	}
	found, err := script.ReadLookup(a, call)
	var refused *script.Failure
	switch {
	case err == nil:
		return path.Clean(found), nil
	case errors.As(err, &refused) && refused.Kind == script.NotFound:
		return "", fault.New(fault.ExecProgramNotFound, "which", command, "%q was not found on the PATH of the box", command)
	case errors.As(err, &refused) && refused.Kind == script.NotExecutable:
		return "", fault.New(fault.ExecProgramNotExecutable, "which", command, "%q is not an executable file in the box", command)
	}
	return "", protocolError(err)
}

// Start implements remoteexec.Driver.
func (p *processes) Start(ctx context.Context, spec remoteexec.StartSpec) (remoteexec.Proc, error) {
	start, err := p.frame(spec.Argv, spec.Cwd, spec.Set, spec.Remove)
	if err != nil {
		return nil, err
	}
	s, err := p.open(ctx, "start", start)
	if err != nil {
		return nil, err
	}
	return newProc(p.link, s, spec.Stdin), nil
}

// StartTerminal implements remoteexec.Driver.
func (p *processes) StartTerminal(ctx context.Context, spec remoteexec.TerminalSpec) (remoteexec.TerminalProc, error) {
	set := spec.Env.Set
	if _, ok := set["TERM"]; !ok && !slices.Contains(spec.Env.Remove, "TERM") {
		set = map[string]string{"TERM": "xterm-256color"}
		for k, v := range spec.Env.Set {
			set[k] = v
		}
	}
	start, err := p.frame(spec.Argv, spec.Cwd, set, spec.Env.Remove)
	if err != nil {
		return nil, err
	}
	start.TTY, start.Rows, start.Cols = true, spec.Rows, spec.Cols
	s, err := p.open(ctx, "terminal", start)
	if err != nil {
		return nil, err
	}
	return newTerminal(newProc(p.link, s, remoteexec.StdinPipe)), nil
}

// frame makes the start frame. Names to remove become a wrapper that carries no
// value and cannot misread the program (EN-9, EN-10).
func (p *processes) frame(argv []string, cwd string, set map[string]string, remove []string) (wire.Start, error) {
	for _, a := range argv {
		if err := textual("an argument", a); err != nil {
			return wire.Start{}, err
		}
	}
	if err := textual("the working directory", cwd); err != nil {
		return wire.Start{}, err
	}
	start := wire.Start{Argv: argv, Cwd: cwd}
	for name, value := range set {
		if err := textual("the environment entry "+name, name+value); err != nil {
			return wire.Start{}, err
		}
		start.Env = append(start.Env, name+"="+value)
	}
	slices.Sort(start.Env)
	if len(remove) == 0 {
		return start, nil
	}
	wrapper := []string{"env"}
	for _, name := range slices.Sorted(slices.Values(remove)) {
		if err := textual("the environment name "+name, name); err != nil {
			return wire.Start{}, err
		}
		wrapper = append(wrapper, "-u", name)
	}
	start.Argv = append(append(wrapper, "nice", "-n", "0", "--"), argv...)
	return start, nil
}

// textual refuses what a frame cannot carry: JSON would change it silently.
func textual(what, s string) error {
	if utf8.ValidString(s) {
		return nil
	}
	e := fault.New(fault.BackendUnsupported, "spawn", "", "%s is not UTF-8 text, which is all that a box can be given", strings.ToValidUTF8(what, "\uFFFD"))
	e.Backend = name
	return e
}

// open opens the session of a program and finds out why it did not start.
func (p *processes) open(ctx context.Context, op string, start wire.Start) (*wire.Session, error) {
	s, err := p.session(ctx, start)
	if err == nil {
		return s, nil
	}
	var e *wire.Error
	switch {
	case ctx.Err() != nil && (!errors.As(err, &e) || !e.Session && !e.Corrupt):
		return nil, aborted(ctx, op)
	case fault.CodeOf(err) != "" || !errors.As(err, &e):
		return nil, err
	case e.Status == 404:
		return nil, world(err, fault.BackendUnsupported, "this service has no exec sessions").
			WithHint("set baseUrl in the profile's row to a service that has them")
	case e.Session, e.Corrupt && e.Status == 0:
		if bad := p.examine(start.Cwd); bad != nil {
			return nil, bad
		}
		return nil, fault.Wrap(err, fault.ExecSpawnFailed, op, start.Argv[0], "start %s: %s", start.Argv[0], e.Text)
	case e.Slow:
		return nil, fault.Wrap(err, fault.ExecTransportLost, op, start.Argv[0], "start %s: %s", start.Argv[0], e.Text).WithRetry(fault.RetryUnknown)
	}
	return nil, remote(err)
}

// examineLimit bounds the look at the working directory of a start that failed.
const examineLimit = 5 * time.Second

// examine asks once whether the working directory of a failed start can be
// entered (RS-9). It gives nil if it can, and if that cannot be found out.
func (p *processes) examine(cwd string) error {
	ctx, cancel := context.WithTimeout(context.Background(), examineLimit)
	defer cancel()
	id, err := p.id(ctx)
	if err != nil {
		return nil
	}
	const look = `[ -d "$1" ] || { [ -e "$1" ] && exit 4; exit 3; }; [ -x "$1" ] || exit 5`
	res, err := p.client.Exec(ctx, id, []string{"sh", "-c", look, "afield", cwd}, "/")
	if err != nil {
		return nil
	}
	advice := "directories of this machine do not exist in the box: set cwd in the profile's row, or -C, to one that does"
	switch res.ExitCode {
	case 3:
		return fault.New(fault.ExecCwdMissing, "spawn", cwd, "the working directory %q does not exist in the box", cwd).WithHint("%s", advice)
	case 4:
		return fault.New(fault.ExecCwdNotDirectory, "spawn", cwd, "the working directory %q is not a directory", cwd).WithHint("%s", advice)
	case 5:
		return fault.New(fault.ExecCwdDenied, "spawn", cwd, "the working directory %q may not be entered", cwd)
	}
	return nil
}

// lost gives the error of a session that ended without an exit report (RS-7).
func lost(err error) error {
	code, what := fault.ExecTransportLost, "the connection to the program was lost; how it ended is not known"
	if errors.Is(err, wire.ErrCorrupt) {
		code, what = fault.ExecTransportCorrupt, "the service broke the protocol; how the program ended is not known"
	}
	return fault.Wrap(err, code, "wait", "", "%s", what).WithRetry(fault.RetryUnknown)
}

var errExited = fault.New(fault.ExecSessionExited, "write", "", "the program has ended")

var _ io.WriteCloser = (*stdin)(nil)
