package remoteexec

import (
	"context"
	"errors"
	"maps"
	"os"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
)

// defaultPoll is the cadence of probes where a driver names none (TE-10).
const defaultPoll = 20 * time.Millisecond

// Options are what a Runtime needs beside its driver.
type Options struct {
	// SpillParent is the directory on the host in which the private directory
	// for spill files is made when the first one is needed; "" = the system's
	// directory for temporary files.
	SpillParent string
}

// New builds the contract on a driver. Whoever calls it ends it with Shutdown.
func New(d Driver, o Options) Runtime {
	if o.SpillParent == "" {
		o.SpillParent = os.TempDir()
	}
	life, end := context.WithCancelCause(context.Background())
	return &processes{
		driver: d, facts: d.Facts(), spills: &spillDir{parent: o.SpillParent},
		owned: map[owned]struct{}{}, life: life, endLife: end,
	}
}

// owned is a tree or terminal that Shutdown must end and HardStop can reach.
type owned interface {
	// end terminates and waits until nothing is left (DI-4).
	end(ctx context.Context) error
	hardKill()
}

// processes is the Runtime over a driver.
type processes struct {
	driver Driver
	facts  Facts
	spills *spillDir

	mu     sync.Mutex
	closed bool
	owned  map[owned]struct{}

	// life ends when Shutdown begins; it cancels lookups and allocations.
	life    context.Context
	endLife context.CancelCauseFunc
}

// Facts gives the driver's.
func (p *processes) Facts() Facts { return p.facts }

// poll is the cadence of probes.
func (p *processes) poll() time.Duration {
	if p.facts.Poll > 0 {
		return p.facts.Poll
	}
	return defaultPoll
}

// errDisposing is why life ended.
func errDisposing(op string) *fault.Error {
	return fault.New(fault.ExecDisposing, op, "", "%s: the world is shutting down", op)
}

// open refuses work after Shutdown began.
func (p *processes) open(op string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return errDisposing(op)
	}
	return nil
}

// track takes something into ownership, unless Shutdown has begun (DI-2).
func (p *processes) track(op string, o owned) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return errDisposing(op)
	}
	p.owned[o] = struct{}{}
	return nil
}

// untrack gives up what is proven gone.
func (p *processes) untrack(gone ...owned) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range gone {
		delete(p.owned, o)
	}
}

// replace owns less of the same thing, if it is still owned.
func (p *processes) replace(old, rest owned) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, still := p.owned[old]; still {
		delete(p.owned, old)
		p.owned[rest] = struct{}{}
	}
}

func (p *processes) ownedNow() []owned {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.owned))
}

// within gives a context that also ends with the runtime. The cause of the
// first to end stands (RS-13).
func (p *processes) within(ctx context.Context, op string) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	detach := context.AfterFunc(p.life, func() { cancel(errDisposing(op)) })
	return ctx, func() { detach(); cancel(nil) }
}

// cancelled gives the failure of an operation whose context ended: with
// EXEC_DISPOSING where Shutdown ended it.
func cancelled(ctx context.Context, op string) error {
	var disposing *fault.Error
	if cause := context.Cause(ctx); errors.As(cause, &disposing) && disposing.Code == fault.ExecDisposing {
		return disposing
	}
	return fault.Aborted(ctx, fault.ExecCancelled, op, "")
}

// LookPath implements Runtime.
func (p *processes) LookPath(ctx context.Context, command string, env Env) (string, error) {
	if err := p.open("which"); err != nil {
		return "", err
	}
	if err := checkCommand(command); err != nil {
		return "", err
	}
	if err := checkEnv("which", env); err != nil {
		return "", err
	}
	ctx, release := p.within(ctx, "which")
	defer release()
	found, err := p.raceLookup(ctx, command, env)
	if err != nil {
		return "", err
	}
	if !path.IsAbs(found) || hasNUL(found) {
		return "", fault.New(fault.ExecTransportCorrupt, "which", command, "which %s: the answer %q is not one absolute path", command, found)
	}
	return found, nil
}

// raceLookup asks the driver and waits no longer than ctx; a late answer is
// dropped (LK-10).
func (p *processes) raceLookup(ctx context.Context, command string, env Env) (string, error) {
	if ctx.Err() != nil {
		return "", cancelled(ctx, "which")
	}
	if !p.facts.Remote {
		return p.driver.LookPath(ctx, command, env)
	}
	type answer struct {
		path string
		err  error
	}
	got := make(chan answer, 1)
	go func() {
		path, err := p.driver.LookPath(ctx, command, env)
		got <- answer{path, err}
	}()
	select {
	case a := <-got:
		return a.path, a.err
	case <-ctx.Done():
		return "", cancelled(ctx, "which")
	}
}

// Shutdown implements Runtime (DI-1 to DI-7).
func (p *processes) Shutdown(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.endLife(errDisposing("start"))
	err := endAll(ctx, p.ownedNow())
	p.spills.removeEmpty()
	return err
}

// endAll ends all at once and waits for every one before it reports (DI-3).
func endAll(ctx context.Context, all []owned) error {
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, o := range all {
		wg.Go(func() { errs[i] = o.end(ctx) })
	}
	wg.Wait()
	return aggregate(errs)
}

// aggregate gives one failure as it is, and several as one.
func aggregate(errs []error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	all := errors.Join(errs...)
	return fault.Wrap(all, fault.ExecCleanupFailed, "shutdown", "", "shutdown: %d clean-ups failed: %v", len(errs), errs[0])
}

// HardStop implements Runtime (HX-2).
func (p *processes) HardStop() {
	for _, o := range p.ownedNow() {
		contained(o.hardKill)
	}
}

// contained runs f and keeps its panic from reaching the caller.
func contained(f func()) {
	defer func() { _ = recover() }()
	f()
}
