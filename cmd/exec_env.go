package cmd

import (
	"context"
	"strings"

	"github.com/spf13/pflag"

	"github.com/afield-dev/afield/pkg/remoteexec"
)

// envOptions are the flags that make the explicit environment of a program.
type envOptions struct {
	set   []string
	unset []string
	files []string
}

func addEnvFlags(f *pflag.FlagSet, o *envOptions) {
	f.StringArrayVarP(&o.set, "env", "e", nil, "set a variable of the program, `NAME=VALUE`; repeatable")
	f.StringArrayVar(&o.unset, "unset", nil, "remove the variable `NAME` from the program's environment; repeatable")
	f.StringArrayVar(&o.files, "env-file", nil, "set the variables of this `file` of the host, one NAME=VALUE a line, taken literally; "+
		"empty lines and lines that begin with # are left out; --env and --unset win; repeatable")
	f.SetAnnotation("env", rawFlags, []string{""})
}

// environment reads the files and joins all entries. Values are never part of a
// message.
func (a *app) environment(ctx context.Context, o envOptions) (remoteexec.Env, error) {
	env := remoteexec.Env{Set: map[string]string{}, Remove: o.unset}
	for _, file := range o.files {
		text, err := a.readHostText(ctx, file)
		if err != nil {
			return env, err
		}
		number := 0
		for line := range strings.Lines(text) {
			number++
			line = strings.TrimRight(line, "\r\n")
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			if !addEntry(env.Set, line) {
				return env, usage("--env-file %q line %d is not NAME=VALUE", file, number)
			}
		}
	}
	for _, name := range o.unset {
		delete(env.Set, name)
	}
	for i, entry := range o.set {
		if !addEntry(env.Set, entry) {
			return env, usage("--env number %d is not NAME=VALUE", i+1)
		}
	}
	return env, nil
}

func addEntry(set map[string]string, entry string) bool {
	name, value, ok := strings.Cut(entry, "=")
	if ok && name != "" {
		set[name] = value
	}
	return ok && name != ""
}
