package local

import (
	"maps"
	"slices"
	"strings"

	"github.com/afield-dev/afield/pkg/remoteexec"
)

// ProcessOptions are what the local processes need to know.
type ProcessOptions struct {
	// Environ is the caller's environment, the base of every child's (EN-1).
	Environ []string
	// Dir is the absolute directory against which a lookup resolves relative
	// elements of PATH (LK-7).
	Dir string
}

// Processes gives this machine's processes. The caller ends them with Shutdown.
func Processes(o ProcessOptions) remoteexec.Runtime {
	return remoteexec.New(ProcessDriver(o), remoteexec.Options{})
}

// ProcessDriver gives the driver alone, for a contract that is built elsewhere.
func ProcessDriver(o ProcessOptions) remoteexec.Driver {
	return &execDriver{base: baseEnv(o.Environ), dir: o.Dir}
}

// baseEnv is the caller's environment without what looks like a credential and
// without the variables of afield and its kin (EN-1). It judges names only.
func baseEnv(environ []string) map[string]string {
	base := make(map[string]string, len(environ))
	for _, entry := range environ {
		if name, value, ok := strings.Cut(entry, "="); ok && name != "" && !scrubbed(name) {
			base[name] = value
		}
	}
	return base
}

// scrubbed says that an ambient name does not reach a child.
func scrubbed(name string) bool {
	upper := strings.ToUpper(name)
	for _, word := range []string{"KEY", "PASSWORD", "SECRET", "TOKEN"} {
		if strings.Contains(upper, word) {
			return true
		}
	}
	return strings.HasPrefix(upper, "DSH_") || strings.HasPrefix(upper, "AFIELD_")
}

// effectiveEnv is the base with explicit entries, which win (EN-3), and without
// the removed names (EN-4).
func effectiveEnv(base map[string]string, set map[string]string, remove []string) map[string]string {
	env := maps.Clone(base)
	maps.Copy(env, set)
	for _, name := range remove {
		delete(env, name)
	}
	return env
}

// environ gives an environment as a child takes it, in a fixed order.
func environ(env map[string]string) []string {
	out := make([]string, 0, len(env))
	for name, value := range env {
		out = append(out, name+"="+value)
	}
	slices.Sort(out)
	return out
}
