package e2b

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/afield-dev/afield/pkg/backend/e2b/wire"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
)

// proc is a started program: it implements remoteexec.Proc, Terminator,
// Quiescer and HardKiller.
type proc struct {
	*started
	runner *Runner
	spec   remoteexec.StartSpec
	stdin  *input // nil without
	stdout *outlet
	stderr *outlet
	exit   *exit
	lease  *lease // nil without
}

// exit is how a program ended, known once.
type exit struct {
	once    sync.Once
	known   chan struct{}
	outcome remoteexec.Outcome
	err     error
}

func newExit() *exit { return &exit{known: make(chan struct{})} }

func (e *exit) set(o remoteexec.Outcome, err error) {
	e.once.Do(func() {
		e.outcome, e.err = o, err
		close(e.known)
	})
}

func newProc(r *Runner, st *started, spec remoteexec.StartSpec, life *lease) *proc {
	p := &proc{started: st, runner: r, spec: spec, exit: newExit(), lease: life}
	if life != nil {
		life.begin()
	}
	p.stdout, p.stderr = newOutlet(p.outletClosed), newOutlet(p.outletClosed)
	if spec.Stdin != remoteexec.StdinIgnore {
		p.stdin = newInput(r.session, st.pid)
	}
	go p.read()
	go p.exit.watch(r.session, st.pid, func() bool { return p.stdout.isHolding() || p.stderr.isHolding() })
	return p
}

// read hands the stream's events on until its end.
func (p *proc) read() {
	err := pump(p.stream, p.exit, func(d *wire.DataEvent) {
		p.stdout.put(d.Stdout)
		p.stderr.put(d.Stderr)
	})
	p.stream.Close()
	if err != nil {
		err = execError(p.runner.session.diagnose(err))
		p.exit.set(remoteexec.Outcome{}, err)
	}
	p.stdout.end(err)
	p.stderr.end(err)
}

// pump reads events. A stream that breaks after the program's end has told all
// that counts (OC-4).
func pump(st *wire.Stream, e *exit, data func(*wire.DataEvent)) error {
	ended := false
	for {
		ev, err := st.NextEvent()
		switch {
		case err != nil && ended:
			return nil
		case err == io.EOF:
			return wire.ErrCut
		case err != nil:
			return err
		case ev.Data != nil:
			data(ev.Data)
		case ev.End != nil:
			ended = true
			e.set(outcomeOf(ev.End))
		}
	}
}

// outcomeOf takes the daemon's report: a code, or the signal that its words
// name (OC-3, OC-4).
func outcomeOf(end *wire.EndEvent) (remoteexec.Outcome, error) {
	if end.Exited {
		return remoteexec.Outcome{ExitCode: int(end.ExitCode)}, nil
	}
	word, ok := strings.CutPrefix(end.Status, wire.StatusSignal)
	if !ok {
		return remoteexec.Outcome{}, fault.New(fault.ExecTransportCorrupt, "wait", "", "the sandbox reported the end %q, which is neither a code nor a signal", end.Status)
	}
	return remoteexec.Outcome{Signal: signalOfWord(strings.TrimSuffix(word, " (core dumped)"))}, nil
}

// Looks at a program that runs: the first one, and the longest pause between
// two.
const (
	firstLook = 250 * time.Millisecond
	lastLook  = time.Second
)

// patience is how long an ended program without visible descendants is given
// until its report arrives: it may be held by a descendant that has left the
// session, or be on its way from a slow sandbox.
const patience = 3 * time.Second

// watch looks whether the program has ended while its stream is held open by a
// descendant: the daemon has not reaped it then, and the raw status stands in
// its entry of /proc (OC-11, OC-13). Between an ordinary end and its report
// there is a moment in which output is still on its way, so one look proves
// nothing. holding says that output waits for a reader of ours, behind which
// the report would have to wait too.
func (e *exit) watch(s *session, pid int, holding func() bool) {
	pause := time.NewTimer(firstLook)
	defer pause.Stop()
	var since time.Time
	next := firstLook
	for {
		select {
		case <-e.known:
			return
		case <-pause.C:
		}
		asked := time.Now()
		st, err := s.procStat(context.Background(), pid)
		slow := min(20*time.Since(asked), 5*patience) // how slow the sandbox is just now
		switch {
		case isAbsent(err) && holding():
			e.recall(s, pid)
		case err != nil || st.state != "Z" || !st.hasExit:
			since, next = time.Time{}, min(2*next, lastLook)
		case since.IsZero():
			since, next = time.Now(), firstLook
		case time.Since(since) > patience+slow || slow < patience && (tree{s, pid}).held():
			e.set(st.outcome(), nil)
			return
		}
		pause.Reset(max(next, slow/2)) // looks must not be what makes it slow
	}
}

