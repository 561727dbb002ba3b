package e2b

import (
	"context"
	"errors"
	"path"
	"time"
	"unicode/utf8"

	"github.com/afield-dev/afield/pkg/backend/e2b/wire"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
)

// Runner is the processes half: it implements remoteexec.Driver.
//
// A program runs in a session of its own, which is how the whole of it is found
// and ended. Its argument vector is kept by the platform; environment values
// and input are not. If afield is killed, or cut off for good, what it started
// goes on until the sandbox ends, unless it has a lease.
type Runner struct{ session *session }

// Facts gives what is true of a sandbox's processes.
func (r *Runner) Facts() remoteexec.Facts {
	return remoteexec.Facts{
		Backend: name, Remote: true, Signals: true, Pauses: true, Terminals: true, InputWait: true, Leases: true,
		Poll: r.session.cfg.poll,
	}
}

// maxArgument is the size from which on one argument does not fit.
const maxArgument = 131072

// Start starts a program: one request, and one before it for environment
// entries, which travel in a private file.
func (r *Runner) Start(ctx context.Context, spec remoteexec.StartSpec) (remoteexec.Proc, error) {
	p, file, err := r.plan(ctx, spec.Argv, spec.Set, spec.Remove)
	if err != nil {
		return nil, err
	}
	p, life := r.leased(spec, p)
	stdin := spec.Stdin != remoteexec.StdinIgnore
	start := wire.StartRequest{Process: wire.ProcessConfig{Cmd: "setsid", Args: p, Cwd: &spec.Cwd}, Stdin: &stdin}
	st, err := r.open(ctx, start, spec.Argv[0])
	if err != nil {
		r.dropFile(file)
		return nil, r.startError(err, spec.Argv, spec.Cwd)
	}
	return newProc(r, st, spec, life), nil
}

// plan gives the argument vector after setsid, and the private file that it
// reads, "" for none.
func (r *Runner) plan(ctx context.Context, argv []string, set map[string]string, remove []string) (args []string, file string, err error) {
	prep, err := r.session.prepared(ctx)
	if err != nil {
		return nil, "", r.cancelled(ctx, execError(err), argv[0])
	}
	args, content := launch(argv, set, remove, prep.Scrub)
	if content != nil {
		file = prep.Root + "/run/" + token()
		args = append([]string{"/bin/sh", "-c", `. "$0"`, file}, args...)
		if err = r.session.put(ctx, file, content); err != nil {
			r.dropFile(file)
			return nil, "", r.cancelled(ctx, execError(r.session.diagnose(err)), argv[0])
		}
	}
	if ctx.Err() != nil {
		r.dropFile(file)
		return nil, "", r.cancelled(ctx, nil, argv[0])
	}
	return args, file, nil
}

// cancelled gives EXEC_CANCELLED if ctx has ended, and err otherwise.
func (r *Runner) cancelled(ctx context.Context, err error, program string) error {
	if ctx.Err() != nil {
		return fault.Aborted(ctx, fault.ExecCancelled, "spawn", program)
	}
	return err
}

// dropFile removes a private file that nobody has read; "" = none.
func (r *Runner) dropFile(file string) {
	if file == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), cleanTimeout)
	defer cancel()
	err := r.session.diagnose((&Driver{r.session}).remove(ctx, file))
	if err != nil && !fault.Is(err, fault.BackendWorldGone) { // with the sandbox it goes too
		r.session.log.Warn("a private file was not removed", "path", file, "reason", err)
	}
}

// started is the stream of a program that runs.
type started struct {
	pid    int
	stream *wire.Stream
	cancel context.CancelFunc
}

