package box

import (
	"strings"
	"testing"
	"time"

	"github.com/afield-dev/afield/pkg/backend/box/boxtest"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
)

// Dimensions are positive integers, at creation and later, and what is not is
// refused before anything is sent (finding 22, TT-2).
func TestTerminalDimensions(t *testing.T) {
	s := newStand(t)
	term, err := s.terminal(t.Context(), "sleep", "60")
	if err != nil {
		t.Fatal(err)
	}
	s.server.ClearJournal()
	for _, size := range [][2]int{{0, 80}, {24, 0}, {-1, 80}, {24, 1 << 17}} {
		_, err := s.world.Processes().OpenTerminal(t.Context(), remoteexec.TerminalSpec{
			Argv: []string{"true"}, Cwd: defaultCwd, Rows: size[0], Cols: size[1], Grace: time.Second})
		s.fails(err, fault.ExecInvalidSpec)
		s.fails(term.Resize(t.Context(), size[0], size[1]), fault.ExecInvalidSpec)
	}
	if j := s.server.Journal(); len(j) != 0 {
		t.Errorf("%d requests for sizes that no terminal has", len(j))
	}
	ended(s, term)
}

// A terminal whose cleanup failed stays owned: the shutdown ends it (finding 25,
// TT-27, DI-4).
func TestTerminalStaysOwnedUntilItIsGone(t *testing.T) {
	s := newStand(t)
	term, err := s.terminal(t.Context(), "sleep", "60")
	if err != nil {
		t.Fatal(err)
	}
	s.server.Fault(boxtest.Fault{Match: "POST", Times: 1, Status: 400}) // the look for what is left
	s.within("terminate", func() {
		if err := term.Terminate(t.Context()); err == nil {
			t.Error("nothing proved the end, and it counts as ended")
		}
	})
	looks := len(s.server.Requests("POST"))
	s.within("shutdown", func() {
		if err := s.shutdown(); err != nil {
			t.Error(err)
		}
	})
	if n := len(s.server.Requests("POST")); n <= looks {
		t.Error("the shutdown did not look again")
	}
	s.empty()
}

// One bound holds for each delay, of a request and of the row (finding 30, SP-3).
func TestOneBoundForEachDelay(t *testing.T) {
	s := newStand(t)
	spec := s.spec("true")
	spec.Grace = remoteexec.MaxDelay + time.Millisecond
	_, err := s.world.Processes().Spawn(t.Context(), spec)
	s.fails(err, fault.ExecInvalidSpec)
	for _, f := range schema() {
		if strings.HasSuffix(f.Key, "Ms") && f.Max != float64(remoteexec.MaxDelay.Milliseconds()) {
			t.Errorf("%s may be up to %v", f.Key, f.Max)
		}
	}
	if j := s.server.Journal(); len(j) != 0 {
		t.Errorf("%d requests for a grace that no timer can keep", len(j))
	}
}

// Words that the box's shell knows by itself are found as the files they are, and
// what is only a builtin is not found (finding 49, LK-8).
func TestBuiltinsAreNoPrograms(t *testing.T) {
	s := newStand(t)
	for _, name := range []string{"echo", "test", "["} {
		path, err := s.world.Processes().LookPath(t.Context(), name, remoteexec.Env{})
		if err != nil || !strings.HasPrefix(path, "/") || !strings.HasSuffix(path, "/"+name) {
			t.Errorf("%s is %q, %v", name, path, err)
		}
	}
	for _, name := range []string{"export", "eval", "if"} {
		_, err := s.world.Processes().LookPath(t.Context(), name, remoteexec.Env{})
		s.fails(err, fault.ExecProgramNotFound)
	}
}

// A directory of the box is the box's: one that this machine does not have is
// entered, and no program of this machine stands in between (finding 65, RS-11).
func TestDirectoryIsTheBoxs(t *testing.T) {
	s := newStand(t)
	s.settle(s.spawn(t.Context(), s.sh("mkdir only-there")))
	spec := s.spec("pwd")
	spec.Cwd = defaultCwd + "/only-there"
	s.server.ClearJournal()
	out, _, err := s.settle(s.spawn(t.Context(), spec))
	if err != nil || out != spec.Cwd+"\n" {
		t.Errorf("%q, %v", out, err)
	}
	started := ""
	for _, r := range s.server.Journal() {
		if r.Kind == "client" && r.FrameType() == "start" {
			started = r.Body
		}
	}
	if !strings.Contains(started, `"argv":["pwd"]`) || !strings.Contains(started, `"cwd":"`+spec.Cwd+`"`) {
		t.Errorf("the session begins with %s", started)
	}
}