// recall asks the daemon for the end of a program that it has reaped; it
// remembers one for half a minute.
func (e *exit) recall(s *session, pid int) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s.use(ctx, func(c *wire.Client) error {
		st, err := c.Open(ctx, wire.MethodConnect, wire.ConnectRequest{Process: wire.ByPID(pid)}, keepalive)
		if err != nil {
			return err
		}
		defer st.Close()
		return pump(st, e, func(*wire.DataEvent) {})
	})
}

// procStat is what is read of /proc/PID/stat.
type procStat struct {
	state   string
	session int
	tpgid   int
	raw     uint32 // the wait status
	hasExit bool
}

// procStat reads it as root, compressed: the file has no size.
func (s *session) procStat(ctx context.Context, pid int) (procStat, error) {
	text, err := s.procFile(ctx, "/proc/"+strconv.Itoa(pid)+"/stat")
	if err != nil {
		return procStat{}, err
	}
	f := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(f) < 22 {
		return procStat{}, errors.New("unreadable process status")
	}
	st := procStat{state: f[0]}
	st.session, _ = strconv.Atoi(f[3])
	st.tpgid, _ = strconv.Atoi(f[5])
	if len(f) >= 50 {
		raw, err := strconv.ParseUint(f[49], 10, 32)
		st.raw, st.hasExit = uint32(raw), err == nil
	}
	return st, nil
}

// procFile reads a small file of /proc.
func (s *session) procFile(ctx context.Context, p string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, cleanTimeout)
	defer cancel()
	var text []byte
	err := s.use(ctx, func(c *wire.Client) error {
		dl, err := c.Download(ctx, p, wire.DownloadOptions{Gzip: true})
		if err != nil {
			return err
		}
		defer dl.Body.Close()
		text, err = io.ReadAll(io.LimitReader(dl.Body, 64<<10))
		return err
	})
	return string(text), err
}

// outcome decodes a raw wait status.
func (st procStat) outcome() remoteexec.Outcome {
	if sig := int(st.raw & 0x7F); sig != 0 {
		return remoteexec.Outcome{Signal: signalOfNumber(sig)}
	}
	return remoteexec.Outcome{ExitCode: int(st.raw >> 8 & 0xFF)}
}

// PID gives the id in the sandbox.
func (p *proc) PID() int { return p.pid }

// Stdin gives the input, nil without one.
func (p *proc) Stdin() io.WriteCloser {
	if p.stdin == nil {
		return nil
	}
	return p.stdin
}

// Stdout gives the output.
func (p *proc) Stdout() io.ReadCloser { return p.stdout }

// Stderr gives the errors.
func (p *proc) Stderr() io.ReadCloser { return p.stderr }

// Wait gives how the program ended. On 126 and 127, and only then, the program
// is looked up: a launcher reports a missing one that way (RS-12).
func (p *proc) Wait() (remoteexec.Outcome, error) {
	<-p.exit.known
	o, err := p.exit.outcome, p.exit.err
	if err == nil && o.Signal == "" && (o.ExitCode == 126 || o.ExitCode == 127) {
		err = p.runner.missing(p.spec)
	}
	return o, err
}

// missing gives the error of a program that cannot have been started, nil where
// it is there or nothing can be told.
func (r *Runner) missing(spec remoteexec.StartSpec) error {
	ctx, cancel := context.WithTimeout(context.Background(), cleanTimeout)
	defer cancel()
	prep, err := r.session.prepared(ctx)
	if err != nil {
		return nil
	}
	program := spec.Argv[0]
	found, any, err := r.search(ctx, program, r.candidates(program, searchPath(prep, spec.Set, spec.Remove), spec.Cwd))
	switch {
	case err != nil || found != "":
		return nil
	case any:
		return fault.New(fault.ExecProgramNotExecutable, "spawn", program, "start %s: not an executable file", program)
	}
	if tool, _, err := r.search(ctx, "setsid", r.candidates("setsid", prep.Path, "/")); err == nil && tool == "" {
		return fault.New(fault.BackendUnsupported, "spawn", program, "start %s: the sandbox has no setsid, which is needed to end a program with all that it started", program).
			WithHint("use a template with util-linux or busybox")
	}
	return fault.New(fault.ExecProgramNotFound, "spawn", program, "start %s: program not found", program).
		WithHint("install it in the sandbox, or set PATH with --env")
}

