package cmd

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/backend/all"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/keeper"
	"github.com/afield-dev/afield/pkg/profile"
)

func newKeeper(a *app) *cobra.Command {
	c := newGroup("keeper", "Show and stop the processes that hold connections, terminals and jobs",
		newKeeperList(a), newKeeperStatus(a), newKeeperStop(a))
	c.Long = "The keeper is a background process of afield, one for a user and a world. It holds the connection, so that a " +
		"command costs no handshake, and the terminals and jobs that go on when the command that started them has ended. " +
		"It starts by itself and ends when nobody has needed it for a while: the profile's key keep, 2m by default; " +
		"keep: off, or AFIELD_KEEP=off, does without it. A command that finds no keeper, or one that does not answer, " +
		"opens the world itself."
	return c
}

// defaultIdle is how long a keeper with a connection waits for the next command.
const defaultIdle = 2 * time.Minute

// keeping is the keeper of a row: where it is and what it would be started with.
type keeping struct {
	place keeper.Place
	setup keeper.Setup
	// between: it holds the world between commands.
	between bool
}

// keeperPlace is where the keepers of this user and state directory are.
func (a *app) keeperPlace() (keeper.Place, string, error) {
	program, err := os.Executable()
	if err != nil {
		return keeper.Place{}, "", fault.Wrap(err, fault.FSIOError, "keeper", "", "cannot find the file of this program: %s", err)
	}
	places := profile.NewPlaces(a.Environ)
	p, err := keeper.NewPlace(places.Runtime, places.State, program)
	return p, program, err
}

// keepingOf names the keeper of a row. It is nil where the profile wants none.
func (a *app) keepingOf(ctx context.Context, p *profile.Profile, r *profile.Row, req backend.OpenRequest) (*keeping, error) {
	if p.Keep.Written && p.Keep.Idle == 0 || !builtIn(r.Provider.Name) {
		return nil, nil
	}
	k := &keeping{setup: keeper.Setup{
		Provider: r.Provider.Name, Config: map[string]any{}, Secrets: map[string]string{}, Cwd: req.Cwd,
		HostDir: req.HostDir, StateDir: req.StateDir, NewFileMode: req.NewFileMode,
	}}
	for key, v := range req.Config {
		k.setup.Config[key] = v
	}
	if r.Provider.Keep == nil {
		// One keeper for all directories and environments: each caller gets a
		// world of its own.
		k.setup.Cwd, k.setup.HostDir = "", ""
		delete(k.setup.Config, "cwd")
	} else {
		k.share(p, r.Provider.Keep(req))
	}
	for key := range r.Secrets {
		value, err := req.Secret(ctx, key)
		if err != nil {
			return nil, err
		}
		k.setup.Secrets[key] = value
	}
	place, _, err := a.keeperPlace()
	if err != nil {
		return nil, err
	}
	k.place = place
	return k, k.place.Identify(&k.setup)
}

// keepingOfExec names the keeper of the profile's processes, which holds its
// terminals and jobs; nil where the profile wants none.
func (a *app) keepingOfExec(ctx context.Context) (*keeping, error) {
	p, err := a.loadProfile()
	if err != nil {
		return nil, err
	}
	req, err := a.openRequest(p, p.Exec)
	if err != nil {
		return nil, err
	}
	return a.keepingOf(ctx, p, p.Exec, req)
}

// share sets a keeper up for a world that all callers share.
func (k *keeping) share(p *profile.Profile, how backend.Keep) {
	k.setup.Apart = how.Apart
	k.setup.Shared, k.between = !how.Refused, !how.Refused
	k.setup.AnyCwd = how.AnyCwd
	if k.setup.Idle = p.Keep.Idle; !p.Keep.Written {
		k.setup.Idle = defaultIdle
	}
	if how.AnyCwd {
		k.setup.Cwd = ""
		delete(k.setup.Config, "cwd")
	}
}

// caller is what the keeper's world must know of this command.
func (k *keeping) caller(req backend.OpenRequest) keeper.Caller {
	c := keeper.Caller{Cwd: req.Cwd}
	if !k.setup.Shared {
		c.Environ, c.HostDir = req.Environ, req.HostDir
	}
	return c
}

// start starts the keeper unless it lives.
func (a *app) start(k *keeping) error {
	_, program, err := a.keeperPlace()
	if err == nil {
		_, err = k.place.Start(program, a.Environ, k.setup)
	}
	return err
}

// keptWorld is a world that is reached through the keeper.
type keptWorld struct {
	backend.World
	client *keeper.Client
}

// Close ends what this command has started there.
func (w *keptWorld) Close(ctx context.Context) error {
	err := w.World.Close(ctx)
	w.client.Close()
	return err
}

// viaKeeper gives the world that the keeper holds; nil when the command has to
// open it itself. A keeper that is worth having and not there is started when
// the command is done, so that the command does not pay for it.
func (a *app) viaKeeper(ctx context.Context, p *profile.Profile, r *profile.Row, req backend.OpenRequest) backend.World {
	if r.Provider.Keep == nil || a.direct || a.flags.trace {
		return nil
	}
	k, err := a.keepingOf(ctx, p, r, req)
	if err != nil {
		req.Log.Info("no keeper", "reason", err)
		return nil
	}
	if k == nil || !k.between {
		return nil
	}
	client, err := k.place.Dial(ctx, k.setup)
	if err != nil {
		req.Log.Info("the keeper is not used", "reason", err)
		a.afterwards = append(a.afterwards, func() { a.startLate(k) })
		return nil
	}
	w, err := client.World(ctx, k.caller(req))
	if err != nil {
		req.Log.Info("the keeper is not used", "reason", err)
		client.Close()
		return nil
	}
	return &keptWorld{w, client}
}

// startLate starts the keeper for the next command.
func (a *app) startLate(k *keeping) {
	if err := a.start(k); err != nil {
		a.logger().Info("no keeper was started", "reason", err)
	}
}

// builtIn reports whether a provider is one of ours, which the keeper finds by
// its name.
func builtIn(name string) bool {
	_, ok := all.Providers().Provider(name)
	return ok
}