// open sends the start request and waits for the program's id, no longer than a
// request may take. From here on ctx has no meaning (RS-3).
func (r *Runner) open(ctx context.Context, start wire.StartRequest, program string) (*started, error) {
	if ctx.Err() != nil {
		return nil, r.cancelled(ctx, nil, program)
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	late := time.AfterFunc(r.session.cfg.timeout, func() { cancel(errHandshake) })
	defer late.Stop()
	mark := "afield-" + token()
	start.Tag = &mark
	st := &started{cancel: func() { cancel(nil) }}
	err := r.session.use(ctx, func(c *wire.Client) (err error) {
		if st.stream, err = c.Open(ctx, wire.MethodStart, start, keepalive); err != nil {
			return err
		}
		ev, err := st.stream.NextEvent()
		if err == nil && ev.Start == nil {
			err = fault.New(fault.ExecTransportCorrupt, "spawn", program, "start %s: the first message of the sandbox is not the start", program)
		}
		if err == nil {
			st.pid = int(ev.Start.PID)
		}
		return err
	})
	if err == nil && late.Stop() {
		return st, nil
	}
	if err == nil || context.Cause(ctx) == errHandshake {
		err = errHandshake
	}
	if st.stream != nil {
		st.stream.Close()
	}
	cancel(nil)
	r.sweep(err, mark)
	return nil, err
}

var errHandshake = errors.New("the start was not confirmed in time")

// sweep ends a program that may run although its start was not confirmed; it is
// found by its mark (RS-6).
func (r *Runner) sweep(err error, mark string) {
	var e *wire.Error
	if errors.As(err, &e) {
		return // the sandbox refused, so nothing was started
	}
	ctx, cancel := context.WithTimeout(context.Background(), cleanTimeout)
	defer cancel()
	var list wire.ListResponse
	if r.session.use(ctx, func(c *wire.Client) error {
		return c.Call(ctx, wire.MethodProcessList, struct{}{}, &list)
	}) != nil {
		return
	}
	for _, p := range list.Processes {
		if p.Tag != nil && *p.Tag == mark && p.PID > 1 {
			r.tree(int(p.PID)).kill(ctx)
		}
	}
}

// startError gives the kind of a refused start. The daemon has one code for
// many reasons, so the directory is looked at (RS-9).
func (r *Runner) startError(err error, argv []string, cwd string) error {
	if fault.CodeOf(err) != "" {
		return err
	}
	var e *wire.Error
	if !errors.As(err, &e) || refused(err) != nil {
		return startFailed(execError(r.session.diagnose(err)), argv[0])
	}
	for _, a := range argv {
		if len(a) >= maxArgument {
			return fault.Wrap(err, fault.ExecArgumentsTooLong, "spawn", argv[0], "start %s: an argument of %d bytes is too long", argv[0], len(a))
		}
	}
	if bad := r.checkCwd(cwd); bad != nil {
		return bad
	}
	if e.Code == wire.CodeInvalidArgument && total(argv) > maxArgument {
		return fault.Wrap(err, fault.ExecArgumentsTooLong, "spawn", argv[0], "start %s: the arguments are too long", argv[0])
	}
	return fault.Wrap(err, fault.ExecSpawnFailed, "spawn", argv[0], "start %s: %s", argv[0], detail(e))
}

func startFailed(err error, program string) error {
	if fault.CodeOf(err) != "" {
		return err
	}
	return fault.Wrap(err, fault.ExecTransportLost, "spawn", program, "start %s: %s", program, innermost(err))
}

func total(argv []string) int {
	n := 0
	for _, a := range argv {
		n += len(a) + 1
	}
	return n
}

// checkCwd says what is wrong with a working directory; nil = nothing that can
// be told. A failed look changes nothing.
func (r *Runner) checkCwd(cwd string) error {
	ctx, cancel := context.WithTimeout(context.Background(), cleanTimeout)
	defer cancel()
	l, err := (&Driver{r.session}).look(ctx, cwd)
	switch {
	case err != nil:
		return nil
	case l.entry == nil && !l.again:
		return fault.New(fault.ExecCwdMissing, "spawn", cwd, "the working directory %q does not exist in the sandbox", cwd).
			WithHint("make it (`afield fs mkdir`), or name another one with --cwd")
	case l.entry != nil && l.entry.Type != wire.TypeDirectory:
		return fault.New(fault.ExecCwdNotDirectory, "spawn", cwd, "the working directory %q is not a directory", cwd).
			WithHint("name a directory with --cwd")
	case l.again:
		return r.checkCwd(l.key)
	}
	return nil
}

// execError gives the error of a call about a process: something about the
// world, or EXEC_TRANSPORT_LOST for a connection that broke.
func execError(err error) error {
	if err == nil || fault.CodeOf(err) != "" {
		return err
	}
	if f := refused(err); f != nil {
		return f
	}
	var e *wire.Error
	if errors.As(err, &e) {
		return world(err, fault.BackendProtocol, "the sandbox refused: %s", detail(e))
	}
	f := fault.Wrap(err, fault.ExecTransportLost, "", "", "the connection to the sandbox was lost: %s", innermost(err))
	f.Backend = name
	return f
}

// put writes a small private file.
func (s *session) put(ctx context.Context, p string, content []byte) error {
	return s.use(ctx, func(c *wire.Client) error {
		_, err := c.Upload(ctx, p, newBytes(content), int64(len(content)), nil)
		return err
	})
}

// LookPath looks at every candidate at the same time: one round trip.
func (r *Runner) LookPath(ctx context.Context, command string, env remoteexec.Env) (string, error) {
	if path.IsAbs(command) {
		ok, err := r.executable(ctx, command)
		if err == nil && !ok {
			err = fault.New(fault.ExecProgramNotExecutable, "which", command, "which %s: not an executable file", command)
		}
		return command, err
	}
	prep, err := r.session.prepared(ctx)
	if err != nil {
		return "", execError(err)
	}
	found, _, err := r.search(ctx, command, r.candidates(command, searchPath(prep, env.Set, env.Remove), r.session.cfg.cwd))
	if err == nil && found == "" {
		err = fault.New(fault.ExecProgramNotFound, "which", command, "which %s: not found", command).
			WithHint("install it in the sandbox, or set PATH with --env")
	}
	return found, err
}

// search gives the first candidate that can be executed, "" for none, and
// whether any of them is there at all.
func (r *Runner) search(ctx context.Context, command string, candidates []string) (found string, any bool, err error) {
	if !utf8.ValidString(command) {
		return "", false, nil
	}
	entries, errs := make([]*wire.EntryInfo, len(candidates)), make([]error, len(candidates))
	d := &Driver{r.session}
	each(len(candidates), func(i int) { entries[i], errs[i] = d.statOne(ctx, candidates[i]) })
	for i, e := range entries {
		if errs[i] != nil && !isAbsent(errs[i]) && !isInternal(errs[i]) {
			return "", any, execError(r.session.diagnose(errs[i]))
		}
		any = any || e != nil
		if runnable(e) {
			return candidates[i], true, nil
		}
	}
	return "", any, nil
}

func (r *Runner) executable(ctx context.Context, p string) (bool, error) {
	found, _, err := r.search(ctx, p, []string{p})
	return found != "", err
}

// runnable reports whether an entry is a regular file with an execute bit.
func runnable(e *wire.EntryInfo) bool {
	return e != nil && e.Type == wire.TypeFile && e.Mode&0o111 != 0
}
