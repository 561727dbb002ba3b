package exectest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/remoteexec/shell"
)

// shellCases are section P.
func shellCases() []Case {
	return []Case{
		{ID: "C291", Name: "a deadline is a result", Run: func(w *World) {
			r := w.Command("sleep 60", 100*time.Millisecond)
			w.Equal("facts", fmt.Sprint(r.TimedOut, r.Aborted, r.Timeout), "true false 100ms")
			w.Ends(Result{Report: r.Report}, "TERM")
		}},
		{ID: "C292", Name: "a cancellation is a result", Run: func(w *World) {
			ctx, cancel := context.WithTimeout(w.Context(), 50*time.Millisecond)
			defer cancel()
			r, err := w.Runner().Run(ctx, w.command("sleep 60"))
			w.Equal("error", err, nil)
			w.Equal("facts", fmt.Sprint(r.TimedOut, r.Aborted), "false true")
		}},
		{ID: "C293", Name: "a command that kills itself is neither", Run: func(w *World) {
			r := w.Command("kill -TERM $$", time.Minute)
			w.Equal("facts", fmt.Sprint(r.TimedOut, r.Aborted), "false false")
			w.Ends(Result{Report: r.Report}, "TERM")
		}},
		{ID: "C294", Name: "a deadline is told although the command exits with 0", Run: func(w *World) {
			r := w.Command("trap 'exit 0' TERM; while :; do sleep 0.05; done", 500*time.Millisecond)
			w.Ends(Result{Report: r.Report}, "0")
			w.Equal("timed out", r.TimedOut, true)
			w.Equal("rendered", strings.HasSuffix("\n"+shell.Render(r), "\n[timed out after 500ms]"), true)
		}},
		{ID: "C295", Name: "at the moment of the deadline there is one verdict", Excuse: localOnly, Run: deadlineAtExit},
		{ID: "C296", Name: "a requested deadline is capped, and zero is not off", Run: func(w *World) {
			r := w.Command("true", 99_999_999*time.Millisecond)
			w.Equal("effective", r.Timeout, 600_000*time.Millisecond)
			for _, bad := range []time.Duration{0, -1} {
				c := w.command("true")
				c.Timeout = &bad
				_, err := w.Runner().Run(w.Context(), c)
				w.Equal(bad.String(), fault.CodeOf(err), fault.ExecInvalidSpec)
			}
		}},
		{ID: "C298", Name: "a result is rendered", Run: func(w *World) {
			text := shell.Render(w.Command("printf out; echo err >&2; exit 3", time.Minute))
			w.Equal("text", text, "out\n[stderr]\nerr\n[exit code: 3]")
			w.Equal("read back", shell.Parse(text), remoteexec.Outcome{ExitCode: 3})
		}},
		{ID: "C299", Name: "no output and lost output are told", Run: func(w *World) {
			w.Equal("nothing", shell.Render(w.Command("true", time.Minute)), "(no output)")
			runner := w.Runner()
			runner.Settings.MaxOutputBytes, runner.Settings.MaxSpillBytes = 4, 6
			r, err := runner.Run(w.Context(), w.command("printf 0123456789"))
			w.Equal("error", err, nil)
			w.Equal("lost", shell.Render(r), "6789\n[output truncated; full output: (unavailable)]")
			runner.Settings.MaxSpillBytes = 100
			r, _ = runner.Run(w.Context(), w.command("printf 0123456789"))
			w.Equal("kept", shell.Render(r), "6789\n[output truncated; full output: "+r.Stdout.SpillPath+"]")
			w.Equal("file", w.spilled(r.Report.Stdout), "0123456789")
		}},
		{ID: "C301", Name: "a job starts at once and completes", Run: func(w *World) {
			jobs, id := w.Job("sleep 0.2; echo done")
			w.Equal("end", w.jobEnd(jobs, id), "completed {0 }")
			w.Equal("output", must(jobs.Output("me", id)), "done\n")
		}},
		{ID: "C302", Name: "a job is read by offsets and merged", Run: jobReads},
		{ID: "C303", Name: "a job that cannot start is killed and tells why once", Run: func(w *World) {
			c := w.command("true")
			c.Cwd = w.Dir + "/missing"
			jobs := shell.NewJobs()
			id, err := jobs.StartCommand(w.Runner(), "me", "bash", c)
			w.Equal("start", err, nil)
			job, err := jobs.Wait(w.Context(), "me", id, nil)
			w.Equal("wait", err, nil)
			w.Equal("state", job.State, shell.JobKilled)
			w.Equal("reason", fault.CodeOf(job.Reason), fault.ExecCwdMissing)
			w.Equal("told", strings.HasPrefix(must(jobs.Output("me", id)), "[stderr]\n"), true)
			w.Equal("told again", must(jobs.Output("me", id)), "")
		}},
		{ID: "C304", Name: "a kill is true once", Run: func(w *World) {
			jobs, id := w.Job("sleep 60")
			w.Equal("first", must(jobs.Kill("me", id)), true)
			w.jobEnd(jobs, id)
			w.Equal("second", must(jobs.Kill("me", id)), false)
			w.Equal("state", must(jobs.Status("me", id)).State, shell.JobKilled)
		}},
		{ID: "C305", Name: "a job's code is its own", Run: func(w *World) {
			jobs, id := w.Job("exit 5")
			w.Equal("end", w.jobEnd(jobs, id), "completed {5 }")
		}},
		{ID: "C306", Name: "a wait that expires leaves the job alive", Run: func(w *World) {
			jobs, id := w.Job("sleep 60")
			patience := 100 * time.Millisecond
			job, err := jobs.Wait(w.Context(), "me", id, &patience)
			w.Equal("wait", err, nil)
			w.Equal("state", job.State, shell.JobRunning)
			_, err = jobs.Status("you", id)
			w.Equal("another owner", fault.CodeOf(err), fault.ExecForeignSession)
			_, err = jobs.Status("me", "bash-99")
			w.Equal("unknown", fault.CodeOf(err), fault.ExecUnknownSession)
			w.Equal("drop", fault.CodeOf(jobs.Drop("me", id)), fault.ExecSendActive)
			jobs.Kill("me", id)
			w.jobEnd(jobs, id)
			w.Equal("drop", jobs.Drop("me", id), nil)
		}},
		{ID: "C307", Name: "the layers of the environment win in order", Run: func(w *World) {
			runner := w.Runner()
			runner.Managed["DSH_SESSION_ID"] = "managed"
			c := w.command(`echo "$PAGER $TERM $NO_COLOR $DSH_SESSION_ID ${GIT_PAGER-gone}"`)
			c.Env.Set = map[string]string{"PAGER": "less", "DSH_SESSION_ID": "mine"}
			c.Env.Remove = []string{"GIT_PAGER"}
			r, err := runner.Run(w.Context(), c)
			w.Equal("error", err, nil)
			w.Equal("out", r.Stdout.Text, "less dumb 1 managed gone\n")
		}},
	}
}

