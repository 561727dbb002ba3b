package remoteexec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
)

// journal records what reaches a scripted world, in order.
type journal struct {
	mu      sync.Mutex
	entries []string
}

func (j *journal) add(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, fmt.Sprintf(format, args...))
}

func (j *journal) all() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.entries, ", ")
}

// at gives one entry.
func (j *journal) at(i int) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.entries[i]
}

func (j *journal) count(prefix string) (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.entries {
		if strings.HasPrefix(e, prefix) {
			n++
		}
	}
	return n
}

// scripted is a Driver whose every step the test decides.
type scripted struct {
	journal
	facts    Facts
	look     func(ctx context.Context, command string) (string, error)
	start    func(ctx context.Context, spec StartSpec) (Proc, error)
	terminal func(ctx context.Context, spec TerminalSpec) (TerminalProc, error)
}

// remote is a scripted world elsewhere that reports signals and can be paused.
func remote() *scripted {
	return &scripted{facts: Facts{Backend: "scripted", Remote: true, Signals: true, Pauses: true, Terminals: true}}
}

func (d *scripted) Facts() Facts { return d.facts }

func (d *scripted) LookPath(ctx context.Context, command string, _ Env) (string, error) {
	d.add("which %s", command)
	return d.look(ctx, command)
}

func (d *scripted) Start(ctx context.Context, spec StartSpec) (Proc, error) {
	d.add("start %s", spec.Argv[0])
	return d.start(ctx, spec)
}

func (d *scripted) StartTerminal(ctx context.Context, spec TerminalSpec) (TerminalProc, error) {
	d.add("terminal %s", spec.Argv[0])
	return d.terminal(ctx, spec)
}

// gives makes a start that answers at once.
func gives(p Proc) func(context.Context, StartSpec) (Proc, error) {
	return func(context.Context, StartSpec) (Proc, error) { return p, nil }
}

// fakeProc is a program of a scripted world.
type fakeProc struct {
	j        *journal
	pid      int
	in       *fakeInput
	out, log *io.PipeReader
	outW     *io.PipeWriter
	logW     *io.PipeWriter
	ended    chan struct{}
	outcome  Outcome
	err      error
	onSignal func(name string) error
	mu       sync.Mutex
	alive    []int
	probe    error
}

func newProc(j *journal) *fakeProc {
	p := &fakeProc{j: j, pid: 4711, ended: make(chan struct{}), in: &fakeInput{j: j}, alive: []int{4711}}
	p.out, p.outW = io.Pipe()
	p.log, p.logW = io.Pipe()
	return p
}

func (p *fakeProc) PID() int              { return p.pid }
func (p *fakeProc) Stdin() io.WriteCloser { return p.in }
func (p *fakeProc) Stdout() io.ReadCloser { return p.out }
func (p *fakeProc) Stderr() io.ReadCloser { return p.log }
func (p *fakeProc) Release()              { p.j.add("release") }

func (p *fakeProc) Wait() (Outcome, error) {
	<-p.ended
	return p.outcome, p.err
}

func (p *fakeProc) Signal(_ context.Context, name string) error {
	p.j.add("%s", name)
	if p.onSignal != nil {
		return p.onSignal(name)
	}
	return nil
}

func (p *fakeProc) Members(context.Context) ([]int, error) {
	p.j.add("probe")
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.alive), p.probe
}

// exit ends the program with its streams and its tree.
func (p *fakeProc) exit(o Outcome) {
	p.leaves(nil, nil)
	p.outW.Close()
	p.logW.Close()
	p.exitHolding(o)
}

// exitHolding ends the root alone: streams and members stay.
func (p *fakeProc) exitHolding(o Outcome) {
	p.outcome = o
	close(p.ended)
}

// lose ends the connection without an exit report.
func (p *fakeProc) lose() {
	lost := fault.New(fault.ExecTransportLost, "wait", "", "the connection was lost")
	p.outW.CloseWithError(lost)
	p.logW.CloseWithError(lost)
	p.err = lost
	close(p.ended)
}

// leaves sets what a probe finds.
func (p *fakeProc) leaves(alive []int, probe error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.alive, p.probe = alive, probe
}

// endsOn lets a signal end the program.
func (p *fakeProc) endsOn(name string) *fakeProc {
	var once sync.Once
	p.onSignal = func(got string) error {
		if got == name {
			once.Do(func() { p.exit(Outcome{Signal: name}) })
		}
		return nil
	}
	return p
}

// fakeInput is the stdin of a scripted program.
type fakeInput struct {
	j   *journal
	mu  sync.Mutex
	got []byte
	err error
}

func (i *fakeInput) Write(p []byte) (int, error) {
	i.j.add("stdin %d", len(p))
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.err != nil {
		return 0, i.err
	}
	i.got = append(i.got, p...)
	return len(p), nil
}

func (i *fakeInput) Close() error {
	i.j.add("stdin close")
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.err
}

func (i *fakeInput) text() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return string(i.got)
}

// request is a plain request.
func request() Spec {
	out := Output{Mode: OutputCollect, MaxBytes: 64000}
	return Spec{Argv: []string{"prog"}, Cwd: "/", Stdout: out, Stderr: out, Grace: 200 * time.Millisecond}
}

// spawned starts a request that must not be refused.
func spawned(t *testing.T, rt Runtime, spec Spec) Handle {
	t.Helper()
	h, err := rt.Spawn(t.Context(), spec)
	if err != nil {
		t.Fatalf("spawn: %v", err)
	}
	return h
}

// settled waits for the settlement.
func settled(t *testing.T, h Handle) (Report, error) {
	t.Helper()
	<-h.Done()
	return h.Wait(context.Background())
}

func equal[V comparable](t *testing.T, what string, got, want V) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func code(t *testing.T, what string, err error, want fault.Code) {
	t.Helper()
	if !fault.Is(err, want) {
		t.Errorf("%s: got %v (%s), want %s", what, err, fault.CodeOf(err), want)
	}
}

// shut ends a runtime.
func shut(t *testing.T, rt Runtime) {
	t.Helper()
	if err := rt.Shutdown(context.Background()); err != nil {
		t.Errorf("shutdown: %v", err)
	}
}

var errScripted = errors.New("scripted failure")

// inBubble runs a test on a fake clock; it fails if a goroutine is left.
func inBubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}
