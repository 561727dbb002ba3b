package ssh

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/script"
)

// processes is the driver of a host's processes. A program takes the place of
// the helper in a session of its own, so the server itself reports how it ended.
type processes struct{ world *World }

var _ remoteexec.Driver = (*processes)(nil)

// Facts are those of OpenSSH on a POSIX host.
func (p *processes) Facts() remoteexec.Facts {
	runs := p.world.noShell == nil && p.world.hello.Proc
	return remoteexec.Facts{
		Backend: "ssh", Remote: true, StartFaults: true, Signals: true, Pauses: true,
		Terminals: runs, DiesWithOwner: true, Poll: 100 * time.Millisecond,
	}
}

func (p *processes) check(op string) error {
	if p.world.noShell != nil || !p.world.hello.Proc {
		return p.world.unsupported(op)
	}
	return nil
}

// LookPath walks the PATH in the world.
func (p *processes) LookPath(ctx context.Context, command string, env remoteexec.Env) (string, error) {
	if err := p.check("which"); err != nil {
		return "", err
	}
	var path *string
	if v, ok := env.Set["PATH"]; ok {
		path = &v
	}
	for _, name := range env.Remove {
		if name == "PATH" {
			path = new(string)
		}
	}
	c := script.Lookup(command, path, p.world.cwd)
	var found string
	err := p.world.sh.ask(ctx, c, func(a *script.Answer) (err error) {
		found, err = script.ReadLookup(a, c)
		return err
	})
	var f *script.Failure
	if errors.As(err, &f) {
		if f.Kind == script.NotExecutable {
			return "", fault.New(fault.ExecProgramNotExecutable, "which", command, "which %s: not an executable file", command)
		}
		return "", fault.New(fault.ExecProgramNotFound, "which", command, "which %s: not found", command)
	}
	if err != nil {
		return "", err
	}
	return clean(found), nil
}

// clean is lexical and keeps links.
func clean(p string) string { return joinWorld("/", p) }

// handshakeLimit bounds a start from its request to its report (RS-4).
const handshakeLimit = 60 * time.Second

// Start starts a program.
func (p *processes) Start(ctx context.Context, spec remoteexec.StartSpec) (remoteexec.Proc, error) {
	if err := p.check("spawn"); err != nil {
		return nil, err
	}
	input := script.NoInput
	if spec.Stdin != remoteexec.StdinIgnore {
		input = script.Piped
	}
	if err := checkLengths(spec.Argv, spec.Set); err != nil {
		return nil, err
	}
	c := script.Start(script.StartSpec{Argv: spec.Argv, Cwd: spec.Cwd, Set: spec.Set, Remove: spec.Remove,
		Input: input, Grace: spec.Grace})
	s, a, err := p.launch(ctx, c)
	if err != nil {
		return nil, err
	}
	pr := &proc{tree: tree{world: p.world}, session: s}
	if err := pr.begin(a, c); err != nil {
		s.close()
		return nil, p.failed(ctx, spec, s, err)
	}
	if input == script.Piped {
		pr.stdin = newStdin(s)
	}
	all := &outputs{s: s}
	pr.stdout = all.add(a, "")
	pr.stderr = all.add(script.NewAnswer(s.Stderr()), c.Nonce)
	return pr, nil
}

// longest is Linux's bound for one argument and for one entry of the environment
// (EN-12).
const longest = 131071

func checkLengths(argv []string, set map[string]string) error {
	for i, a := range argv {
		if len(a) > longest {
			return fault.New(fault.ExecArgumentsTooLong, "spawn", argv[0],
				"cannot start %.200s: argument %d has %d bytes, at most %d are possible", argv[0], i, len(a), longest)
		}
	}
	for name, value := range set {
		if n := len(name) + 1 + len(value); n > longest {
			return fault.New(fault.ExecArgumentsTooLong, "spawn", argv[0],
				"cannot start %.200s: the environment entry %.100s has %d bytes, at most %d are possible", argv[0], name, n, longest)
		}
	}
	return nil
}

// launch sends a start request. Once it is sent ctx has no meaning.
func (p *processes) launch(ctx context.Context, c script.Call) (*session, *script.Answer, error) {
	s, err := p.world.sh.session(ctx)
	if err == nil && ctx.Err() != nil {
		s.close()
		err = ctx.Err()
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, nil, fault.Aborted(ctx, fault.ExecCancelled, "spawn", "")
		}
		return nil, nil, err
	}
	if err := s.exec(c.Line(!p.world.sh.plain.Load())); err != nil {
		s.close()
		return nil, nil, p.world.sh.lost(s.conn)
	}
	p.world.sh.trace(c.Name, 1, 0)
	p.world.sh.prepare() // for the look at the tree at the end
	return s, script.NewAnswer(s), nil
}

