package cmd

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/profile"
	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// environment lays what the flags say over the block env: of the profile. Names
// that it passes on come from the caller as they are, and an unset one is left
// out.
func (w *world) environment(a *app, flags remoteexec.Env) remoteexec.Env {
	block := w.profile.Env
	env := remoteexec.Env{Set: map[string]string{}}
	for _, entry := range a.Environ {
		if name, value, ok := strings.Cut(entry, "="); ok && slices.Contains(block.Pass, name) {
			env.Set[name] = value
		}
	}
	for name, value := range block.Set {
		env.Set[name] = value
	}
	env.Remove = append(slices.Clone(block.Remove), flags.Remove...)
	for _, name := range env.Remove {
		delete(env.Set, name)
	}
	for name, value := range flags.Set {
		env.Set[name] = value
		if !slices.Contains(flags.Remove, name) {
			env.Remove = slices.DeleteFunc(env.Remove, func(removed string) bool { return removed == name })
		}
	}
	return env
}

// takeProfile takes what somebody wrote in the block exec: for what no flag
// says (remoteexec.md SH-2).
func (o *execOptions) takeProfile(p *profile.Profile, f *pflag.FlagSet) {
	take := func(key, flag string) bool { return p.Written("exec", key) && !f.Changed(flag) }
	if take("graceMs", "grace") {
		o.grace = p.ExecBlock.Grace
	}
	if take("maxOutputBytes", "max-output") {
		o.maxOutput = p.ExecBlock.MaxOutputBytes
	}
	if p.Written("exec", "maxSpillBytes") {
		o.spillMax = p.ExecBlock.MaxSpillBytes
	}
}

// withExecDeadline applies exec.timeoutMs where --timeout is not given, and
// exec.maxTimeoutMs to what is.
func (a *app) withExecDeadline(ctx context.Context, p *profile.Profile) (context.Context, context.CancelFunc) {
	limit := a.flags.timeout
	if limit == 0 && p.Written("exec", "timeoutMs") {
		limit = p.ExecBlock.Timeout
	}
	if limit > 0 && p.Written("exec", "maxTimeoutMs") {
		limit = min(limit, p.ExecBlock.MaxTimeout)
	}
	if limit == a.flags.timeout {
		return ctx, func() {}
	}
	a.flags.timeout = limit
	return context.WithDeadlineCause(ctx, time.Now().Add(limit), fault.ErrDeadline)
}

// windowCaps are the caps of a read window that the block "fs:" sets.
func windowCaps(fs profile.FS) remotefs.WindowOptions {
	return remotefs.WindowOptions{
		MaxLimit: int(fs.ReadLimit), MaxLineLength: int(fs.ReadMaxLineLength), MaxBytes: int(fs.ReadMaxBytes),
	}
}

// takeProfile takes the caps of the block fs: for what no flag says.
func (o *fsViewOptions) takeProfile(p *profile.Profile, f *pflag.FlagSet) error {
	caps := windowCaps(p.FSBlock)
	o.window.MaxLimit = caps.MaxLimit
	if !f.Changed("limit") {
		o.window.Limit = caps.MaxLimit
	}
	if !f.Changed("max-bytes") {
		o.window.MaxBytes = caps.MaxBytes
	}
	if !f.Changed("max-line-length") {
		o.window.MaxLineLength = caps.MaxLineLength
	}
	_, err := o.window.Check()
	return err
}
