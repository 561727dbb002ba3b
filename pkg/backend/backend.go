// Package backend joins the file and the process contract into a world: the
// machine, container or sandbox that a profile names. It holds the registry of
// providers; each built-in one lives in a folder of its own below this one, and
// backend/all lists them.
package backend

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// World is one execution world. Files and processes share the connection, the
// paths, the credential and the lifetime. Files or Processes may be nil where a
// provider offers only one of them.
type World interface {
	Files() remotefs.FS
	Processes() remoteexec.Runtime
	// Cwd is the working directory, absolute in the world: that of the request
	// joined to the backend's default. It is where processes start (SP-1). It
	// may make the connection, and takes a round trip of its own at most once.
	Cwd(ctx context.Context) (string, error)
	// Identity names the world for locks, ledgers and the keeper: equal for two
	// openings of the same world, without any secret in it.
	Identity() string
	// Close ends what was started and releases the connection. It may be called
	// twice.
	Close(ctx context.Context) error
}

// Service is a half of a world.
type Service string

// The services of a provider.
const (
	ServiceFS   Service = "fs"
	ServiceExec Service = "exec"
)

// Provider makes worlds of one kind.
type Provider struct {
	// Name is what a profile says: "local", "ssh", …
	Name     string
	Services []Service
	// Near: operations take no round trip, so that completion of paths may ask
	// the world at each press of a key.
	Near bool
	// Config is the closed set of keys of a row's config.
	Config Schema
	// Check is a rule over several keys, nil = none. It sees the config with its
	// defaults, does no I/O, and names the key that is at fault. The values of
	// secrets are not in it; a secret that is set is there as true.
	Check func(config map[string]any) (key, problem string)
	// Open makes the world. It may be lazy about the connection. Config has
	// been checked against Schema and has its defaults.
	Open func(ctx context.Context, req OpenRequest) (World, error)
	// Keep says how the keeper may hold worlds of a request between commands; nil
	// where nothing is gained by it, because no connection is made. It does no
	// I/O.
	Keep func(req OpenRequest) Keep
	// Sandboxes gives the lifetime of the provider's worlds; nil where a
	// provider has nothing to make or end. It makes no request.
	Sandboxes func(ctx context.Context, req OpenRequest) (Sandboxes, error)
}

// OpenRequest is what a world needs from the command.
type OpenRequest struct {
	// Config holds string, int64, float64, bool, []any and map[string]any values,
	// without the secret keys.
	Config map[string]any
	// Secret resolves the value of a secret key; "" when nobody wrote it and its
	// default leads nowhere. What somebody wrote and cannot be resolved is an
	// error.
	Secret func(ctx context.Context, key string) (string, error)
	// Cwd is the working directory in the world asked for by flag or profile:
	// "" = the backend's default; a relative one is joined to that default. It
	// is the config's cwd as well where the schema has one.
	Cwd string
	// Environ is the caller's environment. Only the local world and a service's
	// own variables look at it.
	Environ []string
	// HostDir is the absolute directory in which afield was started.
	HostDir string
	// StateDir is the directory for locks and small caches; made on demand.
	StateDir string
	// NewFileMode is fs.newFileMode of the profile; -1 = the world's default.
	NewFileMode int
	// Log takes diagnostics; never nil.
	Log *slog.Logger
	// Trace counts round trips and bytes for --trace; may be nil.
	Trace func(step string, roundTrips int, bytes int64)
}

// Keep is how the keeper may hold worlds of a provider (plugins.md 38 b).
type Keep struct {
	// Refused: each command has a world of its own that ends with it.
	Refused bool
	// Apart are values that tell worlds apart beside the provider's name, the
	// config without its directory, and the secrets.
	Apart []string
	// AnyCwd: one world serves callers in any working directory.
	AnyCwd bool
}

// Variables gives the values of variables of the caller as members of Keep.Apart.
func (r OpenRequest) Variables(names ...string) []string {
	values := make([]string, len(names))
	for i, name := range names {
		for _, entry := range slices.Backward(r.Environ) {
			if key, value, _ := strings.Cut(entry, "="); key == name {
				values[i] = value
				break
			}
		}
	}
	return values
}
