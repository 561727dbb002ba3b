package local

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// C240, TT-13: the name in a stat line may hold blanks and parentheses.
func TestParseStat(t *testing.T) {
	line := "4711 (a) b (c) S 1 2 3 34816 5 4194304 1 0 0 0 0 0 0 0 20 0 1 0 99887 3133440 416 18446744073709551615"
	got, ok := parseStat([]byte(line))
	want := stat{pid: 4711, state: 'S', ppid: 1, pgrp: 2, session: 3, tpgid: 5, start: 99887}
	if !ok || got != want {
		t.Errorf("got %+v, %v, want %+v", got, ok, want)
	}
	for _, bad := range []string{
		"", "4711", "4711 (x", "4711 x) S 1 2 3", "(x) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20",
		"4711 (x) S 1 2", strings.Replace(line, " S 1 ", " SS 1 ", 1), strings.Replace(line, " S 1 ", " S one ", 1),
		strings.Replace(line, "99887", "-1", 1),
	} {
		if s, ok := parseStat([]byte(bad)); ok {
			t.Errorf("%q: got %+v", bad, s)
		}
	}
}

// TE-6: dead entries are not alive.
func TestLive(t *testing.T) {
	for state, want := range map[byte]bool{'R': true, 'S': true, 'D': true, 'T': true, 't': true, 'Z': false, 'X': false, 'x': false} {
		if got := (stat{state: state}).live(); got != want {
			t.Errorf("state %c: got %v", state, got)
		}
	}
}

// proc is a made-up /proc in which process 7 has these threads, each in a system
// call, and the memory of each is text.
func madeUp(t *testing.T, stdin string, memory string, calls ...string) string {
	t.Helper()
	root := t.TempDir()
	write := func(name, content string) {
		path := filepath.Join(root, "7", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i, call := range calls {
		thread := fmt.Sprintf("task/%d/", 7+i)
		write(thread+"syscall", call+"\n")
		write(thread+"mem", memory)
		write(thread+"fdinfo/5", "pos:\t0\nflags:\t02\ntfd:        3 events:       19 data: 3\ntfd:        0 events:       19 data: 0\n")
		write(thread+"fdinfo/6", "tfd:        0 events:        4 data: 0\n")
	}
	if err := os.MkdirAll(filepath.Join(root, "7/fd"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(stdin, filepath.Join(root, "7/fd/0")); err != nil {
		t.Fatal(err)
	}
	return root
}

// C244, TT-14, TT-15: only a thread that is proven to wait for input of this
// terminal counts.
func TestEvidence(t *testing.T) {
	terminal, err := deviceOf("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	amd64, _ := waitCallsOf("amd64")
	const rest = " 0x0 0x0 0x0 0x0 0x7ffd 0x7f11"
	// at 8 a poll entry for descriptor 0 and POLLIN, at 16 one for POLLOUT, at 24
	// one for descriptor 1
	memory := "\x01\x00\x00\x00\x00\x00\x00\x00" + "\x00\x00\x00\x00\x01\x00\x00\x00" +
		"\x00\x00\x00\x00\x04\x00\x00\x00" + "\x01\x00\x00\x00\x01\x00\x00\x00"
	for _, c := range []struct {
		name  string
		calls []string
		want  bool
	}{
		{"read of 0", []string{"0 0x0 0x1000" + rest[4:] + " 0x1"}, true},
		{"read of 2", []string{"0 0x2 0x1000" + rest[4:] + " 0x1"}, false},
		{"write", []string{"1 0x0 0x1000" + rest[4:] + " 0x1"}, false},
		{"only the second thread", []string{"202 0x0 0x0" + rest, "0 0x0 0x1000" + rest}, true},
		{"running", []string{"running"}, false},
		{"in no call", []string{"-1 0x7ffd 0x7f11"}, false},
		{"malformed", []string{"0 zero 0x1000" + rest}, false},
		{"pselect6 of 0", []string{"270 0x1 0x18" + rest}, true},
		{"pselect6 of others", []string{"270 0x1 0x10" + rest}, false},
		{"pselect6 without a read set", []string{"270 0x1 0x0" + rest}, false},
		{"pselect6 of nothing", []string{"270 0x0 0x18" + rest}, false},
		{"pselect6, unreadable", []string{"270 0x1 0x4000" + rest}, false},
		{"poll of 0", []string{"7 0x8 0x1" + rest}, true},
		{"poll of 0, second entry", []string{"271 0x8 0x3" + rest}, true},
		{"poll for writing", []string{"7 0x10 0x1" + rest}, false},
		{"poll of 1", []string{"7 0x18 0x1" + rest}, false},
		{"poll, unreadable", []string{"7 0x4000 0x1" + rest}, false},
		{"epoll with 0", []string{"232 0x5 0x0" + rest}, true},
		{"epoll_pwait with 0", []string{"281 0x5 0x0" + rest}, true},
		{"epoll for writing", []string{"232 0x6 0x0" + rest}, false},
		{"epoll, unreadable", []string{"232 0x9 0x0" + rest}, false},
	} {
		for i, call := range c.calls { // nine words: the number, six arguments, two registers
			if words := strings.Fields(call); len(words) > 9 {
				c.calls[i] = strings.Join(words[:9], " ")
			}
		}
		e := evidence{root: madeUp(t, "/dev/null", memory, c.calls...), calls: amd64, terminal: terminal}
		if got := e.waits(7); got != c.want {
			t.Errorf("%s: got %v", c.name, got)
		}
	}
	reads := "0 0x0 0x1000" + rest
	e := evidence{root: madeUp(t, "/dev/zero", memory, reads), calls: amd64, terminal: terminal}
	if e.waits(7) {
		t.Error("a read of something else counts")
	}
	e = evidence{root: t.TempDir(), calls: amd64, terminal: terminal}
	if e.waits(7) {
		t.Error("a process that cannot be read counts")
	}
	if _, ok := waitCallsOf("riscv64"); ok {
		t.Error("an unknown architecture is known")
	}
}
