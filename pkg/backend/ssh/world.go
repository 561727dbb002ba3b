// Package ssh is the world of a host that a person reaches with `ssh HOST`:
// nothing of ours is installed there. Small operations and process starts run a
// fixed program of package script in the login's shell; hosts that allow nothing
// but the SFTP subsystem get files with weaker version tokens and no processes.
//
// The user's own SSH configuration counts; the profile's values stand above it.
package ssh

import (
	"context"
	"errors"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/remotefs"
	"github.com/afield-dev/afield/pkg/script"
)

// Provider makes SSH worlds.
func Provider() backend.Provider {
	return backend.Provider{
		Name:     "ssh",
		Services: []backend.Service{backend.ServiceFS, backend.ServiceExec},
		Config:   schema(),
		Open: func(ctx context.Context, req backend.OpenRequest) (backend.World, error) {
			w, err := Open(ctx, req)
			if err != nil {
				return nil, err
			}
			return w, nil
		},
		Keep: keep,
	}
}

// keep: the user's configuration, the agent and the directory of relative paths
// decide which login it is; the working directory does not.
func keep(req backend.OpenRequest) backend.Keep {
	k := backend.Keep{Apart: req.Variables("HOME", "SSH_AUTH_SOCK", "PATH"), AnyCwd: true}
	for _, key := range []string{"configFile", "identityFile", "certificateFile", "knownHostsFile"} {
		if f := config(req.Config).text(key); f != "" && !path.IsAbs(f) {
			k.Apart = append(k.Apart, req.HostDir)
		}
	}
	return k
}

// schema are the keys of a row (design.md 4.21).
func schema() backend.Schema {
	text, number := backend.KindText, backend.KindInt
	return backend.Schema{
		{Key: "host", Kind: text, Required: true, Doc: "alias of the SSH configuration, or name of the host"},
		{Key: "port", Kind: number, Min: 1, Max: 65535, Doc: "port (default: that of the SSH configuration)"},
		{Key: "user", Kind: text, Doc: "login (default: that of the SSH configuration)"},
		{Key: "cwd", Kind: text, Doc: "working directory in the world; a relative one is joined to the login's home"},
		{Key: "configFile", Kind: text, Doc: "SSH configuration to read instead of the user's"},
		{Key: "identityFile", Kind: text, Doc: "private key to offer first"},
		{Key: "certificateFile", Kind: text, Doc: "certificate of that key"},
		{Key: "identityPassphrase", Kind: text, Secret: true, Doc: "passphrase of the private key"},
		{Key: "password", Kind: text, Secret: true, Doc: "password of the login, also for questions of the server"},
		{Key: "knownHostsFile", Kind: text, Doc: "known hosts instead of the user's"},
		{Key: "hostKey", Kind: text, Enum: []string{"strict", "accept-new"}, Doc: "what to do with the key of a host that is not known"},
		{Key: "jump", Kind: text, Doc: "hosts to go through, USER@HOST:PORT, separated by commas"},
		{Key: "agent", Kind: text, Enum: []string{"auto", "off"}, Default: "auto", Doc: "whether to use the keys of the agent"},
		{Key: "connectTimeoutMs", Kind: number, Min: 1, Max: maxDelayMs, Doc: "time to connect and log in, in ms (default 10000)"},
		{Key: "keepaliveMs", Kind: number, Min: 1, Max: maxDelayMs, Doc: "time between signs of life, in ms (default 10000)"},
		{Key: "deadPeerMs", Kind: number, Min: 1, Max: maxDelayMs, Default: int64(30000), Doc: "silence after which the connection counts as lost, in ms"},
		{Key: "remoteProgram", Kind: text, Doc: "reserved: afield on the host, which this version does not use"},
	}
}

const maxDelayMs = 2147483647

// World is a host.
type World struct {
	sh       *shell
	state    state
	settings Settings
	cwd      string
	hello    script.World
	noShell  error // why the login runs no programs; nil if it does

	driver    remotefs.Driver
	files     remotefs.FS
	processes remoteexec.Runtime
	closeOnce sync.Once
	closeErr  error
}

// Open connects and logs in. What the host has is remembered from an earlier
// opening, or asked.
func Open(ctx context.Context, req backend.OpenRequest) (*World, error) {
	if p, _ := req.Config["remoteProgram"].(string); p != "" {
		return nil, fault.New(fault.BackendUnsupported, "connect", "", "the ssh backend cannot use afield on the host (remoteProgram)").
			WithHint("remove remoteProgram from the profile; nothing needs to be installed on the host")
	}
	d, err := newDialer(ctx, req)
	if err != nil {
		return nil, err
	}
	w := &World{settings: d.settings, state: newState(req.StateDir), sh: &shell{hub: newHub(d, req.Trace)}}
	err = w.greet(ctx)
	if err == nil {
		err = w.build(ctx, req)
	}
	if err != nil {
		w.sh.close()
		if ctx.Err() != nil {
			err = fault.Aborted(ctx, fault.FSAborted, "connect to "+d.settings.Alias, "")
		}
		return nil, err
	}
	return w, nil
}

