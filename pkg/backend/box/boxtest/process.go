package boxtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/creack/pty"
)

// blocked are the names that the service drops from every environment.
var blocked = [...]string{"PATH", "HOME", "LD_PRELOAD", "LD_LIBRARY_PATH", "NODE_OPTIONS"}

func isBlocked(name string) bool {
	for _, b := range blocked {
		if name == b {
			return true
		}
	}
	return false
}

// searchPath is the PATH of every program.
const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// environ gives the environment of a program: that of the box and an overlay.
func (a *agent) environ(overlay []string) []string {
	env := []string{"PATH=" + searchPath, "HOME=/home/boxuser", "USER=boxuser"}
	for name, value := range a.cfg.Env {
		if !isBlocked(name) {
			env = append(env, name+"="+value)
		}
	}
	for _, entry := range overlay {
		if name, _, _ := strings.Cut(entry, "="); !isBlocked(name) {
			env = append(env, entry)
		}
	}
	return env
}

// command prepares a program in a session of its own. One that cannot be found
// or executed becomes a shell that says so and ends with 127 or 126.
func (a *agent) command(argv []string, dir string, overlay []string) (*exec.Cmd, error) {
	if len(argv) == 0 || argv[0] == "" {
		return nil, fmt.Errorf("command is required")
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("could not determine session pid")
	}
	path, status := lookPath(argv[0], dir)
	if status != 0 {
		argv = []string{"sh", "-c", `printf '%s: cannot be started\n' "$1" >&2; exit "$2"`, "sh", argv[0], strconv.Itoa(status)}
		path = "/bin/sh"
	}
	cmd := &exec.Cmd{Path: path, Args: argv, Dir: dir, Env: a.environ(overlay)}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if a.cfg.Root {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: boxUID, Gid: boxGID, NoSetGroups: false}
	}
	return cmd, nil
}

// lookPath finds a program as execvp does. The status is 0, 126 or 127.
func lookPath(name, dir string) (path string, status int) {
	candidates := []string{name}
	if !strings.Contains(name, "/") {
		candidates = nil
		for _, d := range strings.Split(searchPath, ":") {
			candidates = append(candidates, filepath.Join(d, name))
		}
	}
	status = 127
	for _, c := range candidates {
		full := c
		if !filepath.IsAbs(c) {
			full = filepath.Join(dir, c)
		}
		info, err := os.Stat(full)
		if err != nil {
			continue
		}
		if info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return full, 0
		}
		status = 126
	}
	return "", status
}

// start starts cmd so that the reaper leaves it alone.
func (a *agent) start(cmd *exec.Cmd) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	a.own[cmd.Process.Pid] = true
	return nil
}

// startTerminal starts cmd on a new terminal of the given size and gives our
// side of it.
func (a *agent) startTerminal(cmd *exec.Cmd, rows, cols int) (*os.File, error) {
	master, slave, err := pty.Open()
	if err != nil {
		return nil, err
	}
	defer slave.Close()
	if rows > 0 && cols > 0 {
		if err := pty.Setsize(master, &pty.Winsize{Rows: uint16(rows), Cols: uint16(cols)}); err != nil {
			return nil, err
		}
	}
	if a.cfg.Root {
		_ = slave.Chown(boxUID, boxGID)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr.Setctty = true
	if err := a.start(cmd); err != nil {
		master.Close()
		return nil, err
	}
	return master, nil
}

// entry is one process.
type entry struct {
	pid, ppid, sid int
	state          byte
}

// processes lists what lives in the box, zombies included.
func processes() []entry {
	names, _ := filepath.Glob("/proc/[0-9]*")
	var all []entry
	for _, name := range names {
		text, err := os.ReadFile(name + "/stat")
		if err != nil {
			continue
		}
		end := strings.LastIndexByte(string(text), ')')
		fields := strings.Fields(string(text[end+1:]))
		if len(fields) < 4 {
			continue
		}
		e := entry{state: fields[0][0]}
		e.pid, _ = strconv.Atoi(filepath.Base(name))
		e.ppid, _ = strconv.Atoi(fields[1])
		e.sid, _ = strconv.Atoi(fields[3])
		all = append(all, e)
	}
	return all
}

// tree gives the live members of a session: those of the leader's session and
// their descendants.
func tree(leader int) []int {
	all := processes()
	member := map[int]bool{}
	for changed := true; changed; {
		changed = false
		for _, p := range all {
			if !member[p.pid] && p.pid != 1 && (p.sid == leader || p.pid == leader || member[p.ppid]) {
				member[p.pid], changed = true, true
			}
		}
	}
	var live []int
	for _, p := range all {
		if member[p.pid] && p.state != 'Z' && p.state != 'X' {
			live = append(live, p.pid)
		}
	}
	return live
}

func signalTree(leader int, sig syscall.Signal) {
	for _, pid := range tree(leader) {
		_ = syscall.Kill(pid, sig)
	}
}

// killTree kills until nothing is left.
func killTree(leader int) {
	for range 500 {
		live := tree(leader)
		if len(live) == 0 {
			return
		}
		for _, pid := range live {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// exitCode gives the status as the service reports it: 128+n after a signal.
func exitCode(state *os.ProcessState) int {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return state.ExitCode()
}
