package profile

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/afield-dev/afield/pkg/fault"
)

// switches are the variables that are 1 or 0.
type switches struct {
	noPlugins, noProject, trustProject, offline bool
}

// readSwitches reads the variables that are switches; anything but 1, 0 and
// nothing is a usage error.
func readSwitches(e environ, ps *problems) switches {
	is := func(name string) bool {
		switch e.get(name) {
		case "1":
			return true
		case "", "0":
		default:
			ps.add(fault.Usage, Origin{Layer: LayerEnv, Source: name}, "", "%s must be 1 or 0", name)
		}
		return false
	}
	return switches{
		noPlugins:    is("AFIELD_NO_PLUGINS"),
		noProject:    is("AFIELD_NO_PROJECT"),
		trustProject: is("AFIELD_TRUST_PROJECT"),
		offline:      is("AFIELD_OFFLINE"),
	}
}

// knownVariables are the names of plugins.md 13 and 16.
func knownVariables() []string {
	return []string{
		"AFIELD_PROFILE", "AFIELD_PROFILE_FILE", "AFIELD_BACKEND", "AFIELD_CWD", "AFIELD_SET",
		"AFIELD_NO_PLUGINS", "AFIELD_NO_PROJECT", "AFIELD_TRUST_PROJECT", "AFIELD_OFFLINE", "AFIELD_KEEP",
		"AFIELD_CONFIG_DIR", "AFIELD_SYSTEM_DIR", "AFIELD_DATA_DIR", "AFIELD_STATE_DIR", "AFIELD_CACHE_DIR",
		"AFIELD_SESSION", "AFIELD_CONTEXT_USED", "AFIELD_CONTEXT_WINDOW",
		"AFIELD_PROVIDER", "AFIELD_DEPTH", "AFIELD_NONCE", "AFIELD_TEST_REQUIRE",
	}
}

// unknownVariables gives the AFIELD_… names of the environment that mean
// nothing: most are slips. One without a value counts as not set.
func unknownVariables(e environ) []string {
	var unknown []string
	for _, entry := range e {
		name, set, _ := strings.Cut(entry, "=")
		if set != "" && strings.HasPrefix(name, "AFIELD_") && !slices.Contains(knownVariables(), name) && !slices.Contains(unknown, name) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown
}

// UnknownVariableHint gives the variable that an unknown name was probably
// meant to be, or "".
func UnknownVariableHint(name string) string {
	var words []string
	for _, known := range knownVariables() {
		words = append(words, strings.TrimPrefix(known, "AFIELD_"))
	}
	if near := nearest(strings.TrimPrefix(name, "AFIELD_"), words); near != "" {
		return "AFIELD_" + near
	}
	return ""
}

// applyEnviron applies layer 5.
func (c *composer) applyEnviron(e environ) {
	if text := e.get("AFIELD_BACKEND"); text != "" {
		c.applyVariable("AFIELD_BACKEND", "backend", text)
	}
	if text := e.get("AFIELD_CWD"); text != "" {
		c.cwd = append(c.cwd, newValue(text, Origin{Layer: LayerEnv, Source: "AFIELD_CWD"}))
	}
	if text := e.get("AFIELD_KEEP"); text != "" {
		c.applyVariable("AFIELD_KEEP", "keep", text)
	}
	for i, line := range strings.Split(e.get("AFIELD_SET"), "\n") {
		if strings.TrimSpace(line) != "" {
			c.setOverride(Override{Text: strings.TrimSpace(line)}, Origin{Layer: LayerEnv, Source: "AFIELD_SET", Line: i + 1})
		}
	}
}

func (c *composer) applyVariable(name, key, text string) {
	at := Origin{Layer: LayerEnv, Source: name}
	c.apply(nest([]string{key}, newValue(text, at), at))
}

// profileFiles gives the files of AFIELD_PROFILE_FILE, which stand in for
// --profile-file where it is not given.
func profileFiles(e environ) []string {
	return slices.DeleteFunc(filepath.SplitList(e.get("AFIELD_PROFILE_FILE")), func(s string) bool { return s == "" })
}
