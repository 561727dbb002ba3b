package cmd

import (
	"strings"
	"testing"
)

// A shell on a terminal of the world, joined with a real one: keys, colours of
// the line discipline, interrupt, size, status, and the screen as it was
// afterwards.
func TestTermOnATerminal(t *testing.T) {
	x := newTmux(t, t.TempDir())
	x.line(`clear; stty -g > before; afield term -e PS1='in$ ' -- sh; echo status $?`)
	x.awaitLine("in$")
	x.line("clear; tty; echo $((6*7)); stty size")
	x.awaitThat("shows the size and an answer", func(screen string) bool {
		return strings.Contains(screen, "/dev/pts/") && hasLine(screen, "42") && hasLine(screen, "30 100")
	})

	// An interrupt reaches the program in front and not the shell (TT-18).
	x.line("clear; sh -c 'echo sleeping; exec sleep 1000'")
	x.awaitLine("sleeping")
	x.run("send-keys", "C-c")
	x.line("echo alive")
	x.awaitLine("alive")

	// The size follows.
	x.run("resize-window", "-x", "90", "-y", "25")
	x.line("clear; stty size")
	x.awaitLine("25 90")
	x.run("resize-window", "-x", "100", "-y", "30")

	x.line("clear; exit 7")
	x.awaitLine("status 7")
	x.line("clear; stty -g > after; cmp before after; echo cmp $?")
	x.await("cmp 0")
}

// The terminal is as it was also when afield is asked to end, and nothing of
// the program is left.
func TestTermEndsOnASignal(t *testing.T) {
	dir := t.TempDir()
	x := newTmux(t, dir)
	x.line(`clear; stty -g > before; afield term -- sh -c 'echo $$ > pid; echo ready; sleep 1000'; echo status $?`)
	x.awaitLine("ready")
	signalParent(t, dir+"/pid")
	x.await("status 143")
	x.line("clear; stty -g > after; cmp before after; echo cmp $?")
	x.await("cmp 0")
}
