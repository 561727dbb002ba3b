package cmd

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/afield-dev/afield/pkg/backend/ssh/sshdtest"
)

// A shell on a terminal of a real SSH server, joined with a real one: the size from
// the first instant on and as it changes, an interrupt for the program in front,
// the status, and the screen as it was.
func TestTermOverSSH(t *testing.T) {
	dir := t.TempDir()
	server := sshdtest.Start(t)
	profiles := dir + "/.config/afield/profiles"
	if err := os.MkdirAll(profiles, 0o700); err != nil {
		t.Fatal(err)
	}
	profile := fmt.Sprintf(`version: 1
backend: ssh
config: {host: 127.0.0.1, port: %d, user: root, identityFile: %q, knownHostsFile: %q, configFile: /dev/null, agent: "off"}
`, server.Port, server.Key, server.Known)
	if err := os.WriteFile(profiles+"/default.yaml", []byte(profile), 0o600); err != nil {
		t.Fatal(err)
	}
	x := newTmux(t, dir)
	x.line("export AFIELD_KEEP=off")
	x.line(`clear; stty -g > before; afield term -e PS1='in$ ' -- sh -c 'stty size; exec sh'; echo status $?`)
	x.awaitThat("shows the size of the beginning", func(screen string) bool { return hasLine(screen, "30 100") && hasLine(screen, "in$") })
	x.line("clear; tty; echo $((6*7)); echo $SSH_CONNECTION")
	x.awaitThat("shows a terminal of the server", func(screen string) bool {
		return strings.Contains(screen, "/dev/pts/") && hasLine(screen, "42") && strings.Contains(screen, fmt.Sprint(" ", server.Port))
	})

	// An interrupt reaches the program in front and not the shell (TT-18).
	x.line("clear; sh -c 'echo sleeping; exec sleep 1000'")
	x.awaitLine("sleeping")
	x.run("send-keys", "C-c")
	x.line("echo alive")
	x.awaitLine("alive")

	x.run("resize-window", "-x", "90", "-y", "25")
	x.line("clear; stty size")
	x.awaitLine("25 90")
	x.run("resize-window", "-x", "100", "-y", "30")

	x.line("clear; exit 7")
	x.awaitLine("status 7")
	x.line("clear; stty -g > after; cmp before after; echo cmp $?")
	x.await("cmp 0")
}
