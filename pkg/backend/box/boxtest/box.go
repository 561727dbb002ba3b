package boxtest

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// record is what the service tells of a box.
type record struct {
	ID         string            `json:"id"`
	CustomerID string            `json:"customer_id"`
	Name       string            `json:"name,omitempty"`
	Labels     []string          `json:"labels,omitempty"`
	Size       string            `json:"size"`
	Runtime    string            `json:"runtime"`
	Status     string            `json:"status"`
	KeepAlive  bool              `json:"keep_alive"`
	Ephemeral  bool              `json:"ephemeral,omitempty"`
	ExpiresAt  float64           `json:"expires_at,omitempty"`
	CreatedAt  float64           `json:"created_at"`
	UpdatedAt  float64           `json:"updated_at"`
	Network    json.RawMessage   `json:"network_policy,omitempty"`
	Init       string            `json:"-"`
	Env        map[string]string `json:"-"`
}

// box is one box: its record, its files, and its inside while it runs.
type box struct {
	server *Server
	dir    string
	polls  int // answers "creating" left
	fails  bool
	data   record
	runs   []map[string]any

	mu      sync.Mutex
	proxy   *httputil.ReverseProxy
	dial    func(context.Context) (net.Conn, error)
	process *exec.Cmd
}

// halt ends the inside of a box and everything in it.
func (b *box) halt() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.process == nil {
		return
	}
	_ = b.process.Process.Kill()
	_ = b.process.Wait()
	b.process, b.proxy = nil, nil
}

// wake starts the inside of a box if it does not run.
func (b *box) wake() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.process != nil {
		return nil
	}
	socket := filepath.Join(b.dir, "socket")
	_ = os.Remove(socket)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return err
	}
	l.SetUnlinkOnClose(false)
	defer l.Close()
	file, err := l.File()
	if err != nil {
		return err
	}
	defer file.Close()
	cmd, err := b.command(file)
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the inside of a box: %w", err)
	}
	b.process = cmd
	b.dial = func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	b.proxy = httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "box"})
	b.proxy.FlushInterval = -1
	b.proxy.Transport = &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return b.dial(ctx) }}
	b.proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, err error) {
		refuse(w, http.StatusBadGateway, "the box does not answer: %s", err)
	}
	return nil
}

// command is this program again, in namespaces of its own.
func (b *box) command(listener *os.File) (*exec.Cmd, error) {
	cfg := agentConfig{Scratch: b.dir, Root: os.Geteuid() == 0, Env: b.data.Env, Cutoff: b.server.opts.Cutoff, Share: b.server.opts.Share}
	env := []string{"GORACE=atexit_sleep_ms=0", "PATH=" + os.Getenv("PATH")}
	if strings.HasSuffix(b.data.Runtime, "-alpine") {
		busybox, err := exec.LookPath("busybox")
		if err != nil {
			return nil, fmt.Errorf("an alpine box needs busybox: %w", err)
		}
		applets, err := exec.Command(busybox, "--list").Output()
		if err != nil {
			return nil, err
		}
		cfg.Alpine = busybox
		env = append(env, "BOXTEST_APPLETS="+string(applets))
	}
	text, err := json.Marshal(cfg)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(env, agentVariable+"="+string(text))
	cmd.ExtraFiles = []*os.File{listener}
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL}
	if !cfg.Root {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	return cmd, nil
}

// prepare makes the directories of a box, copied from another's if given.
func (b *box) prepare(from string) error {
	for _, name := range []string{"root", "home", "tmp", "boxuser"} {
		dir := filepath.Join(b.dir, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if from != "" && (name == "home" || name == "boxuser") {
			if out, err := exec.Command("cp", "-a", filepath.Join(from, name)+"/.", dir).CombinedOutput(); err != nil {
				return fmt.Errorf("copy %s: %s", name, out)
			}
		}
	}
	if err := os.Chmod(filepath.Join(b.dir, "tmp"), 0o1777); err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return nil
	}
	for _, name := range []string{"home", "boxuser"} {
		if err := os.Chown(filepath.Join(b.dir, name), boxUID, boxGID); err != nil {
			return err
		}
	}
	return nil
}

// find gives a box by id, or a live one by name. The lock is held.
func (s *Server) find(idOrName string) *box {
	for _, b := range s.boxes {
		if b.data.ID == idOrName || (b.data.Name == idOrName && b.data.Name != "" && b.data.Status != "deleted") {
			return b
		}
	}
	return nil
}

// alive gives the box of a request, or answers 404.
func (s *Server) alive(w http.ResponseWriter, r *http.Request) *box {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.find(r.PathValue("id"))
	switch {
	case b == nil:
		refuse(w, http.StatusNotFound, "Box not found")
	case b.data.Status == "deleted":
		refuse(w, http.StatusNotFound, "Box has been deleted")
	default:
		return b
	}
	return nil
}

// inside passes a request to the inside of its box, which it wakes.
func (s *Server) inside(w http.ResponseWriter, r *http.Request) {
	b := s.alive(w, r)
	if b == nil {
		return
	}
	rest := r.PathValue("rest")
	switch head, _, _ := strings.Cut(rest, "/"); head {
	case "exec", "exec-stream", "exec-session", "code", "code-stream", "files":
	default:
		refuse(w, http.StatusNotFound, "Not found")
		return
	}
	if err := b.wake(); err != nil {
		refuse(w, http.StatusInternalServerError, "%s", err)
		return
	}
	s.mu.Lock()
	if b.data.Status == "paused" || b.data.Status == "creating" {
		b.data.Status = "idle"
	}
	s.mu.Unlock()
	if rest == "exec-session" {
		s.relay(b, w, r)
		return
	}
	b.note(rest, r)
	b.mu.Lock()
	proxy := b.proxy
	b.mu.Unlock()
	if proxy == nil {
		refuse(w, http.StatusNotFound, "Box has been deleted")
		return
	}
	r.URL.Path, r.URL.RawPath = "/"+rest, ""
	proxy.ServeHTTP(w, r)
}

// note records a command as the service does: with its whole text.
func (b *box) note(rest string, r *http.Request) {
	if !strings.HasPrefix(rest, "exec") && !strings.HasPrefix(rest, "code") {
		return
	}
	var req execRequest
	if json.Unmarshal(bodyOf(r), &req) != nil {
		return
	}
	text := req.Code
	if text == "" {
		text = shellQuoted(req.Command)
	}
	b.server.mu.Lock()
	defer b.server.mu.Unlock()
	b.runs = append(b.runs, map[string]any{"id": fmt.Sprintf("run-%d", len(b.runs)+1), "box_id": b.data.ID,
		"type": "shell", "status": "completed", "prompt": text, "created_at": time.Now().Unix()})
}
