package provider

import (
	"context"
	"encoding/json"
	"io"
	"sync"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// driverProcs serves a process driver (plugins.md 36).
type driverProcs struct {
	driver remoteexec.Driver
	mu     sync.Mutex
	procs  map[int]remoteexec.Proc // by group
}

func (d *driverProcs) serve(s *Stream) {
	switch s.Method {
	case "execd.start":
		d.start(s)
	case "execd.signal":
		d.signal(s)
	case "execd.probe":
		d.probe(s)
	case "execd.which":
		var p whichParams
		if err := decodeParams(s, &p); err != nil {
			s.Fail(err)
			return
		}
		path, err := d.driver.LookPath(s.Context(), string(p.Command), p.envParams.decode())
		reply(s, whichResult{Raw(path)}, err)
	default:
		s.Fail(unknownMethod(s.Method))
	}
}

// start runs a program and carries its streams to its end. The program goes on
// when the call has ended; its group is known until nothing of it is left.
func (d *driverProcs) start(s *Stream) {
	var p StartParams
	if err := decodeParams(s, &p); err != nil {
		s.Fail(err)
		return
	}
	spec := remoteexec.StartSpec{Argv: texts(p.Argv), Cwd: string(p.Cwd), Remove: texts(p.Remove), Set: p.decode().Set, Grace: grace(p.GraceMs)}
	if p.Stdin == "pipe" {
		spec.Stdin = remoteexec.StdinPipe
	}
	proc, err := d.driver.Start(s.Context(), spec)
	if err != nil {
		s.Fail(err)
		return
	}
	d.mu.Lock()
	d.procs[proc.PID()] = proc
	d.mu.Unlock()
	s.Emit("started", map[string]any{"pid": proc.PID(), "group": proc.PID()})
	go feed(s, proc.Stdin())
	var outputs sync.WaitGroup
	outputs.Go(func() { drain(s, PortFirst, proc.Stdout()) })
	outputs.Go(func() { drain(s, PortSecond, proc.Stderr()) })
	outcome, err := proc.Wait()
	if err == nil {
		facts := encodeExit(outcome)
		s.Emit("exit", map[string]any{"exitCode": facts.ExitCode, "signal": facts.Signal})
	}
	outputs.Wait()
	reply(s, encodeExit(outcome), err)
}

// of gives the program of a group.
func (d *driverProcs) of(s *Stream) (remoteexec.Proc, driverGroup, error) {
	var p driverGroup
	if err := decodeParams(s, &p); err != nil {
		return nil, p, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if proc := d.procs[p.Group]; proc != nil {
		return proc, p, nil
	}
	return nil, p, fault.New(fault.ExecUnknownSession, s.Method, "", "no group %d is known any more", p.Group)
}

func (d *driverProcs) signal(s *Stream) {
	proc, p, err := d.of(s)
	if err == nil {
		err = proc.Signal(s.Context(), p.Signal)
	}
	reply(s, struct{}{}, err)
}

// probe lists what lives of a group. A group of which nothing is left is
// forgotten: its id can be given to others from then on.
func (d *driverProcs) probe(s *Stream) {
	proc, p, err := d.of(s)
	if err != nil {
		s.Fail(err)
		return
	}
	members, err := proc.Members(s.Context())
	if err == nil && len(members) == 0 {
		d.mu.Lock()
		delete(d.procs, p.Group)
		d.mu.Unlock()
		proc.Release()
	}
	reply(s, driverMembers{members}, err)
}

// close ends everything at once.
func (d *driverProcs) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, proc := range d.procs {
		proc.Signal(context.Background(), "SIGKILL")
	}
}

// DriverProcesses is the caller's side of a process driver: remoteexec.New
// builds the contract on it, its kill ladder included. It has no terminals.
type DriverProcesses struct {
	conn  *Conn
	world string
	facts remoteexec.Facts
}

var _ remoteexec.Driver = (*DriverProcesses)(nil)

// Facts are those that the serving side stated.
func (d *DriverProcesses) Facts() remoteexec.Facts { return d.facts }

// LookPath is one call.
func (d *DriverProcesses) LookPath(ctx context.Context, command string, env remoteexec.Env) (string, error) {
	s, err := d.conn.Call("execd.which", whichParams{d.world, Raw(command), encodeEnv(env)})
	if err != nil {
		return "", err
	}
	var r whichResult
	err = s.Result(ctx, &r)
	return string(r.Path), err
}

// Start is one call; it returns when the serving side has confirmed the start.
func (d *DriverProcesses) Start(ctx context.Context, spec remoteexec.StartSpec) (remoteexec.Proc, error) {
	params := SpawnParams(d.world, remoteexec.Spec{
		Argv: spec.Argv, Cwd: spec.Cwd, Env: remoteexec.Env{Set: spec.Set, Remove: spec.Remove}, Stdin: spec.Stdin, Grace: spec.Grace,
	})
	r, err := (&Processes{conn: d.conn}).begin(ctx, "execd.start", params)
	if err != nil {
		return nil, err
	}
	return &driverProc{proc{running: r, piped: params.Stdin == "pipe"}, d.world}, nil
}

// StartTerminal is not part of what this side uses of the driver level.
func (d *DriverProcesses) StartTerminal(context.Context, remoteexec.TerminalSpec) (remoteexec.TerminalProc, error) {
	return nil, fault.New(fault.BackendUnsupported, "term", "", "a provider at driver level has no terminals")
}

// driverProc is a program whose tree we look after ourselves.
type driverProc struct {
	inner proc
	world string
}

func (p *driverProc) PID() int                          { return p.inner.PID() }
func (p *driverProc) Stdin() io.WriteCloser             { return p.inner.Stdin() }
func (p *driverProc) Stdout() io.ReadCloser             { return p.inner.Stdout() }
func (p *driverProc) Stderr() io.ReadCloser             { return p.inner.Stderr() }
func (p *driverProc) Wait() (remoteexec.Outcome, error) { return p.inner.Wait() }

// Signal reaches the group.
func (p *driverProc) Signal(ctx context.Context, name string) error {
	return p.group(ctx, "execd.signal", name, nil)
}

// Members lists what lives of the group.
func (p *driverProc) Members(ctx context.Context) ([]int, error) {
	var r driverMembers
	err := p.group(ctx, "execd.probe", "", &r)
	return r.Members, gone(err)
}

func (p *driverProc) group(ctx context.Context, method, signal string, result any) error {
	s, err := p.inner.conn.Call(method, driverGroup{p.world, p.inner.pid, signal})
	if err != nil {
		return err
	}
	return s.Result(ctx, result)
}

// Release has nothing to free: the serving side forgets a group that is gone.
func (p *driverProc) Release() {}

// Drivers are a world at driver level. Files may also be a remotefs.Stager;
// either half may be nil. Close may be nil.
type Drivers struct {
	Files     remotefs.Driver
	Processes remoteexec.Driver
	Close     func(ctx context.Context) error
}

// openDrivers serves a world at driver level until its call is cancelled.
func (x *session) openDrivers(s *Stream, p OpenParams, w *openWorld) {
	drivers, opened, err := x.server.OpenDrivers(s.Context(), p)
	if err == nil {
		if drivers.Files != nil {
			w.files = &driverFiles{driver: drivers.Files, stages: map[string]remotefs.Stage{}}
			opened.Facts.addFiles(drivers.Files.Facts())
		}
		if drivers.Processes != nil {
			w.procs = &driverProcs{driver: drivers.Processes, procs: map[int]remoteexec.Proc{}}
			opened.Facts.addProcesses(drivers.Processes.Facts())
			opened.Facts.Terminals = false
		}
	}
	w.err = err
	close(w.ready)
	if err != nil {
		s.Fail(err)
		return
	}
	body, _ := json.Marshal(opened)
	fields := map[string]any{}
	json.Unmarshal(body, &fields)
	s.Emit("opened", fields)
	<-s.Context().Done()
	if w.files != nil {
		w.files.close()
	}
	if w.procs != nil {
		w.procs.close()
	}
	if drivers.Close != nil {
		err = drivers.Close(context.Background())
	}
	reply(s, struct{}{}, err)
}