// begin sends what comes before the program's input and reads the start report.
func (p *proc) begin(a *script.Answer, c script.Call) error {
	limit := time.AfterFunc(handshakeLimit, p.session.close)
	defer limit.Stop()
	sent := make(chan error, 1)
	go func() { sent <- send(p.session, c.Input) }()
	started, err := script.ReadStarted(a, c)
	if err != nil {
		return err
	}
	p.started = started
	return <-sent
}

// send writes what comes before the program's input, if there is anything.
func send(s *session, input []byte) error {
	if len(input) == 0 {
		return nil
	}
	s.hub.trace("environment", 1, int64(len(input)))
	_, err := s.Write(input)
	return err
}

// failed gives a start that failed its code.
func (p *processes) failed(ctx context.Context, spec remoteexec.StartSpec, s *session, err error) error {
	var f *script.Failure
	if !errors.As(err, &f) {
		return p.world.sh.explain(context.WithoutCancel(ctx), s, err)
	}
	program := spec.Argv[0]
	fail := func(code fault.Code, path, why string) error {
		return fault.New(code, "spawn", path, "cannot start %s: %s", program, why)
	}
	switch f.Kind {
	case "cwd-missing":
		return fail(fault.ExecCwdMissing, spec.Cwd, "the working directory "+quoted(spec.Cwd)+" does not exist")
	case "cwd-not-directory":
		return fail(fault.ExecCwdNotDirectory, spec.Cwd, "the working directory "+quoted(spec.Cwd)+" is not a directory")
	case "cwd-denied":
		return fail(fault.ExecCwdDenied, spec.Cwd, "the working directory "+quoted(spec.Cwd)+" may not be entered")
	case "program-not-found":
		return fail(fault.ExecProgramNotFound, program, "not found")
	case "program-not-executable":
		return fail(fault.ExecProgramNotExecutable, program, "not an executable file")
	case "unsupported":
		return fail(fault.BackendUnsupported, program, "a name in the environment that no shell can hold needs perl on the host")
	}
	return fail(fault.ExecSpawnFailed, program, string(f.Kind))
}

// tree is a started program seen from other sessions.
type tree struct {
	world   *World
	started script.Started
}

// PID is the id of the program, which leads its session and group.
func (t *tree) PID() int { return t.started.PID }

// Signal delivers to the whole tree.
func (t *tree) Signal(ctx context.Context, name string) error {
	c := script.Kill(t.started, strings.TrimPrefix(name, "SIG"))
	var d script.Delivery
	err := t.world.sh.ask(ctx, c, func(a *script.Answer) (err error) {
		d, err = script.ReadDelivery(a, c)
		return err
	})
	if err == nil && d == script.Refused {
		err = fault.New(fault.ExecSignalNotDelivered, "signal", "", "%s could not be delivered to process %d", name, t.PID())
	}
	return err
}

// Members lists the live members of the tree.
func (t *tree) Members(ctx context.Context) (pids []int, err error) {
	c := script.Members(t.started)
	err = t.world.sh.ask(ctx, c, func(a *script.Answer) (err error) {
		pids, err = script.ReadMembers(a, c)
		return err
	})
	return pids, err
}

// Terminate runs the whole ladder in the world with one request.
func (t *tree) Terminate(ctx context.Context, grace time.Duration) (survivors []int, err error) {
	c := script.End(t.started, grace)
	err = t.world.sh.ask(ctx, c, func(a *script.Answer) (err error) {
		survivors, err = script.ReadMembers(a, c)
		return err
	})
	return survivors, err
}

// WaitQuiescent waits in the world until nothing of the tree lives.
func (t *tree) WaitQuiescent(ctx context.Context) error {
	c := script.Quiet(t.started)
	return t.world.sh.ask(ctx, c, func(a *script.Answer) error {
		_, err := script.ReadMembers(a, c)
		return err
	})
}

// Release has nothing to free: the session ends by itself.
func (t *tree) Release() {}

// HardKill ends the connections; the watchers in the world end the trees.
func (t *tree) HardKill() { t.world.sh.close() }

// proc is a program without a terminal.
type proc struct {
	tree
	session *session
	stdin   io.WriteCloser
	stdout  *output
	stderr  *output
}

