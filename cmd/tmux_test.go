package cmd

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// watchdog ends a test that waits for something which never comes.
const watchdog = 2 * time.Minute

// tmux is a real terminal of 100 columns and 30 rows with a shell in it, whose
// directory is dir.
type tmux struct {
	t      *testing.T
	socket string
	dir    string
}

func newTmux(t *testing.T, dir string) *tmux {
	needTool(t, "tmux")
	x := &tmux{t: t, socket: filepath.Join(t.TempDir(), "tmux"), dir: dir}
	c := exec.Command("tmux", "-S", x.socket, "-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "30", "-c", dir,
		"env", "-u", "NO_COLOR", "PS1=$ ", "ENV=", "HOME="+dir, "AFIELD_STATE_DIR="+dir+"/.state",
		"PATH="+binaryDir(t)+":"+os.Getenv("PATH"), "TERM=screen", "sh")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("tmux: %v: %s", err, out)
	}
	t.Cleanup(func() { x.run("kill-server") })
	return x
}

func (x *tmux) run(args ...string) string {
	out, _ := exec.Command("tmux", append([]string{"-S", x.socket}, args...)...).Output()
	return string(out)
}

// line types a line and the return key.
func (x *tmux) line(text string) {
	x.run("send-keys", "-l", text)
	x.run("send-keys", "Enter")
}

// screen gives what is shown; with colours as escape sequences if asked for.
func (x *tmux) screen(colours bool) string {
	if colours {
		return x.run("capture-pane", "-p", "-e")
	}
	return x.run("capture-pane", "-p")
}

// await waits until the screen shows text.
func (x *tmux) await(text string) string {
	x.t.Helper()
	return x.awaitThat("shows "+text, func(screen string) bool { return strings.Contains(screen, text) })
}

// awaitLine waits until a line of the screen is text.
func (x *tmux) awaitLine(text string) {
	x.t.Helper()
	x.awaitThat("has the line "+text, func(screen string) bool { return hasLine(screen, text) })
}

func hasLine(screen, text string) bool { return slices.Contains(strings.Split(screen, "\n"), text) }

func (x *tmux) awaitThat(what string, holds func(screen string) bool) string {
	x.t.Helper()
	var screen string
	x.t.Cleanup(func() {
		if x.t.Failed() {
			x.t.Logf("the screen:\n%s", screen)
		}
	})
	awaitThat(x.t, "the screen "+what, func() bool {
		screen = x.screen(false)
		return holds(screen)
	})
	return screen
}
