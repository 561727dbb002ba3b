// Package npm reads what the user has told npm about registries, as npm reads
// it: npm_config_* variables, then the user's .npmrc, then the global one
// (plugins.md 23). It runs nothing and uses no network.
package npm

import (
	"encoding/base64"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Config is npm's configuration. The zero value is an empty one.
type Config struct {
	layers []map[string]string // highest first
}

// Where says where the configuration is looked for.
type Where struct {
	Environ []string
	Home    string
	// Project is the .npmrc of a trusted project, "" = none.
	Project string
}

// maxFile bounds a configuration file, in bytes.
const maxFile = 1 << 20

// Load reads the layers. Files that are not there do not count.
func Load(w Where) (Config, error) {
	env := fromEnviron(w.Environ)
	c := Config{layers: []map[string]string{env}}
	user := env["userconfig"]
	if user == "" && w.Home != "" {
		user = filepath.Join(w.Home, ".npmrc")
	}
	for _, path := range []func() string{func() string { return w.Project }, func() string { return user }, func() string { return c.global(w.Environ) }} {
		values, err := readFile(path(), w.Environ)
		if err != nil {
			return Config{}, err
		}
		c.layers = append(c.layers, values)
	}
	return c, nil
}

func readFile(path string, environ []string) (map[string]string, error) {
	if path == "" {
		return nil, nil
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxFile) {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("not a regular file of at most 1 MiB")}
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parse(string(content), func(name string) (string, bool) { return lookup(environ, name) }), nil
}

// fromEnviron gives the npm_config_* variables. Keys about a host keep their
// spelling; in others case does not count and _ stands for -.
func fromEnviron(environ []string) map[string]string {
	out := map[string]string{}
	for _, e := range environ {
		name, value, _ := strings.Cut(e, "=")
		if len(name) < 12 || !strings.EqualFold(name[:11], "npm_config_") || value == "" {
			continue
		}
		key := name[11:]
		if !strings.HasPrefix(key, "//") {
			key = strings.ToLower(key[:1] + strings.ReplaceAll(key[1:], "_", "-"))
		}
		out[key] = value
	}
	return out
}

func lookup(environ []string, name string) (string, bool) {
	for _, e := range slices.Backward(environ) {
		if value, ok := strings.CutPrefix(e, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// global gives the path of the global file: below npm's prefix, which is that
// of the node on PATH unless it is set.
func (c Config) global(environ []string) string {
	if path := c.Get("globalconfig"); path != "" {
		return path
	}
	prefix := c.Get("prefix")
	if prefix == "" {
		prefix, _ = lookup(environ, "PREFIX")
	}
	path, _ := lookup(environ, "PATH")
	for _, dir := range filepath.SplitList(path) {
		if prefix != "" {
			break
		}
		if node, err := filepath.EvalSymlinks(filepath.Join(dir, "node")); err == nil && filepath.IsAbs(dir) {
			prefix = filepath.Dir(filepath.Dir(node))
		}
	}
	if prefix == "" {
		return ""
	}
	return filepath.Join(prefix, "etc", "npmrc")
}

// Get gives a value, "" = not set.
func (c Config) Get(key string) string {
	for _, layer := range c.layers {
		if value, ok := layer[key]; ok {
			return value
		}
	}
	return ""
}

// Registry gives the registry of a package: that of its scope, else the one for
// all; "" = none is configured.
func (c Config) Registry(pkg string) string {
	if scope, _, ok := strings.Cut(pkg, "/"); ok {
		if r := c.Get(scope + ":registry"); r != "" {
			return r
		}
	}
	return c.Get("registry")
}

// Authorization gives the value of the header for an address: of the longest
// configured prefix of host and path that has a credential, "" = none.
func (c Config) Authorization(u *url.URL) string {
	key := "//" + u.Host + u.EscapedPath()
	for len(key) > len("//") {
		if value := c.credential(key); value != "" {
			return value
		}
		if strings.HasSuffix(key, "/") {
			key = strings.TrimSuffix(key, "/")
		} else {
			key = key[:strings.LastIndex(key, "/")+1]
		}
	}
	return ""
}

func (c Config) credential(prefix string) string {
	if token := c.Get(prefix + ":_authToken"); token != "" {
		return "Bearer " + token
	}
	if auth := c.Get(prefix + ":_auth"); auth != "" {
		return "Basic " + auth
	}
	user, password := c.Get(prefix+":username"), c.Get(prefix+":_password")
	plain, err := base64.StdEncoding.DecodeString(password)
	if user == "" || password == "" || err != nil {
		return ""
	}
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+string(plain)))
}

// Secrets gives the configured credentials, for masking.
func (c Config) Secrets() []string {
	var out []string
	for _, layer := range c.layers {
		for key, value := range layer {
			for _, name := range []string{":_authToken", ":_auth", ":_password"} {
				if strings.HasSuffix(key, name) {
					out = append(out, value)
				}
			}
		}
	}
	return out
}

// Proxy gives the proxy for an address; ok is false where npm's configuration
// says nothing of proxies.
func (c Config) Proxy(u *url.URL) (proxy *url.URL, ok bool, err error) {
	text := c.Get("proxy")
	if p := c.Get("https-proxy"); u.Scheme == "https" && p != "" {
		text = p
	}
	if text == "" || text == "null" || text == "false" {
		return nil, false, nil
	}
	for _, name := range strings.Split(c.Get("noproxy"), ",") {
		name = strings.TrimPrefix(strings.TrimSpace(name), ".")
		if name != "" && (u.Hostname() == name || strings.HasSuffix(u.Hostname(), "."+name)) {
			return nil, true, nil
		}
	}
	proxy, err = url.Parse(text)
	return proxy, true, err
}
