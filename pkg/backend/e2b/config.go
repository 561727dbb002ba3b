package e2b

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/fault"
)

// config is a row with the service's own variables and defaults applied.
type config struct {
	key        string
	domain     string
	apiURL     string
	sandboxURL string // "" = derived from the sandbox's domain
	debug      bool
	timeout    time.Duration // of a request

	cwd  string
	user string

	sandbox    string
	create     bool
	perCommand bool
	template   string
	life       time.Duration
	env        map[string]string
	metadata   map[string]string
	pause      bool // at the end of life
	poll       time.Duration
}

// debugSandbox is the id that the service's debug mode uses.
const debugSandbox = "debug_sandbox_id"

// newConfig reads a request. The key is resolved and checked; nothing is sent.
func newConfig(ctx context.Context, req backend.OpenRequest) (config, error) {
	text := func(key string) string { s, _ := req.Config[key].(string); return s }
	ms := func(key string, def int64) time.Duration {
		if n, ok := req.Config[key].(int64); ok {
			def = n
		}
		return time.Duration(def) * time.Millisecond
	}
	flag := func(key string) bool { b, _ := req.Config[key].(bool); return b }
	env := environ(req.Environ)
	c := config{
		domain: first(text("domain"), env["E2B_DOMAIN"], "e2b.app"),
		debug:  strings.EqualFold(env["E2B_DEBUG"], "true"),
		user:   text("user"), timeout: ms("requestTimeoutMs", 60000), poll: ms("pollMs", 50),
		sandbox: text("sandbox"), create: flag("create"), perCommand: flag("perCommand"),
		template: first(text("template"), "base"), life: ms("timeoutMs", defaultLifeMs),
		env: textMap(req.Config["env"]), metadata: textMap(req.Config["metadata"]), pause: text("onTimeout") == "pause",
	}
	c.sandbox, _, _ = strings.Cut(c.sandbox, "-") // older ids carry a client part
	c.apiURL = strings.TrimSuffix(first(text("apiUrl"), env["E2B_API_URL"], debugURL(c.debug, "3000"), "https://api."+c.domain), "/")
	c.sandboxURL = strings.TrimSuffix(first(text("sandboxUrl"), env["E2B_SANDBOX_URL"], debugURL(c.debug, "49983")), "/")
	c.cwd = workingDirectory(first(text("cwd"), defaultCwd), req.Cwd)
	var err error
	c.key, err = apiKey(ctx, req, env, c.debug)
	return c, err
}

func debugURL(debug bool, port string) string {
	if !debug {
		return ""
	}
	return "http://localhost:" + port
}

// workingDirectory joins the directory that was asked for to the default one.
func workingDirectory(def, asked string) string {
	if path.IsAbs(asked) {
		return path.Clean(asked)
	}
	return path.Join(def, asked)
}

func first(words ...string) string {
	for _, w := range words {
		if w != "" {
			return w
		}
	}
	return ""
}

func environ(list []string) map[string]string {
	env := make(map[string]string, len(list))
	for _, e := range list {
		if k, v, ok := strings.Cut(e, "="); ok {
			env[k] = v
		}
	}
	return env
}

func textMap(v any) map[string]string {
	m, _ := v.(map[string]any)
	out := make(map[string]string, len(m))
	for k, v := range m {
		if s, ok := v.(string); ok {
			out[k] = s
		}
	}
	return out
}

// apiKey gives the key: from the row or its variable, else from the login file
// of the service's own command line, which is only read.
func apiKey(ctx context.Context, req backend.OpenRequest, env map[string]string, debug bool) (string, error) {
	key, err := req.Secret(ctx, "apiKey")
	if err != nil {
		return "", err
	}
	if key == "" {
		key = loginKey(env["HOME"])
	}
	switch {
	case debug:
		return key, nil
	case key == "":
		e := fault.New(fault.ProfileSecretMissing, "", "", "no API key for e2b: E2B_API_KEY is not set")
		e.Backend = name
		return "", e.WithHint("set E2B_API_KEY, or apiKey in the profile's row to where the key is")
	case !strings.EqualFold(env["E2B_VALIDATE_API_KEY"], "false") && !wellFormed(key):
		e := fault.New(fault.ProfileInvalid, "", "", "the API key for e2b is malformed: it must be e2b_ and lower-case hexadecimal digits")
		e.Backend = name
		return "", e.WithHint("check E2B_API_KEY; E2B_VALIDATE_API_KEY=false turns this check off for servers with other keys")
	}
	return key, nil
}

func wellFormed(key string) bool {
	hex, ok := strings.CutPrefix(key, "e2b_")
	return ok && hex != "" && strings.Trim(hex, "0123456789abcdef") == ""
}

// loginKey reads the key that the service's command line has stored, "" if
// there is none.
func loginKey(home string) string {
	if home == "" {
		return ""
	}
	raw, err := os.ReadFile(filepath.Join(home, ".e2b", "config.json"))
	if err != nil {
		return ""
	}
	var login struct {
		ProjectAPIKey string `json:"projectApiKey"`
		TeamAPIKey    string `json:"teamApiKey"`
	}
	if json.Unmarshal(raw, &login) != nil {
		return ""
	}
	return first(login.ProjectAPIKey, login.TeamAPIKey)
}

// account tells accounts and services apart without holding the key.
func (c config) account() string { return digest(c.apiURL, c.key)[:16] }

// row names what a created sandbox is made from: rows that differ in it do not
// share one.
func (c config) row() string {
	parts := []string{"row", c.account(), c.template, c.user}
	for _, m := range []map[string]string{c.env, c.metadata} {
		keys := make([]string, 0, len(m))
		for k := range maps.Keys(m) {
			keys = append(keys, k+"="+m[k])
		}
		parts = append(parts, digest(sorted(keys)...))
	}
	return digest(parts...)[:32]
}

func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(p))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil))
}
