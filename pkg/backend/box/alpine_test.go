package box

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/afield-dev/afield/pkg/backend/box/boxtest"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// A box that has nothing but busybox can do all of it too (upstash-box.md 8).
func TestAlpineBox(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("busybox"); err != nil {
		if os.Getenv("AFIELD_TEST_REQUIRE") != "" {
			t.Fatal(err)
		}
		t.Skip("SKIPPED: ", err)
	}
	s := newServer(t, boxtest.Options{})
	w := open(t, s, map[string]any{"create": true, "runtime": "python-alpine"})
	alpineFiles(t, w.Files())
	alpineProcesses(t, &stand{T: t, server: s, world: w})
}

func alpineFiles(t *testing.T, f remotefs.FS) {
	write := func(path, content string, intent remotefs.Intent, version string) (remotefs.WriteOutcome, error) {
		return f.WriteText(t.Context(), remotefs.AtPath(path, ""), remotefs.WriteRequest{
			Content: strings.NewReader(content), Size: int64(len(content)), Intent: intent, Version: version, Mode: -1, BasisMax: 10 << 20})
	}
	odd := "it's \"odd\"\n é"
	first, err := write("d/"+odd, "one\n", remotefs.IntentCreate, "")
	if err != nil || first.Operation != remotefs.OpCreate || first.Target.Key != defaultCwd+"/d/"+odd {
		t.Fatalf("create: %+v %v", first, err)
	}
	if _, err := write("d/"+odd, "two\n", remotefs.IntentCreate, ""); !fault.Is(err, fault.FSNotObserved) {
		t.Errorf("create again: %v", err)
	}
	second, err := write("d/"+odd, strings.Repeat("two\n", 500_000), remotefs.IntentReplace, first.Version)
	if err != nil || second.Before == nil || *second.Before != "one\n" {
		t.Errorf("replace: %v %v", second.Operation, err)
	}
	if _, err := write("d/"+odd, "three", remotefs.IntentReplace, first.Version); !fault.Is(err, fault.FSStaleVersion) {
		t.Errorf("replace a stale version: %v", err)
	}
	text, err := f.ReadText(t.Context(), remotefs.AtPath("d/"+odd, ""))
	if err != nil || text.Bytes != 2_000_000 || text.Version != second.Version {
		t.Errorf("read: %d bytes, %v", text.Bytes, err)
	}
	edited, err := f.EditText(t.Context(), remotefs.AtPath("d/"+odd, ""), remotefs.EditRequest{
		Edits: []remotefs.Edit{{Old: strings.Repeat("two\n", 500_000), New: "last\n"}}, Version: second.Version})
	if err != nil || edited.Bytes != 5 {
		t.Errorf("edit: %+v %v", edited, err)
	}
	_, entries, err := f.ListDir(t.Context(), remotefs.AtPath("d", ""))
	if err != nil || len(entries) != 1 || entries[0].Name != odd || entries[0].Version != edited.Version || entries[0].Size != 5 {
		t.Errorf("list: %+v %v", entries, err)
	}
	_, info, err := f.Stat(t.Context(), remotefs.AtPath("d/"+odd, ""))
	if err != nil || info == nil || info.Mode != 0o644 || info.Version != edited.Version {
		t.Errorf("stat: %+v %v", info, err)
	}
	if _, err := f.ReadText(t.Context(), remotefs.AtPath("d", "")); !fault.Is(err, fault.FSNotRegularFile) {
		t.Errorf("read a directory: %v", err)
	}
	if _, info, err := f.Lstat(t.Context(), "none/x", ""); err != nil || info != nil {
		t.Errorf("lstat: %+v %v", info, err)
	}
}

func alpineProcesses(t *testing.T, s *stand) {
	spec := s.sh(`echo "${USER-gone}"; cat; exit 3`)
	spec.Env = remoteexec.Env{Remove: []string{"USER", "--split-string"}}
	spec.Stdin, spec.StdinData = remoteexec.StdinData, []byte("input\n")
	out, r, err := s.settle(s.spawn(t.Context(), spec))
	if out != "gone\ninput\n" || r.Outcome.ExitCode != 3 || err != nil {
		t.Errorf("%q %+v %v", out, r, err)
	}
	found, err := s.world.Processes().LookPath(t.Context(), "ls", remoteexec.Env{})
	if err != nil || found != "/bin/ls" {
		t.Errorf("which: %q %v", found, err)
	}
	term, err := s.world.Processes().OpenTerminal(t.Context(), remoteexec.TerminalSpec{
		Argv: []string{"sh", "-c", "trap '' INT; stty size; sleep 60"}, Cwd: defaultCwd, Rows: 37, Cols: 113, Grace: spec.Grace})
	if err != nil {
		t.Fatal(err)
	}
	line := make([]byte, len("37 113"))
	if _, err := io.ReadFull(term, line); err != nil || string(line) != "37 113" {
		t.Errorf("%q %v", line, err)
	}
	if group, err := term.Signal(t.Context(), "SIGINT"); err != nil || group <= 1 {
		t.Errorf("signal: %d %v", group, err)
	}
	if err := term.Terminate(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := term.Write([]byte("x")); err == nil {
		t.Error("a closed terminal takes input")
	}
}
