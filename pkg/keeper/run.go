package keeper

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/provider"
)

const (
	// maxCallers bounds the connections at once; more go direct.
	maxCallers = 128
	// nonce is the word of the start line. The socket itself is private.
	nonce = "keeper"
	// greetTime bounds how long a caller may take to say who it is.
	greetTime = 10 * time.Second
)

// Options are what a keeper process runs with.
type Options struct {
	Setup Setup
	// Open opens a world for a caller.
	Open func(ctx context.Context, c Caller, log *slog.Logger) (backend.World, error)
	// Services are those of the provider.
	Services []backend.Service
	// Version is that of this program.
	Version string
	// Stderr is where the log is written.
	Stderr io.Writer
}

// Caller is what a world needs to know of the command that asks for it.
type Caller struct {
	Cwd     string   `json:"-"`
	Environ []string `json:"environ,omitempty"` // of worlds that are not shared
	HostDir string   `json:"hostDir,omitempty"`
}

// keeper is a running keeper.
type keeper struct {
	Options
	log   *slog.Logger
	began time.Time
	pool  pool
	book  book

	mu       sync.Mutex
	callers  int
	ending   bool
	quiet    *time.Timer // fires when there has been nobody for Idle
	finished chan struct{}
}

// Serve is the life of a keeper process. It takes the lock and the socket that
// its starter has handed on, and returns when nobody has needed it for its idle
// time, when it was told to stop, or when ctx ends.
func Serve(ctx context.Context, o Options) error {
	held, socket := os.NewFile(lockDescriptor, "lock"), os.NewFile(listenDescriptor, "socket")
	for _, f := range []*os.File{held, socket} {
		if f == nil {
			return fault.New(fault.Usage, "serve", "", "the keeper was not started by afield")
		}
		unix.CloseOnExec(int(f.Fd()))
	}
	l, err := net.FileListener(socket)
	socket.Close()
	if err != nil {
		return fault.Wrap(err, fault.Usage, "serve", "", "the keeper was not started by afield: %s", err)
	}
	k := newKeeper(o)
	held.Truncate(0)
	fmt.Fprintf(held, "%d\n", os.Getpid())
	debug.SetGCPercent(50)
	k.log.Info("started", "provider", o.Setup.Provider, "socket", o.Setup.Socket)
	k.run(ctx, l)
	os.Remove(o.Setup.Socket)
	k.shut()
	os.Remove(lockPath(o.Setup.Socket))
	k.log.Info("ended")
	return held.Close()
}

// DropInput puts the null device in the place of standard input: nothing that is
// opened later gets its number.
func DropInput() error {
	f, err := os.Open(os.DevNull)
	if err != nil {
		return fault.Wrap(err, fault.FSIOError, "serve", os.DevNull, "cannot open %s: %s", os.DevNull, err)
	}
	defer f.Close()
	return become(int(f.Fd()), 0)
}

func newKeeper(o Options) *keeper {
	out := &rotated{path: o.Setup.Log, out: o.Stderr}
	k := &keeper{Options: o, log: slog.New(slog.NewTextHandler(out, nil)), began: time.Now(), finished: make(chan struct{})}
	k.pool = pool{shared: o.Setup.Shared, open: func(ctx context.Context, c Caller) (backend.World, error) { return o.Open(ctx, c, k.log) }}
	k.book.k = k
	return k
}

// run accepts callers until the keeper ends.
func (k *keeper) run(ctx context.Context, l net.Listener) {
	k.quiet = time.AfterFunc(max(k.Setup.Idle, firstWait), k.retire)
	defer k.quiet.Stop()
	stop := context.AfterFunc(ctx, k.end)
	defer stop()
	go k.accept(l)
	if k.Setup.Shared {
		go k.warm()
	}
	defer k.guard().Close()
	<-k.finished
	l.Close()
}

// firstWait is the least that a keeper waits for the caller that started it.
const firstWait = 3 * time.Second

// warm opens the world before the first caller asks for it. A failure is that
// caller's to see.
func (k *keeper) warm() {
	if l, err := k.pool.take(context.Background(), Caller{}); err == nil {
		l.drop()
	} else {
		k.log.Warn("the world cannot be opened", "error", err)
	}
}

// accept serves callers of one listener until it is closed.
func (k *keeper) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		if !k.enter() {
			c.Close()
			continue
		}
		go func() {
			defer k.leave()
			k.serve(c.(*net.UnixConn))
		}()
	}
}

// enter counts a caller in; a full or ending keeper takes none.
func (k *keeper) enter() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ending || k.callers >= maxCallers {
		return false
	}
	k.callers++
	k.quiet.Stop()
	return true
}

// leave counts a caller out.
func (k *keeper) leave() {
	k.mu.Lock()
	k.callers--
	k.mu.Unlock()
	k.rest()
}

// rest lets the idle time begin when nobody is here and nothing is held.
func (k *keeper) rest() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.callers == 0 && !k.ending && k.book.empty() {
		k.quiet.Reset(k.Setup.Idle)
	}
}

// retire ends the keeper when its idle time is over and still nobody is here.
func (k *keeper) retire() {
	k.mu.Lock()
	idle := k.callers == 0 && k.book.empty()
	k.mu.Unlock()
	if idle {
		k.end()
	}
}

// end makes run return. It may be called more than once.
func (k *keeper) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.ending {
		k.ending = true
		close(k.finished)
	}
}

// shutTime bounds the end of what is held and of the worlds.
const shutTime = 20 * time.Second

// shut ends all that is held, then the worlds.
func (k *keeper) shut() {
	ctx, cancel := context.WithTimeout(context.Background(), shutTime)
	defer cancel()
	k.book.shut(ctx)
	k.pool.shut(ctx)
}

// serve serves one caller to the end of its connection.
func (k *keeper) serve(c *net.UnixConn) {
	if !OwnPeer(c) {
		k.log.Warn("refused a caller of another user")
		c.Close()
		return
	}
	if err := provider.Announce(c, nonce); err != nil {
		c.Close()
		return
	}
	s := &session{k: k, worlds: map[string]*lease{}}
	server := &provider.Server{Hello: k.hello(), Open: s.open}
	conn := provider.NewConn(c, provider.Options{Hello: k.hello(), Serve: s.handler(server.Handler()), Failed: k.pool.failed})
	greet, cancel := context.WithTimeout(context.Background(), greetTime)
	_, err := conn.Greeted(greet)
	cancel()
	if err != nil {
		conn.Close()
	}
	<-conn.Closed()
}

func (k *keeper) hello() provider.Hello {
	var services []string
	for _, s := range k.Services {
		services = append(services, string(s))
	}
	slices.Sort(services)
	return provider.Hello{Plugin: "afield", Version: k.Version, Features: []string{"held"}, Providers: []provider.HelloProvider{{
		Name: k.Setup.Provider, Services: services, Level: "contract",
		Features: []string{"term", "collect", "resize", "before", provider.FeatureEdits, provider.FeatureOpened},
	}}}
}