// outletClosed runs when somebody has closed an output: a program that runs
// gets a broken pipe, as far as a sandbox can give one; after its end the
// stream is cut when nobody reads any more.
func (p *proc) outletClosed() {
	select {
	case <-p.exit.known:
		if p.stdout.isClosed() && p.stderr.isClosed() {
			p.cancel()
		}
	default:
		if !p.stdout.isEnded() {
			go p.runner.tree(p.pid).signal(context.Background(), "PIPE")
		}
	}
}

// Signal sends SIGTERM or SIGKILL to the whole tree.
func (p *proc) Signal(ctx context.Context, sig string) error {
	return p.runner.tree(p.pid).signal(ctx, strings.TrimPrefix(sig, "SIG"))
}

// Members lists the live members of the tree.
func (p *proc) Members(ctx context.Context) ([]int, error) { return p.runner.tree(p.pid).members(ctx) }

// Terminate runs the whole ladder in the sandbox: one request.
func (p *proc) Terminate(ctx context.Context, grace time.Duration) ([]int, error) {
	p.stdout.stopHolding()
	p.stderr.stopHolding()
	t := p.runner.tree(p.pid)
	select {
	case <-p.exit.known:
		if members, err := t.quickMembers(ctx); err == nil && len(members) == 0 {
			return nil, nil
		}
	default:
	}
	return t.end(ctx, "TERM", grace)
}

// WaitQuiescent waits in the sandbox.
func (p *proc) WaitQuiescent(ctx context.Context) error { return p.runner.tree(p.pid).wait(ctx) }

// HardKill sends KILL to the whole tree.
func (p *proc) HardKill() {
	ctx, cancel := context.WithTimeout(context.Background(), hardKillTimeout)
	defer cancel()
	p.runner.tree(p.pid).kill(ctx)
}

// Release frees the stream and the lease.
func (p *proc) Release() {
	p.lease.end()
	if p.stdin != nil {
		p.stdin.abandon()
	}
	select {
	case <-p.exit.known:
		if p.stdout.isClosed() && p.stderr.isClosed() {
			p.cancel()
		}
	default:
	}
}

// signalOfWord gives the name of a signal from the words of the daemon.
func signalOfWord(word string) string {
	words := [...]string{
		1: "hangup", 2: "interrupt", 3: "quit", 4: "illegal instruction", 5: "trace/breakpoint trap", 6: "aborted",
		7: "bus error", 8: "floating point exception", 9: "killed", 10: "user defined signal 1", 11: "segmentation fault",
		12: "user defined signal 2", 13: "broken pipe", 14: "alarm clock", 15: "terminated", 16: "stack fault",
		17: "child exited", 18: "continued", 19: "stopped (signal)", 20: "stopped", 21: "stopped (tty input)",
		22: "stopped (tty output)", 23: "urgent I/O condition", 24: "CPU time limit exceeded", 25: "file size limit exceeded",
		26: "virtual timer expired", 27: "profiling timer expired", 28: "window changed", 29: "I/O possible",
		30: "power failure", 31: "bad system call",
	}
	for n, w := range words {
		if n > 0 && w == word {
			return signalOfNumber(n)
		}
	}
	if n, err := strconv.Atoi(strings.TrimPrefix(word, "signal ")); err == nil {
		return signalOfNumber(n)
	}
	return "SIG" + strings.ToUpper(strings.ReplaceAll(word, " ", "-"))
}

// signalOfNumber gives the name of a signal of Linux, SIG and the number where
// it has none (OC-6).
func signalOfNumber(n int) string {
	names := [...]string{
		1: "HUP", 2: "INT", 3: "QUIT", 4: "ILL", 5: "TRAP", 6: "ABRT", 7: "BUS", 8: "FPE", 9: "KILL", 10: "USR1",
		11: "SEGV", 12: "USR2", 13: "PIPE", 14: "ALRM", 15: "TERM", 16: "STKFLT", 17: "CHLD", 18: "CONT", 19: "STOP",
		20: "TSTP", 21: "TTIN", 22: "TTOU", 23: "URG", 24: "XCPU", 25: "XFSZ", 26: "VTALRM", 27: "PROF", 28: "WINCH",
		29: "IO", 30: "PWR", 31: "SYS",
	}
	if n > 0 && n < len(names) {
		return "SIG" + names[n]
	}
	return "SIG" + strconv.Itoa(n)
}
