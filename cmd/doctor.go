package cmd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/profile"
	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// doctorResult is the JSON of doctor.
type doctorResult struct {
	OK     bool          `json:"ok"`
	Checks []checkResult `json:"checks"`
}

type checkResult struct {
	Name   string  `json:"name"`
	OK     bool    `json:"ok"`
	Detail string  `json:"detail"`
	Hint   *string `json:"hint"`
}

func newDoctor(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Check the profile, the backend and this machine",
		Long: "Check what commands depend on: the profile, the directories of this machine, and whether the backend answers. " +
			"The status is 0 if all is well, else that of the first failure. Nothing is changed but a test file in the state directory.",
		Args: none,
		RunE: a.run(func(ctx context.Context, _ []string) error { return runDoctor(ctx, a) }),
	}
}

// examination collects what was checked. The first failure decides the status.
type examination struct {
	app    *app
	result doctorResult
	first  error
}

// add notes one check. An error makes it fail; its text is the detail.
func (e *examination) add(name, detail string, err error) {
	c := checkResult{Name: name, OK: err == nil, Detail: e.app.mask(detail)}
	if err != nil {
		shown := newFailure(e.app.masked(err), 0)
		c.Detail, c.Hint = shown.Message, shown.Hint
		if e.first == nil {
			e.first = err
		}
	}
	e.result.Checks = append(e.result.Checks, c)
}

func runDoctor(ctx context.Context, a *app) error {
	e := &examination{app: a}
	e.checkState(ctx, a.stateDir())
	e.checkRuntime(profile.NewPlaces(a.Environ).Runtime)
	p, err := a.loadProfile()
	if err != nil {
		e.add("profile", "", err)
	} else {
		e.add("profile", fmt.Sprintf("%s (%s), digest %s", p.Name, p.Composition.Why, p.Composition.Digest()[:12]), nil)
		e.checkWorld(ctx, p)
	}
	e.add("terminal", a.terminalFacts(), nil)
	e.result.OK = e.first == nil
	if err := writeDoctor(a, e.result); err != nil {
		return err
	}
	if e.first != nil {
		return statusError{exitStatus(e.first)}
	}
	return nil
}

// checkState takes and gives back a lock in the state directory, as each
// guarded change does.
func (e *examination) checkState(ctx context.Context, dir string) {
	if dir == "" {
		e.add("state", "", fault.New(fault.FSIOError, "state", "", "there is no state directory").WithHint("set AFIELD_STATE_DIR"))
		return
	}
	release, err := remotefs.NewLocks(dir, "doctor").Lock(ctx, "doctor")
	if err != nil {
		e.add("state", "", fault.Wrap(err, fault.FSIOError, "state", dir, "%s cannot hold locks: %s", dir, err).
			WithHint("set AFIELD_STATE_DIR to a directory on a local disk"))
		return
	}
	release()
	e.add("state", dir+" is writable and has locks", nil)
}

// maxSocketPath bounds the path of a socket on every supported system.
const maxSocketPath = 103

// checkRuntime holds that sockets can be made in private.
func (e *examination) checkRuntime(dir string) {
	if dir == "" {
		return
	}
	if n := len(filepath.Join(dir, "k-1-00000000-0000000000000000.sock")); n > maxSocketPath {
		e.add("sockets", "", fault.New(fault.FSIOError, "sockets", dir, "the path %s is too long for sockets: %d bytes, at most %d", dir, n, maxSocketPath).
			WithHint("set XDG_RUNTIME_DIR to a shorter path"))
		return
	}
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		e.add("sockets", dir+" is made when it is needed", nil)
	case !info.IsDir() || info.Mode().Perm()&0o077 != 0:
		e.add("sockets", "", fault.New(fault.FSPermissionDenied, "sockets", dir, "%s is not a directory of mode 0700", dir).WithHint("chmod 700 %s", dir))
	default:
		e.add("sockets", dir, nil)
	}
}

// checkWorld opens the world and asks both halves for something small.
func (e *examination) checkWorld(ctx context.Context, p *profile.Profile) {
	name := p.FS.Provider.Name
	if p.Exec != p.FS {
		name += " and " + p.Exec.Provider.Name
	}
	e.app.direct = true // the connection itself is looked at
	err := e.app.withWorld(ctx, func(w *world) error {
		cwd, err := w.Cwd(ctx)
		if err != nil {
			return err
		}
		e.add("backend", name+" answers", nil)
		if x, ok := w.World.(backend.Examiner); ok {
			x.Examine(ctx, e.add)
		}
		e.checkFiles(ctx, w, cwd)
		e.checkProcesses(ctx, w)
		return nil
	})
	if err != nil {
		e.add("backend", "", err)
	}
}

func (e *examination) checkFiles(ctx context.Context, w *world, cwd string) {
	fs, err := w.files()
	if err != nil {
		e.add("files", "", err)
		return
	}
	_, info, err := fs.Stat(ctx, remotefs.AtPath(".", ""))
	switch {
	case err != nil:
	case info == nil:
		err = fault.New(fault.FSNotFound, "stat", cwd, "the working directory %q does not exist", cwd).WithHint("see --cwd, or config.cwd of the profile")
	case info.Type != remotefs.TypeDirectory:
		err = fault.New(fault.FSNotDirectory, "stat", cwd, "the working directory %q is not a directory", cwd)
	}
	e.add("files", "working directory "+cwd, err)
}

func (e *examination) checkProcesses(ctx context.Context, w *world) {
	r, err := w.processes()
	if err != nil {
		e.add("processes", "", err)
		return
	}
	shell, err := r.LookPath(ctx, "sh", remoteexec.Env{})
	e.add("processes", "sh is "+shell, err)
}

// terminalFacts says what afield found out about its streams.
func (a *app) terminalFacts() string {
	var facts []string
	for _, s := range []struct {
		name   string
		stream any
	}{{"stdin", a.In}, {"stdout", a.Out}, {"stderr", a.Err}} {
		kind := "no terminal"
		if a.Terminal(s.stream) {
			kind = "terminal"
		}
		facts = append(facts, s.name+" "+kind)
	}
	colour := "no colour"
	if a.wantsColor() {
		colour = "colour"
	}
	return strings.Join(append(facts, "TERM="+orElse(a.getenv("TERM"), "unset"), colour), ", ")
}

func writeDoctor(a *app, r doctorResult) error {
	if a.flags.json {
		return writeJSON(a.Out, r)
	}
	var b strings.Builder
	for _, c := range r.Checks {
		mark := a.paint(green, "ok  ")
		if !c.OK {
			mark = a.paint(red, "FAIL")
		}
		fmt.Fprintf(&b, "%s  %-9s  %s\n", mark, c.Name, visible(oneLine(c.Detail)))
		if c.Hint != nil {
			fmt.Fprintf(&b, "                 hint: %s\n", visible(oneLine(*c.Hint)))
		}
	}
	_, err := a.Out.Write([]byte(b.String()))
	return err
}
