// Package e2b is the world of an E2B sandbox: files through the sandbox's file
// service, processes through its daemon, and the life of the sandbox through
// the control plane.
//
// What is particular about it: the file service acts with the rights of root,
// staging happens in a private folder of the sandbox, replacing a file gives it
// to the sandbox's user, argument vectors are visible to the platform, and
// environment values are not (they travel in a private file: mode 0644, as the
// file service makes it, in a folder of mode 0700). What was written is as lasting
// as the sandbox itself: the file service has no way to flush a file to disk, and
// a sandbox that ends takes its disk with it.
package e2b

import (
	"context"
	"path"
	"strings"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/fault"
)

// name is what a profile calls this backend.
const name = "e2b"

// Bounds of a sandbox's life and of a request, in milliseconds.
const (
	minLifeMs     = 1000
	maxDelayMs    = 2147483647
	defaultLifeMs = 300000
)

// Provider makes worlds in E2B sandboxes.
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
			one, _ := req.Config["perCommand"].(bool)
			return backend.Keep{Refused: one, Apart: req.Variables("HOME", "E2B_DOMAIN", "E2B_API_URL", "E2B_SANDBOX_URL", "E2B_DEBUG", "HTTPS_PROXY", "https_proxy")}
		},
		Sandboxes: func(ctx context.Context, req backend.OpenRequest) (backend.Sandboxes, error) {
			return newSandboxes(ctx, req)
		},
	}
}

func schema() backend.Schema {
	return backend.Schema{
		{Key: "apiKey", Kind: backend.KindText, Secret: true, Default: "${E2B_API_KEY}", Doc: "key of the account"},
		{Key: "domain", Kind: backend.KindText, Doc: "base domain of the service (default: E2B_DOMAIN, else e2b.app)"},
		{Key: "apiUrl", Kind: backend.KindText, Check: checkURL, Doc: "URL of the control plane (default: E2B_API_URL, else from the domain)"},
		{Key: "sandboxUrl", Kind: backend.KindText, Check: checkURL, Doc: "URL of the sandboxes (default: E2B_SANDBOX_URL, else from the domain)"},
		{Key: "requestTimeoutMs", Kind: backend.KindInt, Default: int64(60000), Min: 1, Max: maxDelayMs, Doc: "how long a request may wait for its answer, in milliseconds"},
		{Key: "cwd", Kind: backend.KindText, Default: defaultCwd, Check: checkAbsolute, Doc: "working directory in the sandbox, absolute"},
		{Key: "user", Kind: backend.KindText, Doc: "user of processes and owner of new files (default: the sandbox's)"},
		{Key: "sandbox", Kind: backend.KindText, Check: checkID, Doc: "id of the sandbox to use; it is never deleted by afield"},
		{Key: "create", Kind: backend.KindBool, Default: false, Doc: "make a sandbox at first use and share it between commands"},
		{Key: "perCommand", Kind: backend.KindBool, Default: false, Doc: "make a sandbox for each command and delete it at its end"},
		{Key: "template", Kind: backend.KindText, Default: "base", Doc: "template of a sandbox that is made"},
		{Key: "timeoutMs", Kind: backend.KindInt, Default: int64(defaultLifeMs), Min: minLifeMs, Max: maxDelayMs, Doc: "life of a sandbox that is made, in milliseconds"},
		{Key: "env", Kind: backend.KindMap, Doc: "environment of a sandbox that is made; the platform can read it"},
		{Key: "metadata", Kind: backend.KindMap, Doc: "labels of a sandbox that is made"},
		{Key: "onTimeout", Kind: backend.KindText, Default: "kill", Enum: []string{"kill", "pause"}, Doc: "what happens at the end of its life"},
		{Key: "pollMs", Kind: backend.KindInt, Default: int64(50), Min: 1, Max: maxDelayMs, Doc: "cadence of looks at a process tree, in milliseconds"},
	}
}

// defaultCwd is the working directory of the stock templates.
const defaultCwd = "/home/user/workspace"

func checkAbsolute(v any) string {
	if s, _ := v.(string); !path.IsAbs(s) {
		return "must be an absolute path"
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
	s, _ := v.(string)
	id, _, _ := strings.Cut(s, "-")
	if id == "" || strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		return "must be a sandbox id: lower-case letters and digits"
	}
	return ""
}

// checkRow holds that a row names at most one sandbox form.
func checkRow(c map[string]any) (key, problem string) {
	forms := 0
	for _, k := range []string{"perCommand", "create", "sandbox"} {
		if s, ok := c[k].(string); ok && s != "" {
			forms++
		} else if b, ok := c[k].(bool); ok && b {
			forms++
		}
		if forms > 1 {
			return k, "excludes the other two of sandbox, create and perCommand"
		}
	}
	return "", ""
}

// needsForm is the error of a row that names no sandbox.
func needsForm() error {
	e := fault.New(fault.ProfileInvalid, "", "", "the profile names no e2b sandbox to use")
	e.Backend = name
	return e.WithHint("set sandbox: ID, create: true or perCommand: true in its row; `afield sandbox create` prints an id")
}
