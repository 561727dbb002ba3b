package shell

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
)

// Bounds of one wait for a job (SH-13).
const (
	DefaultWait = 30_000 * time.Millisecond
	MaxWait     = 600_000 * time.Millisecond
)

// State is where a job stands.
type State string

// The states of a job; the last three are final, and the first of them to be
// reached stays.
const (
	JobRunning   State = "running"
	JobStopping  State = "stopping"
	JobCompleted State = "completed" // the program exited by itself
	JobKilled    State = "killed"    // a death by signal, a kill, or a failed start
	JobFailed    State = "failed"    // its fate is unknown
)

// Jobs are programs in the background of one process. They belong to the
// Runtime: its Shutdown ends them (SH-14). Methods may run at the same time.
type Jobs struct {
	mu   sync.Mutex
	last map[string]int // per kind
	jobs map[string]*job
}

// NewJobs makes an empty book of jobs.
func NewJobs() *Jobs { return &Jobs{last: map[string]int{}, jobs: map[string]*job{}} }

// Job is what is known of a job.
type Job struct {
	ID      string
	State   State
	Outcome remoteexec.Outcome // of a completed or killed job that ran
	Reason  error              // why it could not be started, or why it failed
}

// job is one entry of the book.
type job struct {
	id, owner string
	handle    remoteexec.Handle

	mu       sync.Mutex
	stopping bool
	cursor   [3]int64 // of the merged view
	told     bool     // the reason of a failed start has been delivered
}

// Start starts a job of an owner and gives its id, <kind>-<n>, at once. No
// deadline applies (SH-10). Both streams of spec must be collected.
func (j *Jobs) Start(rt remoteexec.Runtime, owner, kind string, spec remoteexec.Spec) (string, error) {
	for _, o := range []remoteexec.Output{spec.Stdout, spec.Stderr} {
		if o.Mode != remoteexec.OutputCollect {
			return "", fault.New(fault.ExecInvalidSpec, "job", "", "job: the output of a job is collected")
		}
	}
	h, err := rt.Spawn(context.Background(), spec)
	if err != nil {
		return "", err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last[kind]++
	id := fmt.Sprintf("%s-%d", kind, j.last[kind])
	j.jobs[id] = &job{id: id, owner: owner, handle: h}
	return id, nil
}

// StartCommand starts a command string as a job.
func (j *Jobs) StartCommand(r *Runner, owner, kind string, c Command) (string, error) {
	return j.Start(r.Runtime, owner, kind, r.spec(c))
}

// find gives an owner's job.
func (j *Jobs) find(owner, id string) (*job, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	found, ok := j.jobs[id]
	switch {
	case !ok:
		return nil, fault.New(fault.ExecUnknownSession, "job", id, "job %s: there is no such job", id)
	case found.owner != owner:
		return nil, fault.New(fault.ExecForeignSession, "job", id, "job %s: it belongs to somebody else", id)
	}
	return found, nil
}

// Status says where a job stands.
func (j *Jobs) Status(owner, id string) (Job, error) {
	found, err := j.find(owner, id)
	if err != nil {
		return Job{}, err
	}
	return found.status(), nil
}

func (b *job) status() Job {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := Job{ID: b.id, State: JobRunning}
	select {
	case <-b.handle.Done():
	default:
		if b.stopping {
			s.State = JobStopping
		}
		return s
	}
	report, err := b.handle.Wait(context.Background())
	s.Outcome, s.Reason = report.Outcome, err
	switch {
	case err != nil && report.Started:
		s.State = JobFailed
	case err != nil || b.stopping || report.Outcome.Signal != "":
		s.State = JobKilled
	default:
		s.State = JobCompleted
	}
	return s
}

// Kill begins the end of a job. It is true once, and false for one that has
// ended or is being killed (SH-11).
func (j *Jobs) Kill(owner, id string) (bool, error) {
	found, err := j.find(owner, id)
	if err != nil {
		return false, err
	}
	return found.kill(), nil
}

func (b *job) kill() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-b.handle.Done():
		return false
	default:
	}
	first := !b.stopping
	b.stopping = true
	b.handle.Terminate()
	return first
}

// Wait waits for the end of a job, at most as long as asked; nil asks for
// DefaultWait, and more than MaxWait is cut. Expiry leaves the job alive.
func (j *Jobs) Wait(ctx context.Context, owner, id string, patience *time.Duration) (Job, error) {
	found, err := j.find(owner, id)
	if err != nil {
		return Job{}, err
	}
	limit := DefaultWait
	if patience != nil {
		limit = *patience
	}
	if limit <= 0 {
		return Job{}, fault.New(fault.ExecInvalidSpec, "job", id, "job %s: a wait of %v is not positive", id, limit)
	}
	timer := time.NewTimer(min(limit, MaxWait))
	defer timer.Stop()
	select {
	case <-found.handle.Done():
	case <-timer.C:
	case <-ctx.Done():
		return Job{}, fault.Aborted(ctx, fault.ExecCancelled, "job", id)
	}
	return found.status(), nil
}

// Read reads a stream of a job from an offset; it may be repeated (SH-12).
func (j *Jobs) Read(owner, id string, s remoteexec.Stream, offset int64) (remoteexec.TextChunk, error) {
	found, err := j.find(owner, id)
	if err != nil {
		return remoteexec.TextChunk{}, err
	}
	return found.handle.Collected(s).ReadText(offset)
}

// Output gives what came since its last call: stdout, then "[stderr]" and
// stderr. The reason of a failed start comes once, as stderr.
func (j *Jobs) Output(owner, id string) (string, error) {
	found, err := j.find(owner, id)
	if err != nil {
		return "", err
	}
	status := found.status()
	found.mu.Lock()
	defer found.mu.Unlock()
	var b lines
	var lost []string
	b.write(found.delta(remoteexec.Stdout, &lost))
	errText := found.delta(remoteexec.Stderr, &lost)
	if status.Reason != nil && !found.told {
		found.told = true
		errText += status.Reason.Error() + "\n"
	}
	if errText != "" {
		b.line("[stderr]")
		b.write(errText)
	}
	if len(lost) > 0 {
		b.line("[some output was dropped from memory; full output: " + strings.Join(lost, ", ") + "]")
	}
	return b.text.String(), nil
}

// delta gives what is new in a stream; lost gets the path of one that lost
// bytes.
func (b *job) delta(s remoteexec.Stream, lost *[]string) string {
	chunk, _ := b.handle.Collected(s).ReadText(b.cursor[s]) // cursors come from reads
	b.cursor[s] = chunk.NextOffset
	if chunk.Lossy {
		path := chunk.SpillPath
		if path == "" {
			path = unavailable
		}
		*lost = append(*lost, path)
	}
	return chunk.Text
}

// Drop forgets a job that has ended; a live one is refused.
func (j *Jobs) Drop(owner, id string) error {
	found, err := j.find(owner, id)
	if err != nil {
		return err
	}
	if s := found.status().State; s == JobRunning || s == JobStopping {
		return fault.New(fault.ExecSendActive, "job", id, "job %s: it is %s", id, s).WithHint("kill it first")
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.jobs, id)
	return nil
}
