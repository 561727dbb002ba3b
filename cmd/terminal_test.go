package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// On a terminal fs ls shows type, size and name in columns, directories in
// colour, and no control character of a name.
func TestListingOnATerminal(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a.txt": "abc", "long.bin": strings.Repeat("x", 12345), "bad\x1b[31mname": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	x := newTmux(t, dir)
	x.line("clear; afield fs ls; echo status $?")
	screen := x.await("status 0")
	for _, want := range []string{
		"file           3  a.txt\n", "file           0  bad?[31mname\n",
		"file       12345  long.bin\n", "directory      -  sub/\n",
	} {
		if !strings.Contains(screen, want) {
			t.Errorf("the screen does not show %q:\n%s", want, screen)
		}
	}
	if coloured := x.screen(true); !strings.Contains(coloured, "\x1b[1m\x1b[34msub\x1b[0m") {
		t.Errorf("the directory is not blue: %q", coloured)
	}
	x.line("clear; NO_COLOR=1 afield fs ls; echo plain $?")
	x.await("plain 0")
	if plain := x.screen(true); strings.Contains(plain, "\x1b[34m") {
		t.Errorf("NO_COLOR is not kept: %q", plain)
	}
}

// A read that takes longer than a second shows a bar on stderr, if that is a
// terminal, and takes it away at the end.
func TestProgressOnATerminal(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "big"), letters(), 0o644); err != nil {
		t.Fatal(err)
	}
	x := newTmux(t, dir)
	x.line("mkfifo f; clear; afield fs read big > f; echo status $?")
	f, err := os.Open(awaitFile(t, filepath.Join(dir, "f")))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	piece := make([]byte, 64<<10)
	x.awaitThat("shows the bar", func(screen string) bool {
		f.Read(piece)
		return strings.Contains(screen, "read") && strings.Contains(screen, "%")
	})
	for n, err := 1, error(nil); n > 0 && err == nil; {
		n, err = f.Read(piece)
	}
	if screen := x.await("status 0"); strings.Contains(screen, "%") {
		t.Errorf("the bar is still there:\n%s", screen)
	}
}

// So does a write, whose length is not known when it comes from a pipe.
func TestProgressOfAWriteOnATerminal(t *testing.T) {
	dir := t.TempDir()
	x := newTmux(t, dir)
	x.line("mkfifo f; clear; afield fs write out < f; echo status $?")
	f, err := os.OpenFile(awaitFile(t, filepath.Join(dir, "f")), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	piece := letters()[:4<<10]
	x.awaitThat("shows the bar", func(screen string) bool {
		f.Write(piece)
		return strings.Contains(screen, "write (")
	})
	f.Close()
	if screen := x.await("status 0"); strings.Contains(screen, "write (") {
		t.Errorf("the bar is still there:\n%s", screen)
	}
}

func letters() []byte {
	b := make([]byte, 16<<20)
	for i := range b {
		b[i] = 'a'
	}
	return b
}

// awaitFile waits until path is there.
func awaitFile(t *testing.T, path string) string {
	t.Helper()
	awaitThat(t, path+" is there", func() bool {
		_, err := os.Lstat(path)
		return err == nil
	})
	return path
}
