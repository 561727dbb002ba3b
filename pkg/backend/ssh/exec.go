package ssh

import (
	"context"
	"errors"
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
	all := &outputs{s: s}
	pr.stdout = all.add(a, "", nil)
	if input == script.Piped {
		pr.stdin = newStdin(s)
		pr.stderr = all.add(script.NewAnswer(s.Stderr()), c.Nonce, nil)
		return pr, nil
	}
	pr.verdict = newVerdict(script.Verdict(c))
	pr.stderr = all.add(script.NewAnswer(s.Stderr()), c.Nonce, pr.verdict)
	go pr.endInput()
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
	if err := p.world.sh.send(s, c); err != nil {
		s.close()
		return nil, nil, err
	}
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
	if f.Kind == script.Moved {
		return p.world.sh.moved(f, err)
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
