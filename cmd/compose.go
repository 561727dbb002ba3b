package cmd

import (
	"slices"

	"github.com/spf13/pflag"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/backend/all"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/profile"
)

// profileFlags are the global flags that decide the profile.
type profileFlags struct {
	profile       string
	named         bool // --profile was given
	profileFile   []string
	overrides     []profile.Override
	noPlugins     bool
	noProject     bool
	defaultConfig bool
	dump          bool
	dumpDefault   bool
}

// override is a flag that sets a profile value. All such flags share one list,
// because the order of the arguments counts.
type override struct {
	list    *[]profile.Override
	literal bool
	cwd     bool
	last    string
}

func (o *override) String() string { return o.last }

func (o *override) Type() string { return "text" }

// Set is called for each use of the flag, in the order of the arguments.
func (o *override) Set(text string) error {
	o.last = text
	*o.list = append(*o.list, profile.Override{Text: text, Literal: o.literal, Cwd: o.cwd})
	return nil
}

func addProfileFlags(f *pflag.FlagSet, p *profileFlags) {
	f.StringVarP(&p.profile, "profile", "P", "", "profile to use (default: AFIELD_PROFILE, else the configured one)")
	f.StringArrayVar(&p.profileFile, "profile-file", nil, "read this profile `file` above the named profile; repeatable")
	f.Var(&override{list: &p.overrides}, "set", "set one profile value, `PATH=VALUE`; repeatable")
	f.Var(&override{list: &p.overrides, literal: true}, "set-string", "as --set with `PATH=VALUE` taken literally as text; repeatable")
	f.VarP(&override{list: &p.overrides, cwd: true}, "cwd", "C", "working `directory` in the world (default: the backend's)")
	f.BoolVar(&p.noPlugins, "no-plugins", false, "leave out what plugins change in the profile")
	f.BoolVar(&p.noProject, "no-project", false, "leave out the project's "+profile.ProjectFile)
	f.BoolVar(&p.defaultConfig, "default-config", false, "leave out configuration files and the environment")
	f.BoolVar(&p.dump, "dump-config", false, "print the profile that this command would use, and run nothing")
	f.BoolVar(&p.dumpDefault, "dump-default-config", false, "print the built-in profile, and run nothing")
}

// check refuses combinations, and notes whether a name was given.
func (p *profileFlags) check(f *pflag.FlagSet) error {
	p.named = f.Changed("profile")
	if f.Changed("cwd") && slices.Contains(p.overrides, profile.Override{Cwd: true}) {
		return usage("--cwd must not be empty")
	}
	if !p.dumpDefault {
		return nil
	}
	for _, name := range []string{"dump-config", "profile-file", "set", "set-string", "cwd"} {
		if f.Changed(name) {
			return usage("--dump-default-config and --%s cannot be used together", name)
		}
	}
	p.defaultConfig = true
	return nil
}

// registry gives the providers that a profile can name.
func (a *app) registry() backend.Registry {
	if a.providers == nil {
		a.providers = all.Providers()
	}
	return a.providers
}

// request gives what decides the composition of this invocation.
func (a *app) request() (profile.Request, error) {
	dir, err := a.Dir()
	if err != nil {
		return profile.Request{}, fault.Wrap(err, fault.FSIOError, "", "", "cannot find the directory of this process: %s", err)
	}
	f := a.flags.profileFlags
	return profile.Request{
		Name: f.profile, Named: f.named, Files: f.profileFile, Overrides: f.overrides,
		NoPlugins: f.noPlugins, NoProject: f.noProject, DefaultConfig: f.defaultConfig,
		Environ: a.Environ, Dir: dir, Providers: a.registry(),
		Plugins: func(name string) (profile.Plugged, error) {
			if a.tried != nil {
				return profile.Plugged{Providers: a.tried}, nil
			}
			return a.pluginHost(dir).Plugged(name)
		},
	}, nil
}

// compose lays the profile of this invocation together, once, and says which
// variables mean nothing.
func (a *app) compose() (*profile.Composition, error) {
	if a.composed != nil {
		return a.composed, nil
	}
	req, err := a.request()
	if err != nil {
		return nil, err
	}
	a.composed = profile.Compose(req)
	for _, name := range a.composed.UnknownEnv {
		a.note("warning: the variable %s means nothing%s", name, didYouMean(profile.UnknownVariableHint(name)))
	}
	for _, name := range a.composed.Places.Ignored {
		a.note("warning: the variable %s does not hold an absolute path and is ignored", name)
	}
	return a.composed, nil
}

func didYouMean(word string) string {
	if word == "" {
		return ""
	}
	return "; did you mean " + word + "?"
}

// composeNamed is compose for a profile that an argument names.
func (a *app) composeNamed(name string) (*profile.Composition, error) {
	if name != "" {
		if a.flags.named && a.flags.profile != name {
			return nil, usage("--profile and the argument name two profiles")
		}
		a.flags.profile, a.flags.named = name, true
	}
	return a.compose()
}

// loadProfile gives the profile of this invocation, or its first problem. It
// touches no world.
func (a *app) loadProfile() (*profile.Profile, error) {
	c, err := a.compose()
	if err != nil {
		return nil, err
	}
	return c.Profile()
}

// secretsOf gives the resolver of this invocation, which also masks.
func (a *app) secretsOf() *profile.Secrets {
	if a.secrets == nil {
		dir, _ := a.Dir()
		a.secrets = &profile.Secrets{Environ: a.Environ, Dir: dir, Home: profile.NewPlaces(a.Environ).Home}
	}
	return a.secrets
}
