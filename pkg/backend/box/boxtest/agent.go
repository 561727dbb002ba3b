package boxtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// agentVariable marks a process as the inside of a box; its value is an
// agentConfig.
const agentVariable = "BOXTEST_AGENT"

// agentConfig is what the inside of a box must know.
type agentConfig struct {
	Scratch string            // directory of the box on the host
	Share   string            // further directory of the host, or ""
	Root    bool              // root owns the namespaces; programs run as boxuser
	Env     map[string]string // of every program
	Alpine  string            // path of busybox: the box has nothing else
	Cutoff  time.Duration     // of a buffered command; 0 = none
}

// The user of a box where the stand-in may change to it.
const (
	boxUID = 1000
	boxGID = 1000
)

// Workspace is the default directory of a box.
const Workspace = "/workspace/home"

// Main turns a process that a Server started into the inside of its box and
// does not return then. Call it first in main or TestMain of every program that
// makes a Server.
func Main() {
	text := os.Getenv(agentVariable)
	if text == "" {
		return
	}
	var cfg agentConfig
	err := json.Unmarshal([]byte(text), &cfg)
	if err == nil {
		err = runAgent(cfg)
	}
	fmt.Fprintln(os.Stderr, "boxtest: the inside of a box ended:", err)
	os.Exit(1)
}

// agent is the inside of one box: process 1 of its own process and mount
// namespaces.
type agent struct {
	cfg agentConfig
	mu  sync.Mutex
	own map[int]bool // processes that somebody waits for
}

func runAgent(cfg agentConfig) error {
	if err := enterRoot(cfg); err != nil {
		return err
	}
	l, err := net.FileListener(os.NewFile(3, "listener"))
	if err != nil {
		return err
	}
	a := &agent{cfg: cfg, own: map[int]bool{}}
	go a.reap()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /exec", a.exec)
	mux.HandleFunc("POST /code", a.code)
	mux.HandleFunc("POST /exec-stream", a.execStream)
	mux.HandleFunc("POST /code-stream", a.codeStream)
	mux.HandleFunc("GET /exec-session", a.session)
	a.addFiles(mux)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { refuse(w, http.StatusNotFound, "Not found") })
	return http.Serve(l, mux)
}

// enterRoot builds the file tree of a box and moves into it: the system
// directories of this machine, and a workspace, a home and a /tmp of its own.
func enterRoot(cfg agentConfig) error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	root := filepath.Join(cfg.Scratch, "root")
	if err := syscall.Mount("tmpfs", root, "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mount the root: %w", err)
	}
	binds := map[string]string{"/dev": "/dev",
		Workspace: filepath.Join(cfg.Scratch, "home"), "/tmp": filepath.Join(cfg.Scratch, "tmp"),
		"/home/boxuser": filepath.Join(cfg.Scratch, "boxuser")}
	for _, dir := range systemDirs(cfg) {
		binds[dir] = dir
	}
	if cfg.Share != "" {
		binds[cfg.Share] = cfg.Share
	}
	for to, from := range binds {
		if err := bind(from, root+to); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(root+"/proc", 0o755); err != nil {
		return err
	}
	if err := syscall.Mount("proc", root+"/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount proc: %w", err)
	}
	if err := addPrograms(cfg, root); err != nil {
		return err
	}
	if err := syscall.Chroot(root); err != nil {
		return err
	}
	syscall.Umask(0o022)
	return os.Chdir("/")
}

// systemDirs are taken from this machine. Links among them are made as links.
func systemDirs(cfg agentConfig) []string {
	if cfg.Alpine != "" {
		return []string{"/lib", "/lib64", "/usr/lib", "/usr/lib64"}
	}
	return []string{"/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/opt"}
}

func bind(from, to string) error {
	info, err := os.Lstat(from)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode()&os.ModeSymlink != 0 {
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	if err := syscall.Mount(from, to, "", syscall.MS_BIND|syscall.MS_REC, ""); err != nil {
		return fmt.Errorf("bind %s: %w", from, err)
	}
	return nil
}

// addPrograms gives an Alpine box its busybox and every box its users.
func addPrograms(cfg agentConfig, root string) error {
	passwd := "root:x:0:0:root:/root:/bin/sh\nboxuser:x:1000:1000::/home/boxuser:/bin/sh\n"
	file := filepath.Join(cfg.Scratch, "passwd")
	if err := os.WriteFile(file, []byte(passwd), 0o644); err != nil {
		return err
	}
	if cfg.Alpine == "" {
		return syscall.Mount(file, root+"/etc/passwd", "", syscall.MS_BIND, "")
	}
	for _, dir := range []string{"/bin", "/etc", "/usr/bin", "/sbin"} {
		if err := os.MkdirAll(root+dir, 0o755); err != nil {
			return err
		}
	}
	if err := os.WriteFile(root+"/etc/passwd", []byte(passwd), 0o644); err != nil {
		return err
	}
	binary, err := os.ReadFile(cfg.Alpine)
	if err != nil {
		return err
	}
	if err := os.WriteFile(root+"/bin/busybox", binary, 0o755); err != nil {
		return err
	}
	for _, applet := range strings.Fields(os.Getenv("BOXTEST_APPLETS")) {
		if applet != "busybox" {
			if err := os.Symlink("/bin/busybox", root+"/bin/"+filepath.Base(applet)); err != nil {
				return err
			}
		}
	}
	return addMissing(root)
}

// addMissing adds what Alpine's busybox has and that of other systems may lack.
func addMissing(root string) error {
	for _, name := range []string{"nice", "cksum"} {
		to := root + "/bin/" + name
		if _, err := os.Lstat(to); err == nil {
			continue
		}
		program, err := os.ReadFile("/usr/bin/" + name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(to, program, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// reap takes the zombies that were left to process 1 by parents that ended.
func (a *agent) reap() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	for range ended {
		for _, p := range processes() {
			a.mu.Lock()
			if p.state == 'Z' && p.ppid == 1 && !a.own[p.pid] {
				_, _ = syscall.Wait4(p.pid, nil, syscall.WNOHANG, nil)
			}
			a.mu.Unlock()
		}
	}
}

func (a *agent) disown(pid int) {
	a.mu.Lock()
	delete(a.own, pid)
	a.mu.Unlock()
}

// refuse answers an error in the form of the service.
func refuse(w http.ResponseWriter, status int, format string, args ...any) {
	answer(w, status, map[string]string{"error": fmt.Sprintf(format, args...)})
}

// answer sends JSON.
func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
