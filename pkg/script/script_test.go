package script

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// requireProgram gives the path of a program from Debian's packages; without it
// the test fails where everything is required and is skipped loudly elsewhere.
func requireProgram(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("AFIELD_TEST_REQUIRE") != "" {
			t.Fatalf("%s is required: %v", name, err)
		}
		t.Skipf("SKIPPED: %s is not installed", name)
	}
	return path
}

// shells are the programs that run as sh.
func shells() []string { return []string{"dash", "bash", "busybox", "mksh", "zsh"} }

// eachShell runs f with an environment in which sh is each of the shells; with
// busybox the other programs are its own, too, as far as Debian builds them in.
func eachShell(t *testing.T, f func(t *testing.T, env []string)) {
	for _, name := range shells() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shell := requireProgram(t, name)
			bin := t.TempDir()
			if err := os.Symlink(shell, filepath.Join(bin, "sh")); err != nil {
				t.Fatal(err)
			}
			if name == "busybox" {
				for _, applet := range []string{"stat", "find", "dd", "mv", "ln", "cp", "chmod", "chown", "mkdir", "rm", "cat", "readlink", "date", "df", "tail", "sleep", "uname"} {
					if err := os.Symlink(shell, filepath.Join(bin, applet)); err != nil {
						t.Fatal(err)
					}
				}
			}
			f(t, []string{"PATH=" + bin + ":/usr/bin:/bin", "HOME=" + t.TempDir()})
		})
	}
}

// run runs a call with its input and the content behind it.
func run(t *testing.T, env []string, c Call, content string) *Answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	sh, _, _ := strings.Cut(strings.TrimPrefix(env[0], "PATH="), ":")
	cmd := exec.CommandContext(ctx, sh+"/sh", c.Argv()[1:]...)
	cmd.Env, cmd.Dir = env, "/"
	cmd.Stdin = strings.NewReader(string(c.Input) + content)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if stderr.Len() > 0 {
		t.Logf("stderr: %s", stderr.String())
	}
	if err != nil {
		t.Logf("status: %v", err)
	}
	return NewAnswer(bytes.NewReader(append([]byte("noise before\n"), out...)))
}

// A program is one line that every login shell leaves alone between single
// quotes, and short enough for csh.
func TestProgramsAreSafeBetweenSingleQuotes(t *testing.T) {
	sources, err := filepath.Glob("sh/*.sh")
	if err != nil || len(sources) < 10 {
		t.Fatalf("sources: %v %v", sources, err)
	}
	bad := regexp.MustCompile(`['\n]|[^$]!|\\[^0-9$n]|\\$`)
	for _, path := range sources {
		name := strings.TrimSuffix(filepath.Base(path), ".sh")
		text := Program(name)
		if at := bad.FindStringIndex(text); at != nil {
			t.Errorf("%s holds %q", name, text[max(0, at[0]-20):at[1]+5])
		}
		if len(text) > 7500 {
			t.Errorf("%s has %d bytes: too long for a word of csh", name, len(text))
		}
	}
}

// The banner before the nonce is noise, and an end without it is no answer.
func TestAnswerBeginsAtTheNonce(t *testing.T) {
	a := NewAnswer(strings.NewReader("Welcome!\n\x00\xff no newline, thenABC ok\nok\x00one\x00"))
	if rest, err := a.Begin("ABC"); err != nil || rest != "ok" {
		t.Fatalf("Begin = %q, %v", rest, err)
	}
	if f, err := a.Status(1); err != nil || f[0] != "one" {
		t.Fatalf("Status = %q, %v", f, err)
	}
	if _, err := NewAnswer(strings.NewReader("only noise")).Begin("ABC"); err != ErrNoMarker {
		t.Fatalf("without a nonce: %v", err)
	}
	if _, err := NewAnswer(strings.NewReader("ABC\nok\x00cut")).Head("ABC", 1); err == nil || err == ErrNoMarker {
		t.Fatalf("cut field: %v", err)
	}
}

// Words of every byte pass through each shell as sh and each login shell (C17,
// C18, C213).
func TestWordsArriveUnchanged(t *testing.T) {
	var all []byte
	for i := 1; i < 256; i++ {
		all = append(all, byte(i))
	}
	args := []string{"", "a b", "c\nd", `"`, "'", `\`, "*", "`id`", "$(id)", "é€😀", "!x", "~", " ", "\t", "x\n",
		"-n", "--", "%41", "=x", "{a,b}", "a=b", "#", "\\0101", string(all)}
	want := "[" + strings.Join(args, "][") + "]"
	check := func(t *testing.T, shell []string, env []string) {
		c := Start(StartSpec{Argv: append([]string{"printf", "[%s]"}, args...), Cwd: "/", Input: Piped, Grace: time.Second})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, shell[0], append(shell[1:], "-c", c.Line(len(shell) == 1))...)
		cmd.Env = env
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v", shell, err)
		}
		a := NewAnswer(bytes.NewReader(out))
		if _, err := ReadStarted(a, c); err != nil {
			t.Fatalf("%v: %v: %q", shell, err, out)
		}
		var rest bytes.Buffer
		rest.ReadFrom(a)
		if rest.String() != want {
			t.Errorf("%v: got %q, want %q", shell, rest.String(), want)
		}
	}
	eachShell(t, func(t *testing.T, env []string) { check(t, []string{"/bin/dash"}, env) })
	for _, login := range []string{"bash", "dash", "zsh", "fish", "csh", "tcsh", "mksh"} {
		t.Run("login "+login, func(t *testing.T) {
			check(t, []string{requireProgram(t, login)}, []string{"PATH=/usr/bin:/bin", "HOME=" + t.TempDir()})
		})
	}
	t.Run("login rbash", func(t *testing.T) {
		check(t, []string{requireProgram(t, "bash"), "-r"}, []string{"PATH=/usr/bin:/bin", "HOME=" + t.TempDir()})
	})
}

// The sum is that of cksum.
func TestSumIsThatOfCksum(t *testing.T) {
	for _, content := range []string{"", "x", strings.Repeat("abc\n", 100_000)} {
		cmd := exec.Command("cksum")
		cmd.Stdin = strings.NewReader(content)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		var s Sum
		s.Write([]byte(content))
		if want := strings.Fields(string(out))[0]; s.String() != want {
			t.Errorf("%d bytes: %s, want %s", len(content), s.String(), want)
		}
	}
}
