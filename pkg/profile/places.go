package profile

import (
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// environ looks variables up in a list of NAME=VALUE, the last one winning.
type environ []string

func (e environ) get(name string) string {
	for i := len(e) - 1; i >= 0; i-- {
		if key, value, ok := strings.Cut(e[i], "="); ok && key == name {
			return value
		}
	}
	return ""
}

// Places are the directories of plugins.md 13, absolute and clean. "" is a
// place that cannot be named, because the caller has no home directory.
type Places struct {
	Home   string
	Config string
	System string
	Data   string
	State  string
	Cache  string
	// Runtime is for sockets; whoever uses it makes it 0700 and checks its
	// owner.
	Runtime string
	// Ignored names variables that hold a relative path and do not count.
	Ignored []string
}

// NewPlaces finds the directories from the caller's environment. It makes none
// and looks at no file unless HOME is missing.
func NewPlaces(env []string) Places {
	e := environ(env)
	p := Places{Home: e.get("HOME")}
	if !filepath.IsAbs(p.Home) {
		p.Home = homeOf(syscall.Getuid())
	}
	p.Config = p.place(e, "AFIELD_CONFIG_DIR", "XDG_CONFIG_HOME", "afield", ".config/afield")
	p.System = p.place(e, "AFIELD_SYSTEM_DIR", "", "", "")
	if p.System == "" {
		p.System = "/etc/afield"
	}
	p.Data = p.place(e, "AFIELD_DATA_DIR", "XDG_DATA_HOME", "afield/plugins", ".local/share/afield/plugins")
	p.State = p.place(e, "AFIELD_STATE_DIR", "XDG_STATE_HOME", "afield", ".local/state/afield")
	p.Cache = p.place(e, "AFIELD_CACHE_DIR", "XDG_CACHE_HOME", "afield", ".cache/afield")
	p.Runtime = p.place(e, "", "XDG_RUNTIME_DIR", "afield", "")
	if p.Runtime == "" && p.State != "" {
		p.Runtime = filepath.Join(p.State, "run")
	}
	return p
}

// place gives the directory of the own variable, else the one below the XDG
// variable, else the one below the home directory.
func (p *Places) place(e environ, own, xdg, below, standard string) string {
	if dir := p.absolute(e, own); dir != "" {
		return dir
	}
	if dir := p.absolute(e, xdg); dir != "" {
		return filepath.Join(dir, below)
	}
	if standard == "" || p.Home == "" {
		return ""
	}
	return filepath.Join(p.Home, standard)
}

func (p *Places) absolute(e environ, name string) string {
	if name == "" {
		return ""
	}
	dir := e.get(name)
	if dir != "" && !filepath.IsAbs(dir) {
		p.Ignored = append(p.Ignored, name)
		return ""
	}
	if dir == "" {
		return ""
	}
	return filepath.Clean(dir)
}

func homeOf(uid int) string {
	u, err := user.LookupId(strconv.Itoa(uid))
	if err != nil || !filepath.IsAbs(u.HomeDir) {
		return ""
	}
	return filepath.Clean(u.HomeDir)
}

// Shorten writes a path below the home directory with ~.
func (p Places) Shorten(path string) string {
	if p.Home == "" || p.Home == "/" {
		return path
	}
	if rest, ok := strings.CutPrefix(path, p.Home+"/"); ok {
		return "~/" + rest
	}
	return path
}
