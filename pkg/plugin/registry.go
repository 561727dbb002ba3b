package plugin

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/plugin/download"
	"github.com/afield-dev/afield/pkg/plugin/npm"
)

// maxPackument bounds what a registry says of one package, in bytes.
const maxPackument = 64 << 20

// packument is what a registry says of a package.
type packument struct {
	Tags     map[string]string         `json:"dist-tags"`
	Versions map[string]packageVersion `json:"versions"`
}

type packageVersion struct {
	Deprecated any `json:"deprecated"`
	Dist       struct {
		Tarball   string `json:"tarball"`
		Integrity string `json:"integrity"`
	} `json:"dist"`
}

// locatePackage asks the user's registry for a package (plugins.md 23).
// registry overrides the one that npm is configured with; "" does not.
func (h *Host) locatePackage(ctx context.Context, s Source, registry string) (place, error) {
	name := strings.TrimPrefix(s.Name, "npm:")
	config, client, err := h.npmConfig()
	if err != nil {
		return place{}, err
	}
	if registry == "" {
		if registry, err = h.registryOf(ctx, config, name); err != nil {
			return place{}, err
		}
	}
	doc, err := fetchPackument(ctx, client, config, registry, name)
	if err != nil {
		return place{}, err
	}
	version, err := doc.pick(s)
	if err != nil {
		return place{}, err
	}
	dist := doc.Versions[version].Dist
	integrity := strongest(dist.Integrity)
	if integrity == "" {
		return place{}, fault.New(fault.PluginIntegrity, "add", s.Text, "the registry gives no sha512 digest for %s %s, so its archive cannot be checked", name, version).
			WithHint("ask its author to publish it anew")
	}
	return place{
		resolved: dist.Tarball, version: version, key: s.Name, client: client, integrity: integrity, digest: integrity, said: "the registry",
		request: download.Request{URL: dist.Tarball, Credential: config.Authorization},
	}, nil
}

// npmConfig reads npm's configuration and makes the client that it asks for.
func (h *Host) npmConfig() (npm.Config, *download.Client, error) {
	config, err := npm.Load(npm.Where{Environ: h.Environ, Home: h.Places.Home, Project: h.ProjectNPM})
	if err != nil {
		return config, nil, fault.Wrap(err, fault.PluginIO, "add", "", "cannot read npm's configuration: %s", err)
	}
	client := &download.Client{Roots: h.Roots, Insecure: config.Get("strict-ssl") == "false"}
	if file := config.Get("cafile"); file != "" && file != "null" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return config, nil, fault.Wrap(err, fault.PluginIO, "add", file, "cannot read npm's cafile: %s", err)
		}
		if client.Roots == nil {
			client.Roots, _ = x509.SystemCertPool()
		} else {
			client.Roots = client.Roots.Clone()
		}
		if client.Roots == nil {
			client.Roots = x509.NewCertPool()
		}
		client.Roots.AppendCertsFromPEM(pem)
	}
	client.Proxy = func(u *url.URL) (*url.URL, error) {
		if proxy, ok, err := config.Proxy(u); ok || err != nil {
			return proxy, err
		}
		return http.ProxyFromEnvironment(&http.Request{URL: u})
	}
	return config, client, nil
}

// registryOf gives the registry of a package: the configured one, else npm's
// own default, which npm itself is asked for.
func (h *Host) registryOf(ctx context.Context, config npm.Config, name string) (string, error) {
	if r := config.Registry(name); r != "" {
		return r, nil
	}
	none := func(reason string) error {
		return fault.New(fault.PluginFetchFailed, "add", "npm:"+name, "no registry is configured, and npm's default is not known: %s", reason).
			WithHint("set registry in .npmrc, npm_config_registry, or plugins.registry in the profile")
	}
	path, err := h.find(ctx, Need{Program: "npm"})
	if err != nil {
		return "", none("npm is not on PATH")
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "config", "get", "registry")
	cmd.Env, cmd.Dir, cmd.WaitDelay = h.Environ, "/", time.Second
	out, err := cmd.Output()
	registry := strings.TrimSpace(string(out))
	if err != nil || !strings.HasPrefix(registry, "http") {
		return "", none("npm config get registry does not tell")
	}
	return registry, nil
}

func fetchPackument(ctx context.Context, client *download.Client, config npm.Config, registry, name string) (*packument, error) {
	var body bytes.Buffer
	err := client.Get(ctx, download.Request{
		URL:    strings.TrimSuffix(registry, "/") + "/" + strings.Replace(name, "/", "%2f", 1),
		Accept: "application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8", Credential: config.Authorization, Max: maxPackument,
	}, &body)
	if err != nil {
		return nil, err
	}
	doc := &packument{}
	if err := json.Unmarshal(body.Bytes(), doc); err != nil {
		return nil, fault.Wrap(err, fault.PluginFetchFailed, "add", "npm:"+name, "the registry's answer about %s cannot be understood: %s", name, err)
	}
	return doc, nil
}

// strongest gives the sha512 digest of an integrity text, "" = it has none.
func strongest(text string) string {
	for _, word := range strings.Fields(text) {
		word, _, _ = strings.Cut(word, "?")
		if isIntegrity(word) {
			return word
		}
	}
	return ""
}

// pick chooses a version as npm does: the exact one, that of the tag, that of
// latest where the range holds it, else the highest of the range, not deprecated
// if there is one.
func (p *packument) pick(s Source) (string, error) {
	spec := s.Spec
	if spec == "" {
		spec = "latest"
	}
	if v := p.Tags[spec]; v != "" && p.has(v) {
		return v, nil
	}
	exact := strings.TrimPrefix(strings.TrimPrefix(spec, "="), "v")
	if isVersion(exact) && p.has(exact) {
		return exact, nil
	}
	r, err := ParseRange(spec)
	if err == nil && !isVersion(exact) {
		if latest := p.Tags["latest"]; p.has(latest) && r.Holds(latest) {
			return latest, nil
		}
		if v := p.highest(r); v != "" {
			return v, nil
		}
	}
	return "", fault.New(fault.PluginNotFound, "add", s.Text, "%s has no version %s; the newest are %s", s.Name, spec, p.newest(5)).
		WithHint("its tags are %s", strings.Join(sortedKeys(p.Tags), ", "))
}

func (p *packument) has(version string) bool { _, ok := p.Versions[version]; return ok }

func (p *packument) highest(r Range) string {
	best := ""
	for _, v := range p.sorted() {
		if d := p.Versions[v].Deprecated; r.Holds(v) && (best == "" || d == nil || d == false || d == "") {
			best = v
		}
	}
	return best
}

// sorted gives the versions, lowest first.
func (p *packument) sorted() []string {
	out := sortedKeys(p.Versions)
	slices.SortFunc(out, func(a, b string) int { return semver.Compare("v"+a, "v"+b) })
	return out
}

func (p *packument) newest(n int) string {
	all := p.sorted()
	slices.Reverse(all)
	return strings.Join(all[:min(n, len(all))], ", ")
}

// newer reports whether version a is above b.
func newer(a, b string) bool {
	return semver.Compare("v"+strings.TrimPrefix(a, "v"), "v"+strings.TrimPrefix(b, "v")) > 0
}