// must gives a value whose error would be a defect of the case.
func must[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}

// Runner runs command strings of the case.
func (w *World) Runner() *shell.Runner {
	s := shell.Defaults()
	s.Grace = 200 * time.Millisecond
	return &shell.Runner{Runtime: w.Runtime, Settings: s, Managed: map[string]string{marker: w.nonce}}
}

func (w *World) command(script string) shell.Command {
	return shell.Command{Script: script, Cwd: w.Dir}
}

// Command runs a command string with a deadline.
func (w *World) Command(script string, timeout time.Duration) shell.Result {
	w.Helper()
	c := w.command(script)
	c.Timeout = &timeout
	r, err := w.Runner().Run(w.Context(), c)
	if err != nil {
		w.Fatalf("%s: %v", script, err)
	}
	return r
}

// Job starts a command string in the background.
func (w *World) Job(script string) (*shell.Jobs, string) {
	w.Helper()
	jobs := shell.NewJobs()
	id, err := jobs.StartCommand(w.Runner(), "me", "bash", w.command(script))
	if err != nil {
		w.Fatalf("job %s: %v", script, err)
	}
	w.Equal("id", id, "bash-1")
	return jobs, id
}

// jobEnd waits for the end of a job.
func (w *World) jobEnd(jobs *shell.Jobs, id string) string {
	w.Helper()
	patience := watchdog
	job, err := jobs.Wait(w.Context(), "me", id, &patience)
	w.Equal("wait", err, nil)
	return fmt.Sprintf("%s %v", job.State, job.Outcome)
}

func jobReads(w *World) {
	runner := w.Runner()
	runner.Settings.MaxOutputBytes = 8
	jobs := shell.NewJobs()
	id := must(jobs.StartCommand(runner, "me", "bash", w.command("printf 0123456789; echo err >&2")))
	w.jobEnd(jobs, id)
	first := must(jobs.Read("me", id, remoteexec.Stdout, 0))
	w.Equal("again", must(jobs.Read("me", id, remoteexec.Stdout, 0)), first)
	w.Equal("lossy", first.Lossy, true)
	w.Equal("rest", must(jobs.Read("me", id, remoteexec.Stdout, 8)).Text, "89")
	w.Equal("merged", must(jobs.Output("me", id)),
		"23456789\n[stderr]\nerr\n[some output was dropped from memory; full output: "+first.SpillPath+"]\n")
	w.Equal("merged again", must(jobs.Output("me", id)), "")
	content, err := os.ReadFile(first.SpillPath)
	w.Equal("file", fmt.Sprint(string(content), err), "0123456789<nil>")
	os.Remove(first.SpillPath)
}

// deadlineAtExit runs many commands that end about when their deadline fires.
func deadlineAtExit(w *World) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, 25)
	for range 300 {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			r := w.Command("exec sleep 0.2", 200*time.Millisecond)
			if !r.Started && r.TimedOut {
				return // a busy machine let the deadline pass before the start
			}
			natural := r.Outcome == remoteexec.Outcome{}
			stopped := r.Outcome == remoteexec.Outcome{Signal: "SIGTERM"}
			if r.Aborted || !natural && !stopped || stopped && !r.TimedOut {
				w.Errorf("ended with %+v, timed out %v, aborted %v", r.Outcome, r.TimedOut, r.Aborted)
			}
		})
	}
	wg.Wait()
}
