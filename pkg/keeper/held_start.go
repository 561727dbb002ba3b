package keeper

import (
	"context"
	"encoding/json"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/provider"
	"github.com/afield-dev/afield/pkg/remoteexec"
)

// hold starts a program that outlives its caller. Once it runs, nothing of the
// caller's matters to it (case 136).
func (s *session) hold(x *provider.Stream) {
	var p provider.StartParams
	var h Hold
	if err := decode(x, &p); err != nil {
		x.Fail(err)
		return
	}
	if err := json.Unmarshal(p.Hold, &h); err != nil || h.RetainBytes < 1 {
		x.Fail(fault.New(fault.ExecInvalidSpec, "hold", "", "malformed request to hold a program"))
		return
	}
	info, err := s.start(x, p, h)
	if err != nil {
		x.Fail(err)
		return
	}
	x.Finish(info)
}

func (s *session) start(x *provider.Stream, p provider.StartParams, h Hold) (Info, error) {
	l, err := s.world(p.World)
	if err != nil {
		return Info{}, err
	}
	rt := l.world.Processes()
	if rt == nil {
		return Info{}, fault.New(fault.BackendUnsupported, "hold", "", "this world has no processes")
	}
	kind := KindJob
	if x.Method == "term.open" {
		kind = KindTerminal
		if h.Shell {
			kind = KindShell
		}
	}
	e, err := s.k.book.add(kind, h.Label)
	if err != nil {
		return Info{}, err
	}
	e.lease = l.use()
	if kind == KindJob {
		err = e.startJob(rt, p.Spec(), h)
	} else {
		err = e.openTerminal(x.Context(), rt, p.TerminalSpec(), h)
	}
	if err != nil {
		s.k.book.remove(e)
		return Info{}, err
	}
	s.k.book.publish(e)
	return e.info(), nil
}

// startJob starts a program whose outputs are collected.
func (h *held) startJob(rt remoteexec.Runtime, spec remoteexec.Spec, hold Hold) error {
	out := remoteexec.Output{Mode: remoteexec.OutputCollect, MaxBytes: hold.RetainBytes, SpillMax: hold.SpillBytes}
	spec.Stdout, spec.Stderr = out, out
	job, err := rt.Spawn(context.Background(), spec)
	if err != nil {
		return err
	}
	<-job.Started()
	h.mu.Lock()
	h.argv, h.job = spec.Argv, job
	h.mu.Unlock()
	h.out[remoteexec.Stdout], h.out[remoteexec.Stderr] = job.Collected(remoteexec.Stdout), job.Collected(remoteexec.Stderr)
	if job.PID() == 0 {
		if report, err := job.Wait(context.Background()); !report.Started && err != nil {
			return err
		}
	}
	go func() {
		report, err := job.Wait(context.Background())
		h.finish(report.Outcome, err)
	}()
	return nil
}

// openTerminal starts a program on a terminal whose output is kept.
func (h *held) openTerminal(ctx context.Context, rt remoteexec.Runtime, spec remoteexec.TerminalSpec, hold Hold) error {
	if hold.Record != "" {
		rec, err := record(hold.Record, spec)
		if err != nil {
			return err
		}
		h.rec = rec
	}
	if h.kind == KindShell {
		if err := h.prepareShell(ctx, &spec); err != nil {
			return err
		}
	}
	t, err := rt.OpenTerminal(ctx, spec)
	if err != nil {
		return err
	}
	h.argv, h.rows, h.cols = spec.Argv, spec.Rows, spec.Cols
	h.out[remoteexec.Stdout] = remoteexec.NewCollected(hold.RetainBytes)
	h.mu.Lock()
	h.term = t
	h.mu.Unlock()
	go h.pump(t)
	if h.kind == KindShell {
		return h.awaitShell(ctx)
	}
	return nil
}

// pump keeps what the terminal says, to its end.
func (h *held) pump(t remoteexec.Terminal) {
	buf := make([]byte, 32<<10)
	for {
		n, err := t.Read(buf)
		if n > 0 {
			h.took(buf[:n])
		}
		if err != nil {
			break
		}
	}
	outcome, err := t.Wait(context.Background())
	if h.givenUp(outcome, err) {
		return
	}
	h.out[remoteexec.Stdout].Seal()
	h.finish(outcome, err)
}

// took keeps a piece of output.
func (h *held) took(p []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.out[remoteexec.Stdout].Append(p)
	if h.rec != nil {
		h.rec.output(p)
	}
	if h.screen != nil {
		h.screen.write(p)
	}
	if h.shell != nil {
		h.shell.feed(p)
	}
}