var (
	_ remoteexec.Proc       = (*proc)(nil)
	_ remoteexec.Terminator = (*proc)(nil)
	_ remoteexec.Quiescer   = (*proc)(nil)
	_ remoteexec.HardKiller = (*proc)(nil)
)

// Stdin is the program's input, or nil.
func (p *proc) Stdin() io.WriteCloser {
	if p.stdin == nil {
		return nil
	}
	return p.stdin
}

// Stdout is the program's output.
func (p *proc) Stdout() io.ReadCloser { return p.stdout }

// Stderr is the program's error output.
func (p *proc) Stderr() io.ReadCloser { return p.stderr }

// Wait waits for the server's report of the program's end.
func (p *proc) Wait() (remoteexec.Outcome, error) { return p.session.outcome() }

// outcome is how the program of a session ended.
func (s *session) outcome() (remoteexec.Outcome, error) {
	select {
	case <-s.exited:
	case <-s.closed:
	}
	switch {
	case !s.known():
		return remoteexec.Outcome{}, s.hub.lost(s.conn)
	case s.signal != "":
		return remoteexec.Outcome{Signal: "SIG" + s.signal}, nil
	}
	return remoteexec.Outcome{ExitCode: s.status}, nil
}

// stdin is the input of a program. One goroutine hands the bytes on and then says
// that they end, because the library does not let both run at once; closing ends
// a write that waits.
type stdin struct{ *io.PipeWriter }

func newStdin(s *session) *stdin {
	r, w := io.Pipe()
	go func() {
		buf := make([]byte, 32<<10)
		for {
			n, err := r.Read(buf)
			if n > 0 {
				if _, failed := s.Write(buf[:n]); failed != nil {
					r.CloseWithError(fault.Wrap(failed, fault.ExecSessionExited, "write", "", "the program takes no more input"))
					return
				}
			}
			if err != nil {
				s.CloseWrite()
				return
			}
		}
	}()
	go func() {
		<-s.closed
		r.CloseWithError(fault.New(fault.ExecSessionExited, "write", "", "the program has ended"))
	}()
	return &stdin{w}
}

// outputs are the two outputs of a program. Of the standard output OpenSSH can be
// told that nobody reads it, which breaks the program's pipe; what still comes for
// an error output that is given up is dropped. When both are given up and the
// program has ended, the session is closed and whoever still writes gets a broken
// pipe (OC-8).
type outputs struct {
	s  *session
	mu sync.Mutex
	up int // how many are wanted
}

// output is one of them. Read gives what comes after the mark.
type output struct {
	*io.PipeReader
	all  *outputs
	main bool // the standard output
	once sync.Once
}

// add makes an output of what r gives after nonce; "" = there is no mark.
func (all *outputs) add(r *script.Answer, nonce string) *output {
	pr, pw := io.Pipe()
	all.up++
	go all.pump(r, nonce, pw)
	return &output{PipeReader: pr, all: all, main: nonce == ""}
}

// pump hands bytes on as they are taken, so that a program whose output nobody
// reads waits.
func (all *outputs) pump(r *script.Answer, nonce string, to *io.PipeWriter) {
	if nonce != "" {
		if _, err := r.Begin(nonce); err != nil {
			to.CloseWithError(all.end(err))
			return
		}
	}
	buf := make([]byte, 64<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			to.Write(buf[:n]) // fails when it was given up; the rest is dropped
		}
		if err != nil {
			to.CloseWithError(all.end(err))
			return
		}
	}
}

// end gives io.EOF for an orderly end. A connection that is lost ends the stream
// first and the session a moment later; a program that closes its output ends
// only the stream.
func (all *outputs) end(err error) error {
	if !errors.Is(err, io.EOF) && !errors.Is(err, script.ErrNoMarker) {
		return err
	}
	select {
	case <-all.s.exited:
	case <-all.s.closed:
		if !all.s.known() {
			return all.s.hub.lost(all.s.conn)
		}
	case <-time.After(100 * time.Millisecond):
	}
	return io.EOF
}

// Close gives the output up and ends a read that waits.
func (o *output) Close() error {
	o.once.Do(func() {
		o.PipeReader.Close()
		if o.main {
			o.all.s.SendRequest("eow@openssh.com", false, nil)
		}
		o.all.mu.Lock()
		o.all.up--
		last := o.all.up == 0
		o.all.mu.Unlock()
		if last {
			go o.all.drop()
		}
	})
	return nil
}

func (all *outputs) drop() {
	select {
	case <-all.s.exited:
		all.s.close()
	case <-all.s.closed:
	}
}
