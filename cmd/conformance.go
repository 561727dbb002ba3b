package cmd

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/profile"
	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/remoteexec/exectest"
	"github.com/afield-dev/afield/pkg/remotefs"
	"github.com/afield-dev/afield/pkg/remotefs/fstest"
)

type conformanceOptions struct {
	only   string
	plugin string
}

// conformanceResult is the JSON of conformance (design.md 2).
type conformanceResult struct {
	Backend       string            `json:"backend"`
	Passed        int               `json:"passed"`
	Failed        int               `json:"failed"`
	NotApplicable int               `json:"notApplicable"`
	Cases         []conformanceCase `json:"cases"`
}

type conformanceCase struct {
	ID         string  `json:"id"`
	Name       string  `json:"name"`
	Result     string  `json:"result"`
	Reason     *string `json:"reason"`
	DurationMs int64   `json:"durationMs"`
}

func newConformance(a *app) *cobra.Command {
	var o conformanceOptions
	c := &cobra.Command{
		Use:   "conformance",
		Short: "Run the contract's cases against the profile's world",
		Long: "Run the numbered cases of the file and the process contract against the world of the profile, in a directory that is " +
			"made for them and removed afterwards. With --plugin the world is that of the first provider of an installed plugin, or of " +
			"one in a directory or an archive, and the cases of the protocol come first; its config is set with --set config.KEY=VALUE. The status is 0 only if every case that applies has passed, else 1.",
		Args: none,
		RunE: a.run(func(ctx context.Context, _ []string) error { return runConformance(ctx, a, o) }),
	}
	c.Flags().StringVar(&o.only, "only", "", "run one suite: protocol, files or processes (default: all that apply)")
	c.Flags().StringVar(&o.plugin, "plugin", "", "the `ID` of an installed plugin, or the PATH of one (default: the profile's world)")
	return c
}

func runConformance(ctx context.Context, a *app, o conformanceOptions) error {
	switch {
	case o.only == "protocol" && o.plugin == "":
		return usage("--only protocol needs --plugin")
	case o.only != "" && o.only != "protocol" && o.only != "files" && o.only != "processes":
		return usage("--only must be protocol, files or processes")
	}
	r := &conformanceRun{app: a, result: conformanceResult{Cases: []conformanceCase{}}}
	if o.plugin != "" {
		tried, err := a.tryPlugin(ctx, o.plugin)
		if err != nil {
			return err
		}
		defer tried.Close()
		r.result.Backend = tried.Providers[0].Name
		if err := r.protocol(ctx, tried, o.only); err != nil {
			return err
		}
	}
	if o.only == "protocol" {
		return r.finish()
	}
	a.direct = true // each case opens the world anew
	return a.withWorld(ctx, func(w *world) error {
		procs, err := w.processes()
		if err != nil {
			return err
		}
		s := scratch{procs: procs}
		if err := s.make(ctx); err != nil {
			return err
		}
		defer s.remove()
		r.result.Backend = w.provider
		if o.only != "processes" {
			err = r.files(ctx, w, s)
		}
		if err == nil && o.only != "files" {
			err = r.processes(ctx, a, s)
		}
		if err != nil {
			return err
		}
		return r.finish()
	})
}

// conformanceRun collects what was found.
type conformanceRun struct {
	app    *app
	result conformanceResult
}

func (r *conformanceRun) files(ctx context.Context, w *world, s scratch) error {
	files, err := w.files()
	if err != nil {
		return err
	}
	state, err := os.MkdirTemp("", "afield-conformance")
	if err != nil {
		return fault.Wrap(err, fault.FSIOError, "conformance", "", "cannot make a directory for ledgers: %s", err)
	}
	defer os.RemoveAll(state)
	dir := path.Join(s.dir, "files")
	var again []*world
	defer func() {
		for _, w := range again {
			w.Close(context.WithoutCancel(ctx))
		}
	}()
	another := func() (remotefs.FS, error) {
		w, err := r.app.openWorld(ctx)
		if err != nil {
			return nil, err
		}
		again = append(again, w)
		return w.files()
	}
	shell := fstest.Shell{Exec: s.run}
	if err := shell.Mkdir(dir); err != nil {
		return err
	}
	return fstest.Check(ctx, fstest.Backend{
		Facts: files.Facts(), Files: files, World: shell, Dir: dir, StateDir: state, Root: s.root, Rounds: 3, Another: another,
	}, func(c fstest.Result) {
		r.add(fmt.Sprintf("F%d", c.Case.Num), c.Case.Name, c.Outcome, c.Reason, c.Duration)
	})
}

