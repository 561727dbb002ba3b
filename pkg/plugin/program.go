package plugin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/backend/all"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/provider"
)

// provider makes the provider that a row can name. Its program starts when the
// row is opened, and ends with the world.
func (h *Host) provider(x installed, o Offer) backend.Provider {
	_, hasCwd := o.Config.Field("cwd")
	config := o.Config
	if !hasCwd {
		config = append(slices.Clone(config), backend.Field{Key: "cwd", Kind: backend.KindText, Doc: "working directory in the world (default: the provider's)"})
	}
	return backend.Provider{
		Name: x.entry.ID + "/" + o.Name, Services: o.Services, Config: config,
		Open: func(ctx context.Context, req backend.OpenRequest) (backend.World, error) {
			if !hasCwd {
				delete(req.Config, "cwd")
			}
			return h.open(ctx, x, o, req)
		},
	}
}

func (h *Host) open(ctx context.Context, x installed, o Offer, req backend.OpenRequest) (backend.World, error) {
	using, err := h.use(ctx, x.entry)
	if err != nil {
		return nil, err
	}
	secrets, err := secretsOf(ctx, o, req)
	if err != nil {
		using.release()
		return nil, err
	}
	program, err := h.program(ctx, h.dirOf(x.entry), x, o)
	if err == nil && x.entry.Link == "" {
		err = h.checkStart(h.treeOf(x.entry), startFiles(h.dirOf(x.entry), program.Argv))
	}
	if err != nil {
		using.release()
		return nil, err
	}
	w, err := program.Open(ctx, req, secrets)
	if err != nil {
		using.release()
		return nil, err
	}
	return usedWorld{w, using}, nil
}

// secretsOf resolves the secret fields of a provider's config.
func secretsOf(ctx context.Context, o Offer, req backend.OpenRequest) (map[string]string, error) {
	secrets := map[string]string{}
	for _, f := range o.Config {
		if !f.Secret {
			continue
		}
		value, err := req.Secret(ctx, f.Key)
		if err != nil {
			return nil, err
		}
		if value != "" {
			secrets[f.Key] = value
		}
	}
	return secrets, nil
}

// usedWorld holds the tree of its plugin, so that gc leaves it.
type usedWorld struct {
	backend.World
	using held
}

// Close ends the world and lets the tree go.
func (w usedWorld) Close(ctx context.Context) error {
	defer w.using.release()
	return w.World.Close(ctx)
}

// use marks a tree as used by this process. A store that cannot be written has
// nobody who collects it.
func (h *Host) use(ctx context.Context, e Entry) (held, error) {
	if e.Link != "" {
		return held{}, nil
	}
	using, err := hold(ctx, h.dirOf(e)+".used", true)
	if errors.Is(err, fs.ErrPermission) || fault.Is(err, fault.PluginIO) {
		return held{}, nil
	}
	return using, err
}

// program gives how the provider is started here. Files of the plugin among the
// arguments become absolute, because the working directory is another.
func (h *Host) program(ctx context.Context, dir string, x installed, o Offer) (all.Program, error) {
	run, ok := o.On(h.Platform)
	switch {
	case !ok:
		return all.Program{}, fault.New(fault.PluginPlatformUnsupported, "start", x.entry.ID, "the provider %s/%s does not run on %s, only on %s",
			x.entry.ID, o.Name, h.Platform, strings.Join(sortedKeys(o.Run), ", "))
	case run.Package != "":
		return all.Program{}, fault.New(fault.PluginPlatformUnsupported, "start", x.entry.ID, "the provider %s/%s is in another package on %s, which cannot be fetched",
			x.entry.ID, o.Name, h.Platform).WithHint("ask its author for one archive that holds all platforms")
	}
	argv := slices.Clone(run.Argv)
	for _, need := range run.Needs {
		path, err := h.find(ctx, need)
		if err != nil {
			return all.Program{}, err
		}
		if argv[0] == need.Program {
			argv[0] = path
		}
	}
	for i, arg := range argv {
		if checkPath(arg) != "" {
			continue
		}
		path := filepath.Join(dir, arg)
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
			argv[i] = path
		}
	}
	return all.Program{
		Argv: argv, Env: o.Env, Start: o.Start, Provider: o.Name,
		Dir:   filepath.Join(h.Places.State, "plugins", x.entry.ID),
		Check: func(hello *provider.Hello) error { return agrees(hello, x) },
	}, nil
}

// startFiles gives the paths below dir that a start reads first.
func startFiles(dir string, argv []string) []string {
	var files []string
	for _, name := range []string{"plugin.yaml", "package.json"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			files = append(files, name)
		}
	}
	for _, arg := range argv {
		if rest, ok := strings.CutPrefix(arg, dir+"/"); ok {
			files = append(files, rest)
		}
	}
	return files
}

// agrees holds what a provider says of itself against its manifest (case 111).
func agrees(hello *provider.Hello, x installed) error {
	differs := func(what, said, want string) error {
		return fault.New(fault.PluginProtocol, "start", x.entry.ID, "the program of the plugin says %s %q and its manifest says %q", what, said, want)
	}
	if hello.Plugin != x.entry.Manifest.ID {
		return differs("plugin", hello.Plugin, x.entry.Manifest.ID)
	}
	if hello.Version != x.manifest.Version {
		return differs("version", hello.Version, x.manifest.Version)
	}
	return agreeProviders(hello, x, differs)
}

func agreeProviders(hello *provider.Hello, x installed, differs func(what, said, want string) error) error {
	var said, want []string
	for _, p := range hello.Providers {
		services := slices.Sorted(slices.Values(p.Services))
		said = append(said, fmt.Sprint(p.Name, services, p.Level))
	}
	for _, o := range x.manifest.Providers {
		services := slices.Sorted(slices.Values(words(o.Services)))
		want = append(want, fmt.Sprint(o.Name, services, o.Level))
	}
	slices.Sort(said)
	slices.Sort(want)
	if !slices.Equal(said, want) {
		return differs("providers", strings.Join(said, " "), strings.Join(want, " "))
	}
	return nil
}

func words(services []backend.Service) []string {
	out := make([]string, len(services))
	for i, s := range services {
		out[i] = string(s)
	}
	return out
}

// find looks a program of the host up on the caller's PATH, and asks it for its
// version where the plugin wants one (case 113).
func (h *Host) find(ctx context.Context, n Need) (string, error) {
	path := ""
	for _, dir := range filepath.SplitList(h.getenv("PATH")) {
		candidate := filepath.Join(dir, n.Program)
		if info, err := os.Stat(candidate); filepath.IsAbs(dir) && err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			path = candidate
			break
		}
	}
	if path == "" {
		return "", fault.New(fault.PluginPlatformUnsupported, "start", n.Program, "the plugin needs the program %s, which is not on PATH", n.Program)
	}
	if n.Version.String() == "" {
		return path, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Env, cmd.WaitDelay = h.Environ, time.Second
	out, err := cmd.Output()
	found := versionIn(string(out))
	if err != nil || !n.Version.Holds(found) {
		return "", fault.New(fault.PluginVersionUnsupported, "start", path, "the plugin needs %s %s and %s is %q", n.Program, n.Version, path, found)
	}
	return path, nil
}

// versionIn gives the first full version in the words of a program.
func versionIn(out string) string {
	for _, word := range strings.Fields(out) {
		word = strings.Trim(strings.TrimPrefix(word, "v"), "(),")
		if isVersion(word) {
			return word
		}
	}
	return ""
}
