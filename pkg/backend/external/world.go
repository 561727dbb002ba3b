// Package external is the world behind a program of the user's choice that
// speaks the provider protocol on its standard input and output: a plugin's
// provider, or afield serve at the end of any pipe.
package external

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/provider"
)

// Provider makes worlds of external programs.
func Provider() backend.Provider {
	return backend.Provider{
		Name:     "external",
		Services: []backend.Service{backend.ServiceFS, backend.ServiceExec},
		Config: backend.Schema{
			{Key: "argv", Kind: backend.KindList, Required: true, Doc: "the program and its arguments; the program is searched on PATH"},
			{Key: "provider", Kind: backend.KindText, Doc: "which of the program's providers (default: its first)"},
			{Key: "cwd", Kind: backend.KindText, Doc: "working directory in the world (default: the provider's)"},
			{Key: "env", Kind: backend.KindList, Default: []any{}, Doc: "names of environment variables to pass on to the program"},
			{Key: "config", Kind: backend.KindMap, Items: &backend.Field{Kind: backend.KindAny}, Doc: "configuration for the provider"},
			{Key: "startTimeoutMs", Kind: backend.KindInt, Default: int64(10000), Min: 1, Max: 60000, Doc: "limit for the program's start, in milliseconds"},
		},
		Keep: func(req backend.OpenRequest) backend.Keep {
			names := append([]string{"HOME", "PATH", "AFIELD_DEPTH"}, words(req.Config["env"])...)
			return backend.Keep{Apart: append(req.Variables(names...), req.HostDir)}
		},
		Open: func(ctx context.Context, req backend.OpenRequest) (backend.World, error) { return Open(ctx, req) },
	}
}

// World is the world behind a program. The program lives as long as the world.
type World struct {
	*provider.World
	process *process
}

// Open starts the program, shakes hands, and opens its world: one round trip
// behind the program's start.
func Open(outer context.Context, req backend.OpenRequest) (*World, error) {
	limit := time.Duration(req.Config["startTimeoutMs"].(int64)) * time.Millisecond
	ctx, cancel := context.WithTimeout(outer, limit)
	defer cancel()
	p, err := start(ctx, words(req.Config["argv"]), words(req.Config["env"]), req)
	if err != nil {
		return nil, err
	}
	w, err := open(ctx, p, req)
	if err != nil {
		if ctx.Err() != nil && outer.Err() == nil {
			err = fault.Wrap(err, fault.PluginStartFailed, "start", p.argv[0], "it did not open its world within %s", limit)
		}
		p.stop()
		return nil, p.explain(err)
	}
	return &World{w, p}, nil
}

func open(ctx context.Context, p *process, req backend.OpenRequest) (*provider.World, error) {
	name, _ := req.Config["provider"].(string)
	config, _ := req.Config["config"].(map[string]any)
	return provider.OpenWorldOn(ctx, p.conn, provider.OpenParams{
		World: "w", Provider: name, Config: config, Cwd: provider.Raw(req.Cwd), CwdMustExist: req.Cwd != "",
	}, identity(req.Config), hostOf(req))
}

// hostOf gives what a world at driver level needs of this machine.
func hostOf(req backend.OpenRequest) provider.Host {
	return provider.Host{StateDir: req.StateDir, NewFileMode: req.NewFileMode, Log: req.Log}
}

// identity names the world by what starts it.
func identity(config map[string]any) string {
	b, _ := json.Marshal([]any{config["argv"], config["provider"], config["config"]})
	sum := sha256.Sum256(b)
	return "external:" + hex.EncodeToString(sum[:8])
}

func words(v any) []string {
	var out []string
	list, _ := v.([]any)
	for _, x := range list {
		if s, ok := x.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// Close ends what was started, the world and the program.
func (w *World) Close(ctx context.Context) error {
	err := w.World.Close(ctx)
	w.process.stop()
	return err
}

func newNonce() string {
	var b [16]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// nextDepth gives the depth of a provider that we start: a chain of providers
// that start each other ends (plugins.md 28).
func nextDepth(environ []string) (int, error) {
	depth := 0
	for _, e := range environ {
		if v, ok := strings.CutPrefix(e, "AFIELD_DEPTH="); ok && len(v) == 1 {
			depth = int(v[0] - '0')
		}
	}
	if depth < 0 || depth >= maxDepth {
		return 0, fault.New(fault.PluginStartFailed, "start", "", "providers have started each other %d times", maxDepth).
			WithHint("a provider's program must not use a profile that starts itself")
	}
	return depth + 1, nil
}

const maxDepth = 4