// newDialer resolves the settings of the row and of the user's configuration.
func newDialer(ctx context.Context, req backend.OpenRequest) (*dialer, error) {
	c := config(req.Config)
	r := request{
		host: c.text("host"), port: int(c.number("port", 0)), user: c.text("user"),
		home: environ(req.Environ, "HOME"), dir: req.HostDir, environ: req.Environ, state: newState(req.StateDir),
	}
	r.configFile = absolute(req.HostDir, r.home, c.text("configFile"))
	if c.text("agent") != "off" {
		r.agent = environ(req.Environ, "SSH_AUTH_SOCK")
	}
	if program, err := exec.LookPath("ssh"); err == nil {
		r.program = program
	}
	s, err := resolve(ctx, r)
	if err != nil {
		return nil, err
	}
	c.override(&s, req.HostDir, r.home)
	d := &dialer{settings: s, environ: req.Environ, dir: req.HostDir, secrets: secrets{
		passphrase: secret(context.WithoutCancel(ctx), req.Secret, "identityPassphrase"),
		password:   secret(context.WithoutCancel(ctx), req.Secret, "password"),
	}}
	d.resolve = func(ctx context.Context, host string, port int, user string) (Settings, error) {
		hop := r
		hop.host, hop.port, hop.user = host, port, user
		s, err := resolve(ctx, hop)
		c.overrideHop(&s, req.HostDir, r.home)
		return s, err
	}
	return d, nil
}

// config are the values of a row.
type config map[string]any

func (c config) text(key string) string { v, _ := c[key].(string); return v }

func (c config) number(key string, otherwise int64) int64 {
	if v, ok := c[key].(int64); ok {
		return v
	}
	return otherwise
}

func (c config) delay(key string, current, otherwise time.Duration) time.Duration {
	if v, ok := c[key].(int64); ok {
		return time.Duration(v) * time.Millisecond
	}
	return max(current, 0) + map[bool]time.Duration{true: otherwise}[current == 0]
}

// override puts the row's values above the user's configuration.
func (c config) override(s *Settings, dir, home string) {
	c.overrideHop(s, dir, home)
	if f := c.text("identityFile"); f != "" {
		s.IdentityFiles = append([]string{absolute(dir, home, f)}, s.IdentityFiles...)
	}
	if f := c.text("certificateFile"); f != "" {
		s.CertificateFiles = append([]string{absolute(dir, home, f)}, s.CertificateFiles...)
	}
	if j := c.text("jump"); j != "" {
		s.Jumps, s.ProxyCommand = strings.Split(j, ","), ""
	}
}

// overrideHop is the part that holds for jump hosts as well.
func (c config) overrideHop(s *Settings, dir, home string) {
	if f := c.text("knownHostsFile"); f != "" {
		s.KnownHosts = []string{absolute(dir, home, f)}
	}
	switch c.text("hostKey") {
	case "strict":
		s.AcceptNew = false
	case "accept-new":
		s.AcceptNew = true
	}
	s.ConnectTimeout = c.delay("connectTimeoutMs", s.ConnectTimeout, 10*time.Second)
	s.Keepalive = c.delay("keepaliveMs", s.Keepalive, 10*time.Second)
	s.DeadPeer = c.delay("deadPeerMs", s.DeadPeer, 30*time.Second)
	s.Keepalive = min(s.Keepalive, max(s.DeadPeer/3, time.Millisecond))
}

// environ gives a variable of the caller.
func environ(list []string, name string) string {
	for _, e := range slices.Backward(list) {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			return v
		}
	}
	return ""
}

// build puts the contracts on top of what the host has.
func (w *World) build(ctx context.Context, req backend.OpenRequest) error {
	home := first(w.hello.Home, "/")
	if w.noShell == nil && w.hello.Stat && w.hello.Sum {
		d := &shellFiles{sh: w.sh}
		w.driver = d
		w.cwd = joinWorld(home, req.Cwd)
		d.facts = remotefs.Facts{Backend: "ssh", Cwd: w.cwd, FollowsDangling: true}
	} else {
		d, err := newSFTPFiles(ctx, w.sh.hub)
		if err != nil {
			return err
		}
		d.seen = newSeen(w.state, w.Identity())
		w.driver = d
		w.cwd = joinWorld(first(w.hello.Home, d.home), req.Cwd)
		d.facts = remotefs.Facts{Backend: "ssh", Cwd: w.cwd, FollowsDangling: true, WeakVersions: true, LosesOwner: true}
	}
	w.files = remotefs.New(w.driver, remotefs.Options{
		Locks: remotefs.NewLocks(req.StateDir, w.Identity()), NewFileMode: req.NewFileMode, Log: req.Log,
	})
	w.processes = remoteexec.New(&processes{world: w}, remoteexec.Options{})
	return nil
}

// Files gives the files of the host.
func (w *World) Files() remotefs.FS { return w.files }

// Processes gives the processes of the host.
func (w *World) Processes() remoteexec.Runtime { return w.processes }

// Cwd gives the working directory.
func (w *World) Cwd(context.Context) (string, error) { return w.cwd, nil }

// Identity names the host and the login.
func (w *World) Identity() string {
	s := w.settings
	return "ssh:" + s.User + "@" + s.Host + ":" + strconv.Itoa(s.Port)
}

// Close ends what was started and the connections.
func (w *World) Close(ctx context.Context) error {
	w.closeOnce.Do(func() {
		w.closeErr = w.processes.Shutdown(ctx)
		w.sh.close()
	})
	return w.closeErr
}

// unsupported is the error of processes on a host that runs none.
func (w *World) unsupported(op string) error {
	var f *fault.Error
	if errors.As(w.noShell, &f) {
		out := *f
		out.Op = op
		return &out
	}
	return fault.New(fault.BackendUnsupported, op, "", "%s has no /proc, which is needed to follow processes", w.settings.Alias)
}
