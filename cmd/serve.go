package cmd

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/keeper"
	"github.com/afield-dev/afield/pkg/profile"
	"github.com/afield-dev/afield/pkg/provider"
	"github.com/afield-dev/afield/pkg/remotefs"
)

type serveOptions struct {
	stdio  bool
	socket string
	nonce  string
	keep   bool
}

func newServe(a *app) *cobra.Command {
	var o serveOptions
	c := &cobra.Command{
		Use:   "serve (--stdio | --socket PATH)",
		Short: "Serve the profile's world by the provider protocol",
		Long: "Serve the world of the profile to another program by the provider protocol: on standard input and output, or " +
			"on a unix socket that only this user can reach. The profile \"backend: external\" with \"argv: [afield, serve, --stdio]\" is the other side.",
		Args: none,
		RunE: a.run(func(ctx context.Context, _ []string) error {
			if o.keep {
				return runKeeper(ctx, a)
			}
			return runServe(ctx, a, o)
		}),
	}
	f := c.Flags()
	f.BoolVar(&o.stdio, "stdio", false, "serve one connection on standard input and output")
	f.StringVar(&o.socket, "socket", "", "serve connections on a unix socket at this `path`, made with mode 0600 (default: none)")
	f.StringVar(&o.nonce, "nonce", "", "word of the start line (default: AFIELD_NONCE, else 0)")
	f.BoolVar(&o.keep, "keep", false, "be the keeper of a world; afield starts it by itself")
	f.MarkHidden("keep")
	c.MarkFlagsMutuallyExclusive("stdio", "socket", "keep")
	c.MarkFlagsOneRequired("stdio", "socket", "keep")
	return c
}

// runServe serves until the input ends, or until it is asked to end.
func runServe(ctx context.Context, a *app, o serveOptions) error {
	if o.nonce == "" {
		o.nonce = a.getenv("AFIELD_NONCE")
	}
	if o.nonce == "" {
		o.nonce = "0"
	}
	if o.stdio {
		return serveConn(ctx, a, stdio{a.In, a.Out}, o.nonce)
	}
	l, err := listen(o.socket)
	if err != nil {
		return fault.Wrap(err, fault.FSIOError, "serve", o.socket, "cannot listen on %q: %s", o.socket, err).
			WithHint("name a path in a directory of your own with mode 0700 where nothing has that name")
	}
	defer l.Close()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	for {
		c, err := l.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fault.Wrap(err, fault.FSIOError, "serve", o.socket, "cannot accept on %q: %s", o.socket, err)
		}
		go serveConn(ctx, a, c, o.nonce)
	}
}

// stdio joins standard input and output.
type stdio struct {
	io.Reader
	io.Writer
}

func (s stdio) Close() error {
	var err error
	for _, x := range []any{s.Reader, s.Writer} {
		if c, ok := x.(io.Closer); ok {
			err = errors.Join(err, c.Close())
		}
	}
	return err
}

// serveConn serves one connection to its end.
func serveConn(ctx context.Context, a *app, rw io.ReadWriteCloser, nonce string) error {
	if c, ok := rw.(*net.UnixConn); ok && !keeper.OwnPeer(c) {
		return c.Close()
	}
	if err := provider.Announce(rw, nonce); err != nil {
		rw.Close()
		return err
	}
	s := &provider.Server{Hello: serveHello(), Open: a.serveWorld}
	conn := provider.NewConn(rw, provider.Options{Hello: s.Hello, Serve: s.Handler()})
	select {
	case <-conn.Closed():
	case <-ctx.Done():
		conn.Close()
	}
	return nil
}

func serveHello() provider.Hello {
	return provider.Hello{Plugin: "afield", Version: version, Providers: []provider.HelloProvider{{
		Name: "world", Services: []string{"fs", "exec"}, Level: "contract",
		Features: []string{"term", "collect", "resize", "before", provider.FeatureEdits, provider.FeatureOpened},
	}}}
}

// serveWorld opens the profile's world for a caller.
func (a *app) serveWorld(ctx context.Context, p provider.OpenParams) (backend.World, provider.Opened, error) {
	b := *a
	b.direct = true
	if p.Cwd != "" {
		b.flags.overrides = append(slices.Clone(b.flags.overrides), profile.Override{Text: string(p.Cwd), Cwd: true})
	}
	w, err := b.openWorld(ctx)
	if err != nil {
		return nil, provider.Opened{}, a.masked(err)
	}
	cwd, err := w.Cwd(ctx)
	if err != nil {
		w.Close(ctx)
		return nil, provider.Opened{}, a.masked(err)
	}
	served := fencedWorld{World: w}
	served.fs, _ = w.files()
	return served, provider.Describe(served, cwd), nil
}

// fencedWorld is a world whose files stand behind the fence of the profile.
type fencedWorld struct {
	backend.World
	fs remotefs.FS
}

func (w fencedWorld) Files() remotefs.FS { return w.fs }

// listen makes a socket that only this user can reach. One that nobody listens
// on any more is replaced.
func listen(path string) (net.Listener, error) {
	dir, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	if dir.Mode().Perm()&0o077 != 0 {
		return nil, errors.New("others may enter its directory")
	}
	if c, err := net.Dial("unix", path); err == nil {
		c.Close()
		return nil, errors.New("somebody serves there already")
	} else if st, err := os.Lstat(path); err == nil && st.Mode().Type() == os.ModeSocket {
		os.Remove(path)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	return l, os.Chmod(path, 0o600)
}
