package e2btest

import (
	"crypto/rand"
	"errors"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/afield-dev/afield/pkg/backend/e2b/wire"
)

// Sandbox is one sandbox: a folder, its processes, and its life.
type Sandbox struct {
	ID    string
	Token string
	// Home is the home directory of the default user, on this machine.
	Home string
	// Dir is the folder of the whole sandbox.
	Dir string

	server    *Server
	template  string
	metadata  map[string]string
	env       map[string]string
	autoPause bool
	life      time.Duration
	secure    bool
	started   time.Time

	mu     sync.Mutex
	state  string // running, paused, killing
	end    time.Time
	timer  *time.Timer
	down   bool // the daemon has crashed
	ran    bool // a program was started
	procs  map[int]*process
	watch  map[string]*watcher
	leaves chan struct{} // closed when streams must end: pause or kill
}

type spec struct {
	template  string
	life      time.Duration
	secure    bool
	autoPause bool
	metadata  map[string]string
	env       map[string]string
}

var errTooMany = errors.New("the maximum number of concurrent sandboxes is reached")

// create makes a running sandbox.
func (s *Server) create(sp spec) (*Sandbox, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opts.MaxSandboxes > 0 && len(s.sandboxes) >= s.opts.MaxSandboxes {
		return nil, errTooMany
	}
	id := "i" + word(20)
	b := &Sandbox{
		ID: id, Token: "tok-" + word(24), Dir: filepath.Join(s.opts.Root, id), server: s,
		template: sp.template, metadata: sp.metadata, autoPause: sp.autoPause, life: sp.life, secure: sp.secure,
		state: "running", started: time.Now(), procs: map[int]*process{}, watch: map[string]*watcher{},
		leaves: make(chan struct{}),
	}
	b.Home = filepath.Join(b.Dir, "home", "user")
	b.env = map[string]string{"E2B_SANDBOX": "true", "E2B_SANDBOX_ID": id, "E2B_TEMPLATE_ID": sp.template}
	maps.Copy(b.env, s.opts.Platform)
	maps.Copy(b.env, sp.env)
	if err := os.MkdirAll(b.Home, 0o755); err != nil {
		return nil, err
	}
	b.setLife(sp.life)
	s.sandboxes[id] = b
	return b, nil
}

// word gives random letters and digits.
func word(n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	raw := make([]byte, n)
	rand.Read(raw)
	for i := range raw {
		raw[i] = letters[int(raw[i])%len(letters)]
	}
	return string(raw)
}

// setLife lets the sandbox end after life from now.
func (b *Sandbox) setLife(life time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timer != nil {
		b.timer.Stop()
	}
	b.end = time.Now().Add(life)
	b.timer = time.AfterFunc(life, b.expire)
}

// extend lets the sandbox live for at least life from now.
func (b *Sandbox) extend(life time.Duration) {
	b.mu.Lock()
	later := time.Now().Add(life).After(b.end)
	b.mu.Unlock()
	if later {
		b.setLife(life)
	}
}

// expire ends or pauses the sandbox at the end of its life.
func (b *Sandbox) expire() {
	if b.autoPause {
		b.Pause()
		return
	}
	b.server.remove(b)
}

// Expire ends the sandbox's life now.
func (b *Sandbox) Expire() { b.expire() }

// remove kills a sandbox. It reports whether there was one.
func (s *Server) remove(b *Sandbox) bool {
	s.mu.Lock()
	_, ok := s.sandboxes[b.ID]
	delete(s.sandboxes, b.ID)
	s.mu.Unlock()
	if !ok {
		return false
	}
	b.mu.Lock()
	b.timer.Stop()
	b.state = "killed"
	b.leave()
	for _, w := range b.watch {
		w.f.Close()
	}
	b.mu.Unlock()
	b.killAll()
	os.RemoveAll(b.Dir)
	return true
}

// Pause stops the sandbox and keeps it. It reports whether it ran.
func (b *Sandbox) Pause() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state != "running" {
		return false
	}
	b.timer.Stop()
	b.state = "paused"
	b.leave()
	b.signalAll(stopSignal)
	return true
}

// Resume runs a paused sandbox again.
func (b *Sandbox) Resume(life time.Duration) {
	b.mu.Lock()
	b.state, b.down = "running", false
	b.leaves = make(chan struct{})
	b.signalAll(continueSignal)
	b.mu.Unlock()
	b.setLife(life)
}

// leave ends all streams. The caller holds b.mu.
func (b *Sandbox) leave() {
	select {
	case <-b.leaves:
	default:
		close(b.leaves)
	}
}

// leaving is closed when streams must end.
func (b *Sandbox) leaving() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.leaves
}

// State gives the state's name.
func (b *Sandbox) State() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state
}

// address is the answer of create and connect.
func (b *Sandbox) address() wire.Sandbox {
	a := wire.Sandbox{TemplateID: b.template, SandboxID: b.ID, ClientID: "local", EnvdVersion: b.server.opts.EnvdVersion}
	if b.secure {
		a.EnvdAccessToken = b.Token
	}
	return a
}

// detail is the answer of get and list.
func (b *Sandbox) detail() wire.SandboxDetail {
	b.mu.Lock()
	defer b.mu.Unlock()
	onTimeout := "kill"
	if b.autoPause {
		onTimeout = "pause"
	}
	return wire.SandboxDetail{
		Sandbox: b.address(), StartedAt: b.started.UTC(), EndAt: b.end.UTC(),
		CPUCount: 2, MemoryMB: 512, DiskSizeMB: 1024, State: b.state, Metadata: b.metadata,
		Lifecycle: &wire.Lifecycle{OnTimeout: onTimeout},
	}
}

// account is a user that requests may name. All are the user who runs the
// stand-in; names and homes are those of the stock image.
type account struct {
	name, home string
	uid, gid   int
}

// account gives the user of a name; "" is the default one.
func (b *Sandbox) account(name string) (account, bool) {
	a := account{name: "user", home: b.Home, uid: os.Getuid(), gid: os.Getgid()}
	switch name {
	case "", "user":
		return a, true
	case "root":
		a.name, a.home = "root", filepath.Join(b.Dir, "root")
		return a, true
	}
	return a, false
}

// userName gives the name of a user id, the id in decimal if it has none.
func userName(uid uint32) string {
	id := strconv.Itoa(int(uid))
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return id
}

// groupName gives the name of a group id, the id in decimal if it has none.
func groupName(gid uint32) string {
	id := strconv.Itoa(int(gid))
	if g, err := user.LookupGroupId(id); err == nil {
		return g.Name
	}
	return id
}
