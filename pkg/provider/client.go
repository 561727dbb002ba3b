package provider

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// World is a world on the other side of a connection.
type World struct {
	conn      *Conn
	stream    *Stream
	opened    Opened
	files     remotefs.FS
	processes remoteexec.Runtime
	identity  string
}

var _ backend.World = (*World)(nil)

// OpenWorld opens a world on a connection: one round trip, HELLO included. It
// does not own the connection. identity names the world for locks and ledgers;
// "" takes the name that the serving side gives.
func OpenWorld(ctx context.Context, c *Conn, p OpenParams, identity string) (*World, error) {
	return OpenWorldOn(ctx, c, p, identity, Host{NewFileMode: -1})
}

// Host is what this machine adds to a world at driver level, whose contract is
// built here.
type Host struct {
	StateDir    string // for locks; "" = those of this process only
	NewFileMode int    // -1: the world's default
	Log         *slog.Logger
}

// OpenWorldOn does so with what this machine adds.
func OpenWorldOn(ctx context.Context, c *Conn, p OpenParams, identity string, host Host) (*World, error) {
	s, err := c.Call("world.open", p)
	if err != nil {
		return nil, err
	}
	w := &World{conn: c, stream: s, identity: identity}
	select {
	case e, ok := <-s.Events():
		if !ok {
			return nil, s.Result(ctx, nil)
		}
		if err := json.Unmarshal(e.Fields, &w.opened); err != nil || e.Name != "opened" {
			s.Cancel()
			return nil, fault.New(fault.PluginProtocol, "world.open", "", "the provider's first event is %q, not \"opened\"", e.Name)
		}
	case <-ctx.Done():
		s.Cancel()
		return nil, fault.Aborted(ctx, fault.FSAborted, "open", "")
	}
	if w.identity == "" {
		w.identity = w.opened.Identity
	}
	return w, w.adopt(ctx, p, host)
}

// adopt makes the halves that the provider offers.
func (w *World) adopt(ctx context.Context, p OpenParams, host Host) error {
	hello, err := w.conn.Greeted(ctx)
	if err != nil {
		return err
	}
	for _, offered := range hello.Providers {
		if offered.Name != p.Provider && p.Provider != "" {
			continue
		}
		if offered.Level == "driver" {
			w.build(p, offered, host)
			return nil
		}
		if slices.Contains(offered.Services, "fs") {
			w.files = &Files{
				conn: w.conn, world: p.World, cwd: string(w.opened.Cwd),
				edits: slices.Contains(offered.Features, FeatureEdits),
				opens: slices.Contains(offered.Features, FeatureOpened),
				facts: w.opened.Facts.files(offered.Name, string(w.opened.Cwd)),
			}
		}
		if slices.Contains(offered.Services, "exec") {
			d := &Processes{conn: w.conn, world: p.World, facts: w.opened.Facts.processes(offered.Name)}
			w.processes = remoteexec.New(d, remoteexec.Options{})
		}
		return nil
	}
	return fault.New(fault.PluginProtocol, "open", "", "the provider offers no %q, only %s", p.Provider, offeredNames(hello))
}

// build puts the contract on a provider at driver level.
func (w *World) build(p OpenParams, offered HelloProvider, host Host) {
	if slices.Contains(offered.Services, "fs") {
		d := &DriverFiles{w.conn, p.World, w.opened.Facts.files(offered.Name, string(w.opened.Cwd))}
		w.files = remotefs.New(d, remotefs.Options{
			Locks: remotefs.NewLocks(host.StateDir, w.identity), NewFileMode: host.NewFileMode, Log: host.Log,
		})
	}
	if slices.Contains(offered.Services, "exec") {
		d := &DriverProcesses{w.conn, p.World, w.opened.Facts.processes(offered.Name)}
		d.facts.Terminals = false
		w.processes = remoteexec.New(d, remoteexec.Options{})
	}
}

func offeredNames(h *Hello) string {
	var names []string
	for _, p := range h.Providers {
		names = append(names, p.Name)
	}
	return strings.Join(names, ", ")
}

// Opened is what the serving side said of the world.
func (w *World) Opened() Opened { return w.opened }

// Files gives the files, nil where the provider has none.
func (w *World) Files() remotefs.FS { return w.files }

// Processes gives the processes, nil where the provider has none.
func (w *World) Processes() remoteexec.Runtime { return w.processes }

// Cwd is what the serving side said when the world was opened.
func (w *World) Cwd(context.Context) (string, error) { return string(w.opened.Cwd), nil }

// Identity names the world.
func (w *World) Identity() string { return w.identity }

// Close ends what was started and gives the world up.
func (w *World) Close(ctx context.Context) error {
	var err error
	if w.processes != nil {
		err = w.processes.Shutdown(ctx)
	}
	w.stream.Cancel()
	if closed := w.stream.Result(ctx, nil); err == nil && !fault.Is(closed, fault.PluginCrashed) {
		err = closed
	}
	return err
}
