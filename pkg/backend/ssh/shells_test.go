package ssh_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// Any login shell carries arguments and values unchanged, and the noise of its
// profile is not seen (C17, C213 to C215).
func TestLoginShells(t *testing.T) {
	t.Parallel()
	args := []string{"", "a b", "c\nd", `"`, "'", `\`, "*", "`id`", "$(id)", "é€😀", "!x", "~", " ", "\t", "x\n"}
	want := "[" + strings.Join(args, "][") + "]"
	for _, shell := range []string{"bash", "dash", "zsh", "fish", "csh", "tcsh", "mksh", "rbash", "busybox"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			path := requireShell(t, shell)
			if shell == "busybox" { // a shell by its name
				ash := tempDir(t) + "/ash"
				if err := os.Symlink(path, ash); err != nil {
					t.Fatal(err)
				}
				path = ash
			}
			user, home := login(t, path, "")
			own := startServer(t, "SetEnv HOME="+home)
			for _, file := range []string{".bashrc", ".zshenv", ".cshrc", ".config/fish/config.fish"} {
				os.MkdirAll(filepath.Dir(home+"/"+file), 0o755)
				os.WriteFile(home+"/"+file, []byte("echo 'welcome to the host'\n"), 0o644)
			}
			w := own.mustOpen(t, map[string]any{"user": user})
			_, out, log, err := run(t, w.Processes(), remoteexec.Spec{Argv: append([]string{"printf", "[%s]"}, args...)})
			if err != nil || out != want || log != "" {
				t.Errorf("got %q %q, %v", out, log, err)
			}
			big := strings.Repeat("x", 100_000)
			_, out, _, err = run(t, w.Processes(), remoteexec.Spec{
				Argv: []string{"sh", "-c", "echo ${#1} ${#V} $V2", "x", big},
				Env:  remoteexec.Env{Set: map[string]string{"V": big, "V2": "it's \"me\" !"}}})
			if err != nil || out != "100000 100000 it's \"me\" !\n" {
				t.Errorf("big: %.80q, %v", out, err)
			}
			got, err := w.Files().Resolve(t.Context(), "x", "")
			if err != nil || got.Key != home+"/x" {
				t.Errorf("home: %+v, %v", got, err)
			}
		})
	}
}

func requireShell(t *testing.T, name string) string {
	t.Helper()
	for _, dir := range []string{"/bin/", "/usr/bin/"} {
		if _, err := os.Stat(dir + name); err == nil {
			return dir + name
		}
	}
	if os.Getenv("AFIELD_TEST_REQUIRE") != "" {
		t.Fatalf("%s is required", name)
	}
	t.Skipf("SKIPPED: %s is not installed", name)
	return ""
}

// A login that runs nothing at all says what to try.
func TestNoShellAndNoSFTP(t *testing.T) {
	t.Parallel()
	s := startServer(t, "ForceCommand echo This account is closed; exit 1", "Subsystem none /bin/false")
	fails(t, s.row(nil), fault.BackendUnsupported, "ssh 127.0.0.1 true")
}

// A login whose home directory is missing works with absolute paths, and says
// what is missing of others.
func TestHomeMissing(t *testing.T) {
	t.Parallel()
	w := startServer(t, "SetEnv HOME=/nonexistent/home").mustOpen(t, nil)
	dir := tempDir(t)
	write(t, dir+"/f", "here")
	if text, err := w.Files().ReadText(t.Context(), remotefs.AtPath(dir+"/f", "")); err != nil || text.Text != "here" {
		t.Errorf("absolute: %+v, %v", text, err)
	}
	if _, err := w.Files().ReadText(t.Context(), remotefs.AtPath("f", "")); !fault.Is(err, fault.FSNotFound) {
		t.Errorf("relative: %v", err)
	}
	cwd, _ := w.Cwd(t.Context())
	_, _, _, err := run(t, w.Processes(), remoteexec.Spec{Argv: []string{"true"}, Cwd: cwd})
	if !fault.Is(err, fault.ExecCwdMissing) || !strings.Contains(err.Error(), "/nonexistent/home") {
		t.Errorf("exec: %v", err)
	}
}

// A login shell that ends at once leaves the files, by SFTP; of programs it is
// said what the shell printed.
func TestLoginShellThatExits(t *testing.T) {
	t.Parallel()
	user, home := login(t, "/usr/sbin/nologin", "")
	w := startServer(t, "SetEnv HOME="+home).mustOpen(t, map[string]any{"user": user})
	write(t, home+"/f", "here")
	os.Chmod(home+"/f", 0o644)
	if text, err := w.Files().ReadText(t.Context(), remotefs.AtPath(home+"/f", "")); err != nil || text.Text != "here" {
		t.Errorf("read: %+v, %v", text, err)
	}
	_, _, _, err := run(t, w.Processes(), remoteexec.Spec{Argv: []string{"true"}})
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != fault.BackendUnsupported || !strings.Contains(f.Message, "no shell") || f.Hint == "" || strings.Contains(f.Message, "\n") {
		t.Errorf("exec: %v", err)
	}
}

// A host without the SFTP subsystem lacks nothing as long as it has a shell.
func TestNoSFTP(t *testing.T) {
	t.Parallel()
	w := startServer(t, "Subsystem none /bin/false").mustOpen(t, nil)
	dir := tempDir(t)
	if _, err := w.Files().WriteText(t.Context(), remotefs.AtPath(dir+"/f", ""), remotefs.WriteRequest{
		Content: strings.NewReader("x"), Size: 1, Mode: -1}); err != nil {
		t.Error(err)
	}
}
