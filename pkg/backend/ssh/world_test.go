package ssh_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// run runs a program and gives its collected output.
func run(t testing.TB, rt remoteexec.Runtime, spec remoteexec.Spec) (remoteexec.Report, string, string, error) {
	t.Helper()
	collect := remoteexec.Output{Mode: remoteexec.OutputCollect, MaxBytes: 1 << 20}
	spec.Stdout, spec.Stderr = collect, collect
	if spec.Cwd == "" {
		spec.Cwd = "/"
	}
	spec.Grace = time.Second
	h, err := rt.Spawn(t.Context(), spec)
	if err != nil {
		return remoteexec.Report{}, "", "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	report, err := h.Wait(ctx)
	out, _ := h.Collected(remoteexec.Stdout).ReadFrom(0)
	log, _ := h.Collected(remoteexec.Stderr).ReadFrom(0)
	return report, string(out.Bytes), string(log.Bytes), err
}

// A key, a known host, and nothing else: files and processes work.
func TestWorld(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	w := s.mustOpen(t, nil)
	dir := tempDir(t)
	fs := w.Files()
	out, err := fs.WriteText(t.Context(), remotefs.AtPath(dir+"/a/b", ""), remotefs.WriteRequest{
		Content: strings.NewReader("hello\n"), Size: 6, Intent: remotefs.IntentCreate, Mode: -1})
	if err != nil || out.Operation != remotefs.OpCreate {
		t.Fatalf("write: %+v, %v", out, err)
	}
	text, err := fs.ReadText(t.Context(), remotefs.AtPath(dir+"/a/b", ""))
	if err != nil || text.Text != "hello\n" || text.Version != out.Version {
		t.Fatalf("read: %+v, %v", text, err)
	}
	edited, err := fs.EditText(t.Context(), remotefs.AtPath(dir+"/a/b", ""), remotefs.EditRequest{
		Edits: []remotefs.Edit{{Old: "hello", New: "bye"}}, Version: out.Version})
	if err != nil {
		t.Fatalf("edit: %v", err)
	}
	if got, _ := os.ReadFile(dir + "/a/b"); string(got) != "bye\n" || edited.Replacements != 1 {
		t.Fatalf("edited: %q", got)
	}
	_, entries, err := fs.ListDir(t.Context(), remotefs.AtPath(dir, ""))
	if err != nil || len(entries) != 1 || entries[0].Name != "a" {
		t.Fatalf("list: %+v, %v", entries, err)
	}
	report, stdout, stderr, err := run(t, w.Processes(), remoteexec.Spec{
		Argv: []string{"sh", "-c", "cat; echo $X; pwd; echo e >&2; kill -TERM $$"}, Cwd: dir,
		Env:   remoteexec.Env{Set: map[string]string{"X": "it's"}},
		Stdin: remoteexec.StdinData, StdinData: []byte("in\n"),
	})
	if err != nil || stdout != "in\nit's\n"+dir+"\n" || stderr != "e\n" || report.Outcome.Signal != "SIGTERM" {
		t.Fatalf("exec: %+v %q %q %v", report, stdout, stderr, err)
	}
}
