package cmd

import (
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/plugin"
	"github.com/afield-dev/afield/pkg/profile"
)

func newPlugin(a *app) *cobra.Command {
	return newGroup("plugin", "Install, list and check plugins",
		newPluginAdd(a), newPluginList(a), newPluginInfo(a), newPluginRemove(a), newPluginUpdate(a), newPluginSync(a), newPluginVerify(a),
		newPluginEnable(a), newPluginDisable(a), newPluginRollback(a), newPluginGC(a))
}

// pluginHost gives what installs and finds plugins for this user. It touches no
// file.
func (a *app) pluginHost(dir string) *plugin.Host {
	return &plugin.Host{
		Places: profile.NewPlaces(a.Environ), Environ: a.Environ, Dir: dir, Version: strings.TrimPrefix(version, "v"),
		Platform: runtime.GOOS + "/" + runtime.GOARCH, Providers: a.registry(), Log: a.logger(), Progress: a.downloads,
	}
}

// pluginProfile is a profile whose plugins a command is about.
type pluginProfile struct {
	host *plugin.Host
	name string
	req  profile.Request
}

// pluginsOf gives the profile of this invocation for a plugin command. It need
// not be valid, but there.
func (a *app) pluginsOf() (pluginProfile, error) {
	req, err := a.request()
	if err != nil {
		return pluginProfile{}, err
	}
	c, err := a.compose()
	if err != nil {
		return pluginProfile{}, err
	}
	for _, p := range c.Problems {
		if p.Code == fault.ProfileNotFound {
			return pluginProfile{}, c.Err()
		}
	}
	if !profile.ValidName(c.Name) {
		return pluginProfile{}, c.Err()
	}
	req.Name, req.Named, req.Alone, req.NoPlugins = c.Name, true, true, false
	h := a.pluginHost(req.Dir)
	h.Offline, h.ProjectNPM = c.Offline, projectNPM(c)
	return pluginProfile{h, c.Name, req}, nil
}

// projectNPM gives the .npmrc beside a trusted project file: one of a project
// that is not trusted could send packages and credentials elsewhere.
func projectNPM(c *profile.Composition) string {
	for _, s := range c.Sources {
		if s.Trusted != nil && *s.Trusted {
			return filepath.Join(filepath.Dir(s.Path), ".npmrc")
		}
	}
	return ""
}

// compose lays the profile's own files together with what plugins would bring.
func (p pluginProfile) compose(plugged profile.Plugged) *profile.Composition {
	req := p.req
	req.Plugins = func(string) (profile.Plugged, error) { return plugged, nil }
	return profile.Compose(req)
}

// completePlugin completes ids of the profile's plugins.
func (a *app) completePlugin(_ *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
	var ids []string
	if p, err := a.pluginsOf(); err == nil {
		list, _ := p.host.List(p.name)
		for _, x := range list {
			if strings.HasPrefix(x.ID, word) {
				ids = append(ids, x.ID)
			}
		}
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}
