package provider

import (
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"sync"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/fault"
)

// Server serves worlds on connections. One Server may serve several
// connections; each has its own worlds, which end with it.
type Server struct {
	// Hello is what the serving side says of itself.
	Hello Hello
	// Open makes a world for world.open. The context lives as long as the world.
	Open func(ctx context.Context, p OpenParams) (backend.World, Opened, error)
	// OpenDrivers makes one at driver level instead (plugins.md 36): the caller
	// builds the contract on it. The facts of Opened are filled in.
	OpenDrivers func(ctx context.Context, p OpenParams) (Drivers, Opened, error)
}

// OpenParams are the parameters of world.open (plugins.md 33).
type OpenParams struct {
	World        string            `json:"world"`
	Provider     string            `json:"provider"`
	Config       map[string]any    `json:"config"`
	Secrets      map[string]string `json:"secrets"`
	Cwd          Raw               `json:"cwd"`
	CwdMustExist bool              `json:"cwdMustExist"`
}

// Opened is what is said of a world when it is open, as the event "opened".
type Opened struct {
	Cwd       Raw    `json:"cwd"`
	Home      Raw    `json:"home,omitempty"`
	Platform  string `json:"platform"`
	User      string `json:"user,omitempty"`
	PathStyle string `json:"pathStyle"`
	// Identity names the world as its own backend does, for locks and ledgers.
	Identity string `json:"identity,omitempty"`
	Facts    Facts  `json:"facts"`
}

// Describe says of an open world what world.open answers. The home directory
// and the user are left out where the world does not tell them.
func Describe(w backend.World, cwd string) Opened {
	o := Opened{Cwd: Raw(cwd), Platform: runtime.GOOS + "/" + runtime.GOARCH, PathStyle: "posix", Identity: w.Identity()}
	if f := w.Files(); f != nil {
		o.Facts.addFiles(f.Facts())
	}
	if r := w.Processes(); r != nil {
		o.Facts.addProcesses(r.Facts())
	}
	return o
}

// session is the worlds and processes of one connection.
type session struct {
	server *Server
	mu     sync.Mutex
	worlds map[string]*openWorld
	procs  map[uint32]*servedProc
}

// openWorld is a world of a connection. ready is closed when it is open or has
// failed.
type openWorld struct {
	ready chan struct{}
	world backend.World
	files *driverFiles // at driver level
	procs *driverProcs
	err   error
}

// Handler gives the handler of one new connection.
func (s *Server) Handler() Handler {
	x := &session{server: s, worlds: map[string]*openWorld{}, procs: map[uint32]*servedProc{}}
	return x.serve
}

func (x *session) serve(s *Stream) {
	switch {
	case s.Method == "world.open":
		x.open(s)
	case s.Method == "world.ping":
		s.Finish(struct{}{})
	case s.Method == "describe":
		s.Finish(x.server.Hello)
	case isAboutProc(s.Method):
		x.serveProc(s)
	default:
		x.serveWorld(s)
	}
}

// serveWorld answers a call that names a world.
func (x *session) serveWorld(s *Stream) {
	var p struct {
		World string `json:"world"`
	}
	if err := decodeParams(s, &p); err != nil {
		s.Fail(err)
		return
	}
	open, err := x.world(s, p.World)
	if err != nil {
		s.Fail(err)
		return
	}
	w := open.world
	switch {
	case strings.HasPrefix(s.Method, "fsd.") && open.files != nil:
		open.files.serve(s)
	case strings.HasPrefix(s.Method, "execd.") && open.procs != nil:
		open.procs.serve(s)
	case w == nil:
		s.Fail(unknownMethod(s.Method))
	case strings.HasPrefix(s.Method, "fs."):
		serveFiles(s, w.Files())
	case s.Method == "exec.which":
		serveWhich(s, w.Processes())
	case s.Method == "exec.spawn":
		x.spawn(s, w.Processes())
	case s.Method == "term.open":
		x.openTerminal(s, w.Processes())
	default:
		s.Fail(unknownMethod(s.Method))
	}
}

// world waits for a world that is being opened.
func (x *session) world(s *Stream, id string) (*openWorld, error) {
	x.mu.Lock()
	w := x.worlds[id]
	x.mu.Unlock()
	if w == nil {
		return nil, fault.New(fault.BackendWorldGone, s.Method, "", "there is no world %q on this connection", id)
	}
	select {
	case <-w.ready:
		return w, w.err
	case <-s.Context().Done():
		return nil, fault.Aborted(s.Context(), fault.FSAborted, s.Method, "")
	}
}

// open opens a world and holds it until the caller cancels the call or the
// connection ends. Calls that follow at once wait for it.
func (x *session) open(s *Stream) {
	var p OpenParams
	if err := decodeParams(s, &p); err != nil {
		s.Fail(err)
		return
	}
	w := &openWorld{ready: make(chan struct{})}
	if err := x.add(p.World, w); err != nil {
		s.Fail(err)
		return
	}
	defer x.drop(p.World)
	if x.server.OpenDrivers != nil {
		x.openDrivers(s, p, w)
		return
	}
	world, opened, err := x.server.Open(s.Context(), p)
	w.world, w.err = world, err
	close(w.ready)
	if err != nil {
		s.Fail(err)
		return
	}
	body, _ := json.Marshal(opened)
	fields := map[string]any{}
	json.Unmarshal(body, &fields)
	s.Emit("opened", fields)
	<-s.Context().Done()
	closed := world.Close(context.Background())
	if closed != nil {
		s.Fail(closed)
		return
	}
	s.Finish(struct{}{})
}

func (x *session) add(id string, w *openWorld) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.worlds[id] != nil {
		return fault.New(fault.BackendConflict, "world.open", "", "world %q is open already", id)
	}
	x.worlds[id] = w
	return nil
}

func (x *session) drop(id string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.worlds, id)
}
