package box

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/backend/box/wire"
	"github.com/afield-dev/afield/pkg/fault"
)

// config is a row, read.
type config struct {
	row        map[string]any
	cwd        string
	sandbox    string
	create     bool
	perCommand bool
	reuse      bool
	fields     wire.CreateFields
	account    string // a digest that tells accounts apart
}

// newConfig reads the row of req. Nothing is sent.
func newConfig(req backend.OpenRequest) *config {
	row := req.Config
	text := func(key string) string { s, _ := row[key].(string); return s }
	c := &config{row: row, cwd: workingDirectory(text("cwd"), req.Cwd), sandbox: text("sandbox")}
	c.create, c.perCommand, c.reuse = given(row, "create"), given(row, "perCommand"), given(row, "reuse")
	f := wire.CreateFields{SnapshotID: text("snapshot"), Name: text("name"), Size: text("size"), Runtime: text("runtime"),
		Env: textMap(row["env"]), Labels: textList(row["labels"]), Network: network(row["networkPolicy"]),
		KeepAlive: given(row, "keepAlive"), Ephemeral: given(row, "ephemeral")}
	if f.Ephemeral {
		f.TTL, _ = row["ttl"].(int64)
	}
	c.fields = f
	return c
}

// workingDirectory joins the directory that a command asks for to the row's.
func workingDirectory(row, asked string) string {
	if row == "" {
		row = defaultCwd
	}
	if path.IsAbs(asked) {
		return path.Clean(asked)
	}
	return path.Join(row, asked)
}

func textList(v any) []string {
	var list []string
	members, _ := v.([]any)
	for _, one := range members {
		if s, ok := one.(string); ok {
			list = append(list, s)
		}
	}
	return list
}

func textMap(v any) map[string]string {
	m, _ := v.(map[string]any)
	if len(m) == 0 {
		return nil
	}
	out := map[string]string{}
	for k, one := range m {
		if s, ok := one.(string); ok {
			out[k] = s
		}
	}
	return out
}

func network(v any) *wire.NetworkPolicy {
	m, _ := v.(map[string]any)
	mode, _ := m["mode"].(string)
	if mode == "" {
		return nil
	}
	return &wire.NetworkPolicy{Mode: mode, AllowedDomains: textList(m["allowedDomains"]),
		AllowedCIDRs: textList(m["allowedCidrs"]), DeniedCIDRs: textList(m["deniedCidrs"])}
}

// newClient makes the connection to the account of a row. Nothing is sent.
func newClient(ctx context.Context, c *config, req backend.OpenRequest) (*wire.Client, error) {
	key, err := req.Secret(ctx, "apiKey")
	if err != nil {
		return nil, err
	}
	if key == "" {
		return nil, world(nil, fault.ProfileSecretMissing, "no API key for box: UPSTASH_BOX_API_KEY is not set").
			WithHint("set UPSTASH_BOX_API_KEY, or apiKey in the profile's row to a reference")
	}
	if !validKey(key) {
		return nil, world(nil, fault.ProfileInvalid, "the API key for box holds characters that no key has")
	}
	base, _ := c.row["baseUrl"].(string)
	if base == "" {
		base = variable(req.Environ, "UPSTASH_BOX_BASE_URL")
	}
	limit, _ := c.row["requestTimeoutMs"].(int64)
	cfg := wire.Config{BaseURL: base, Key: key, UserAgent: "afield", AllowInsecure: given(c.row, "allowInsecure"),
		RequestTimeout: time.Duration(limit) * time.Millisecond}
	if req.Trace != nil {
		cfg.Trace = func(step string, n int64) { req.Trace(step, 1, n) }
	}
	client, err := wire.New(cfg)
	if err != nil {
		return nil, world(err, fault.ProfileInvalid, "box: %s", err).WithHint("set baseUrl in the profile's row, or allowInsecure")
	}
	sum := sha256.Sum256([]byte(client.Origin() + "\x00" + key))
	c.account = hex.EncodeToString(sum[:8])
	return client, nil
}

// validKey holds that a key can stand in a header.
func validKey(key string) bool {
	for i := range len(key) {
		if key[i] <= ' ' || key[i] >= 0x7f {
			return false
		}
	}
	return true
}

func variable(environ []string, key string) string {
	for i := len(environ) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(environ[i], key+"="); ok {
			return v
		}
	}
	return ""
}

// rowKey names the shared box of a row: rows that would make the same box of
// the same account share it, whatever directory they work in.
func (c *config) rowKey() string {
	f := c.fields
	text := fmt.Sprintf("%s|%q|%v|%v", c.account, []string{f.SnapshotID, f.Name, f.Size, f.Runtime}, f.KeepAlive, f.Ephemeral)
	text += fmt.Sprintf("|%d|%q|%v|%v", f.TTL, f.Labels, f.Env, f.Network)
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// isGone reports whether an answer says that a box does not exist: by its
// status alone (R62).
func isGone(err error) bool { return wire.StatusOf(err) == http.StatusNotFound }
