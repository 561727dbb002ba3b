package e2btest

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// signalAll sends a signal to every process of the sandbox. The caller holds
// b.mu.
func (b *Sandbox) signalAll(sig syscall.Signal) {
	if !b.ran {
		return
	}
	for _, pid := range b.members() {
		syscall.Kill(pid, sig)
	}
}

// killAll ends every process of the sandbox.
func (b *Sandbox) killAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.signalAll(syscall.SIGKILL)
}

// members lists the live processes whose environment names this sandbox, the
// only mark that a process which left its session still carries.
func (b *Sandbox) members() []int {
	var pids []int
	mark := "E2B_SANDBOX_ID=" + b.ID
	dirs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range dirs {
		env, err := os.ReadFile(f)
		if err != nil || !hasVariable(env, mark) {
			continue
		}
		if pid := atoi(filepath.Base(filepath.Dir(f))); pid > 1 && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Processes lists the live processes of the sandbox, whatever their session.
func (b *Sandbox) Processes() []int { return b.members() }

func hasVariable(env []byte, mark string) bool {
	for _, v := range strings.Split(string(env), "\x00") {
		if v == mark {
			return true
		}
	}
	return false
}