// processes opens the world once more for each case, which ends its own, in the
// directory of the case.
func (r *conformanceRun) processes(ctx context.Context, a *app, s scratch) error {
	open := func(t exectest.T) (remoteexec.Runtime, string) {
		dir := path.Join(s.dir, "case-"+rand.Text())
		if _, err := s.run(nil, "mkdir", "--", dir); err != nil {
			t.Fatalf("mkdir: %v", err)
		}
		there := *a
		there.composed = nil
		there.flags.overrides = append(slices.Clone(a.flags.overrides), profile.Override{Text: dir, Cwd: true})
		w, err := there.openWorld(ctx)
		if err != nil {
			t.Fatalf("open: %v", err)
		}
		t.Cleanup(func() { w.Close(context.WithoutCancel(ctx)) })
		rt, err := w.processes()
		if err != nil {
			t.Fatalf("open: %v", err)
		}
		return rt, dir
	}
	return exectest.Check(ctx, exectest.Backend{Open: open}, func(c exectest.Verdict) {
		r.add(c.Case.ID, c.Case.Name, c.Outcome, c.Reason, c.Duration)
	})
}

func (r *conformanceRun) add(id, name, outcome, reason string, d time.Duration) {
	switch outcome {
	case "passed":
		r.result.Passed++
	case "failed":
		r.result.Failed++
	default:
		r.result.NotApplicable++
	}
	c := conformanceCase{id, name, outcome, orNull(reason), d.Milliseconds()}
	r.result.Cases = append(r.result.Cases, c)
	if r.app.flags.json {
		return
	}
	line := fmt.Sprintf("%-14s %-5s %s", outcome, id, name)
	if reason != "" {
		line += ": " + oneLine(reason)
	}
	fmt.Fprintln(r.app.Out, line)
}

func (r *conformanceRun) finish() error {
	if r.app.flags.json {
		if err := writeJSON(r.app.Out, r.result); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(r.app.Out, "%d passed, %d failed, %d not applicable\n", r.result.Passed, r.result.Failed, r.result.NotApplicable)
	}
	if r.result.Failed > 0 {
		return statusError{exitDefect}
	}
	return nil
}

// scratch is the directory of a run, in the world.
type scratch struct {
	procs remoteexec.Runtime
	dir   string
	root  bool
}

// make asks the world for a directory of its own and who we are there.
func (s *scratch) make(ctx context.Context) error {
	s.dir = "/"
	out, err := s.run(nil, "sh", "-c", `umask 022; d=$(mktemp -d "${TMPDIR:-/tmp}/afield-conformance.XXXXXX") && cd -P "$d" && pwd && id -u`)
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(lines) != 2 || !path.IsAbs(lines[0]) {
		return fault.New(fault.BackendProtocol, "conformance", "", "the world gave %q instead of a directory", out)
	}
	s.dir, s.root = lines[0], lines[1] == "0"
	return ctx.Err()
}

func (s *scratch) remove() {
	s.run(nil, "chmod", "-R", "u+rwx", s.dir)
	s.run(nil, "rm", "-rf", "--", s.dir)
}

// run runs a program in the world to its end.
func (s *scratch) run(stdin []byte, argv ...string) ([]byte, error) {
	spec := remoteexec.Spec{
		Argv: argv, Cwd: s.dir, Grace: 3 * time.Second, Stdin: remoteexec.StdinData, StdinData: stdin,
		Stdout: remoteexec.Output{MaxBytes: 64 << 20}, Stderr: remoteexec.Output{MaxBytes: 64 << 10},
	}
	h, err := s.procs.Spawn(context.Background(), spec)
	if err != nil {
		return nil, err
	}
	report, err := h.Wait(context.Background())
	if err != nil {
		return nil, err
	}
	out, _ := h.Collected(remoteexec.Stdout).ReadFrom(0)
	if o := report.Outcome; o.ExitCode != 0 || o.Signal != "" {
		said, _ := h.Collected(remoteexec.Stderr).ReadFrom(0)
		return out.Bytes, fmt.Errorf("%s: status %d%s: %s", argv[0], o.ExitCode, o.Signal, said.Bytes)
	}
	return out.Bytes, nil
}
