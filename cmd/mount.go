package cmd

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/afield-dev/afield/pkg/mount"
	"github.com/afield-dev/afield/pkg/mount/ledger"
	"github.com/afield-dev/afield/pkg/remotefs"
)

func newMount(a *app) *cobra.Command {
	return newGroup("mount", "Read files without sending again what the caller has",
		newMountRead(a), newMountWrote(a), newMountEdited(a), newMountForget(a),
		newMountCompact(a), newMountRewind(a), newMountFork(a), newMountContext(a),
		newMountStatus(a), newMountStats(a), newMountGC(a), newMountServe(a))
}

// callFlags are what a caller says of the conversation.
type callFlags struct {
	session string
	seq     optionalInt
	used    optionalInt
	window  optionalInt
	wait    time.Duration
}

// addSession adds the flags of every command that uses a session.
func (o *callFlags) addSession(f *pflag.FlagSet) {
	f.StringVar(&o.session, "session", "", "`id` of the session (default: AFIELD_SESSION, else mount.session of the profile)")
	f.DurationVar(&o.wait, "lock-timeout", 5*time.Second, "wait at most this `duration` for another process that uses the session")
}

// addCall adds the flags of commands that come with a message.
func (o *callFlags) addCall(f *pflag.FlagSet) {
	o.addSession(f)
	o.addContext(f)
	f.Var(&o.seq, "seq", "`number` of the message that carries the answer (default: the last one of the session + 1)")
}

func (o *callFlags) addContext(f *pflag.FlagSet) {
	f.Var(&o.used, "context-used", "`tokens` in the prompt, cached ones included (default: AFIELD_CONTEXT_USED, else as last reported)")
	f.Var(&o.window, "context-window", "`tokens` that the model takes (default: AFIELD_CONTEXT_WINDOW, else as last reported)")
}

// optionalInt is a whole number that may not be given.
type optionalInt struct{ value *int64 }

func (o *optionalInt) String() string {
	if o.value == nil {
		return ""
	}
	return strconv.FormatInt(*o.value, 10)
}

func (o *optionalInt) Type() string { return "int" }

// Set takes a whole number.
func (o *optionalInt) Set(s string) error {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return fmt.Errorf("must be a whole number")
	}
	o.value = &n
	return nil
}

// call puts flags, environment and profile together. An error is one of usage.
func (a *app) call(o callFlags, c mount.Config) (mount.Call, error) {
	call := mount.Call{Session: o.session, Hint: true, Seq: o.seq.value, Used: o.used.value, Window: o.window.value, Wait: o.wait}
	env := a.getenv("AFIELD_SESSION")
	if call.Session == "" {
		call.Session = env
	}
	call.Hint = call.Session != env
	if call.Session == "" {
		call.Session, call.Hint = c.Session, true
	}
	for name, at := range map[string]**int64{"AFIELD_CONTEXT_USED": &call.Used, "AFIELD_CONTEXT_WINDOW": &call.Window} {
		if text := a.getenv(name); *at == nil && text != "" {
			var n optionalInt
			if err := n.Set(text); err != nil {
				return call, usage("%s is %q and must be a whole number", name, text)
			}
			*at = n.value
		}
	}
	if o.wait < 0 {
		return call, usage("--lock-timeout must not be negative")
	}
	return call, call.Check()
}

// newMounts makes the ledgers of this invocation, without a world.
func (a *app) newMounts(c mount.Config) *mount.Mount {
	return &mount.Mount{
		Config: c, Now: time.Now,
		Store: &ledger.Store{
			Dir: filepath.Join(a.stateDir(), "mount", "v1"), Now: time.Now,
			MaxDrafts: c.MaxPinnedFiles, SpareDrafts: c.Capacity,
		},
		Warn: func(line string) { a.note("warning: %s", line) },
	}
}

// attach joins m to the files of an opened world.
func (a *app) attach(ctx context.Context, m *mount.Mount, w *world, files remotefs.FS) error {
	cwd, err := w.Cwd(ctx)
	if err != nil {
		return err
	}
	m.Files, m.World, m.Cwd, m.Window = files, w.Identity(), cwd, windowCaps(w.profile.FSBlock)
	if w.near {
		m.FoldsCase = func(ctx context.Context, key string) bool { return mount.ProbeCase(ctx, files, key) }
	}
	return nil
}

// withMount checks flags, opens the world, and hands both to f.
func (a *app) withMount(ctx context.Context, o callFlags, f func(*mount.Mount, mount.Call) error) error {
	c, err := a.mountConfig()
	if err != nil {
		return err
	}
	call, err := a.call(o, c)
	if err != nil {
		return err
	}
	return a.withWorld(ctx, func(w *world) error {
		files, err := w.files()
		if err != nil {
			return err
		}
		m := a.newMounts(c)
		if err := a.attach(ctx, m, w, files); err != nil {
			return err
		}
		return f(m, call)
	})
}

// withLedger checks flags and hands the ledgers to f; no world is opened.
func (a *app) withLedger(o callFlags, f func(*mount.Mount, mount.Call) error) error {
	c, err := a.mountConfig()
	if err != nil {
		return err
	}
	call, err := a.call(o, c)
	if err != nil {
		return err
	}
	return f(a.newMounts(c), call)
}
