// Package box is the world of an Upstash Box: processes through exec sessions,
// small operations on files through short commands in the box, large content
// through the service's file API, and the life of the box.
//
// What is particular about it: a death by signal shows as its code (143 for
// TERM) and never as a signal; output cannot be paused; a program's tree ends
// when its connection does; argv and environment are JSON and so must be UTF-8;
// the names of Facts.ReservedEnv cannot be set; argv of short commands is kept
// by the service, so content and secrets never stand in it.
package box

import (
	"context"
	"path"
	"strings"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/backend/box/wire"
)

// name is what a profile calls this backend.
const name = "box"

// Bounds and defaults of a row.
const (
	maxDelayMs  = 2147483647
	maxTTL      = 259200 // seconds
	defaultTTL  = 3600
	defaultCwd  = "/workspace/home"
	maxLabels   = 3 // of the five that a box may have, two are ours
	labelLength = 20
)

// Provider makes worlds in Upstash boxes.
func Provider() backend.Provider {
	return backend.Provider{
		Name:     name,
		Services: []backend.Service{backend.ServiceFS, backend.ServiceExec},
		Config:   schema(),
		Check:    checkRow,
		Open: func(ctx context.Context, req backend.OpenRequest) (backend.World, error) {
			return Open(ctx, req)
		},
		Keep: func(req backend.OpenRequest) backend.Keep {
			return backend.Keep{Refused: given(req.Config, "perCommand"), Apart: req.Variables("UPSTASH_BOX_BASE_URL", "HTTPS_PROXY", "https_proxy")}
		},
		Sandboxes: func(ctx context.Context, req backend.OpenRequest) (backend.Sandboxes, error) {
			return openSandboxes(ctx, req)
		},
	}
}

func schema() backend.Schema {
	return backend.Schema{
		{Key: "apiKey", Kind: backend.KindText, Secret: true, Default: "${UPSTASH_BOX_API_KEY}", Doc: "key of the account"},
		{Key: "baseUrl", Kind: backend.KindText, Check: checkURL, Doc: "URL of the service (default: UPSTASH_BOX_BASE_URL, else the public one)"},
		{Key: "allowInsecure", Kind: backend.KindBool, Default: false, Doc: "permit an http URL to another machine"},
		{Key: "requestTimeoutMs", Kind: backend.KindInt, Default: int64(600000), Min: 1, Max: maxDelayMs, Doc: "how long a request may take, in milliseconds"},
		{Key: "cwd", Kind: backend.KindText, Default: defaultCwd, Check: checkAbsolute, Doc: "working directory in the box, absolute"},
		{Key: "sandbox", Kind: backend.KindText, Check: checkID, Doc: "id or name of the box to use; it is never deleted by afield"},
		{Key: "create", Kind: backend.KindBool, Default: false, Doc: "make a box at first use and share it between commands"},
		{Key: "perCommand", Kind: backend.KindBool, Default: false, Doc: "make a box for each command and delete it at its end"},
		{Key: "name", Kind: backend.KindText, Check: checkID, Doc: "name of a box that is made, unique in the account"},
		{Key: "reuse", Kind: backend.KindBool, Default: false, Doc: "use a live box of that name instead of failing"},
		{Key: "runtime", Kind: backend.KindText, Default: "node", Enum: runtimes(), Doc: "what a box that is made has installed"},
		{Key: "size", Kind: backend.KindText, Default: "small", Enum: []string{"small", "medium", "large"}, Doc: "size of a box that is made"},
		{Key: "snapshot", Kind: backend.KindText, Check: checkID, Doc: "snapshot that a box is made from"},
		{Key: "ttl", Kind: backend.KindInt, Default: int64(defaultTTL), Min: 1, Max: maxTTL, Doc: "life of a short-lived box, in seconds"},
		{Key: "ephemeral", Kind: backend.KindBool, Default: true, Doc: "make a short-lived box; false: one that lasts and pauses when idle"},
		{Key: "keepAlive", Kind: backend.KindBool, Default: false, Doc: "with ephemeral false: never pause the box"},
		{Key: "env", Kind: backend.KindMap, Check: checkEnv, Doc: "environment of a box that is made; the service can read it"},
		{Key: "labels", Kind: backend.KindList, Check: checkLabels, Doc: "labels of a box that is made, beside afield's own"},
		{Key: "networkPolicy", Kind: backend.KindMap, Doc: "what a box that is made may reach", Fields: backend.Schema{
			{Key: "mode", Kind: backend.KindText, Required: true, Enum: []string{"allow-all", "deny-all", "custom"}, Doc: "the lists belong to custom"},
			{Key: "allowedDomains", Kind: backend.KindList, Doc: "names of hosts"},
			{Key: "allowedCidrs", Kind: backend.KindList, Doc: "ranges of addresses"},
			{Key: "deniedCidrs", Kind: backend.KindList, Doc: "ranges of addresses"},
		}},
	}
}

// runtimes are the images of the service.
func runtimes() []string {
	var all []string
	for _, r := range []string{"node", "python", "golang", "ruby", "rust"} {
		all = append(all, r, r+"-alpine")
	}
	return all
}

func checkAbsolute(v any) string {
	if s, _ := v.(string); !path.IsAbs(s) {
		return "must be an absolute path in the box"
	}
	return ""
}

func checkURL(v any) string {
	s, _ := v.(string)
	if !strings.HasPrefix(s, "https://") && !strings.HasPrefix(s, "http://") {
		return "must be an http or https URL"
	}
	return ""
}

func checkID(v any) string {
	if s, _ := v.(string); !wire.ValidID(s) {
		return "may hold letters, digits, dots, underscores and hyphens"
	}
	return ""
}

func checkLabels(v any) string {
	list, _ := v.([]any)
	if len(list) > maxLabels {
		return "may have at most 3 members"
	}
	for _, one := range list {
		if s, _ := one.(string); !validLabel(s) {
			return "may hold 1 to 20 letters, digits, dots, underscores, colons and hyphens each"
		}
	}
	return ""
}

func validLabel(s string) bool {
	return len(s) <= labelLength && wire.ValidID(strings.ReplaceAll(s, ":", "_"))
}

// checkEnv refuses what the service would refuse.
func checkEnv(v any) string {
	env, _ := v.(map[string]any)
	for _, reserved := range reservedEnv() {
		if _, ok := env[reserved]; ok {
			return "must not set " + reserved + ", which the service reserves"
		}
	}
	return ""
}

// reservedEnv are the names that the service drops (EN-11).
func reservedEnv() []string {
	return []string{"PATH", "HOME", "LD_PRELOAD", "LD_LIBRARY_PATH", "NODE_OPTIONS"}
}

// checkRow holds what several keys together must.
func checkRow(c map[string]any) (key, problem string) {
	forms := 0
	for _, k := range []string{"perCommand", "create", "sandbox"} {
		if given(c, k) {
			forms++
		}
		if forms > 1 {
			return k, "excludes the other two of sandbox, create and perCommand"
		}
	}
	switch {
	case given(c, "reuse") && !given(c, "name"):
		return "reuse", "needs a name"
	case given(c, "reuse") && given(c, "perCommand"):
		return "reuse", "excludes perCommand, which deletes the box"
	case given(c, "keepAlive") && given(c, "ephemeral"):
		return "keepAlive", "needs ephemeral: false"
	}
	return "", ""
}

// given reports whether a key is set to something that counts.
func given(c map[string]any, key string) bool {
	switch v := c[key].(type) {
	case string:
		return v != ""
	case bool:
		return v
	}
	return false
}
