package cmd

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/mount"
	"github.com/afield-dev/afield/pkg/mount/dashboard"
)

type mountServeOptions struct {
	callFlags
	listen string
	open   bool
}

// serveResult is the JSON of mount serve, printed when it listens.
type serveResult struct {
	URL     string `json:"url"`
	Address string `json:"address"`
	Session string `json:"session"`
}

func newMountServe(a *app) *cobra.Command {
	opts := mountServeOptions{}
	c := &cobra.Command{
		Use:   "serve",
		Short: "Show what the session holds as a page, live",
		Long: "Serve a page that shows what the session holds and saves, and follows it while other commands use the " +
			"session, until interrupted. The page is part of the program, loads nothing from elsewhere and changes " +
			"nothing. Only who knows the printed URL can see it.",
		Example: "    afield mount serve --open",
		Args:    none,
	}
	f := c.Flags()
	f.StringVar(&opts.listen, "listen", "127.0.0.1:0", "`address` to listen on; port 0 = any free one")
	f.BoolVar(&opts.open, "open", false, "show the page in this machine's browser")
	opts.addSession(f)
	c.RunE = a.run(func(ctx context.Context, _ []string) error {
		if _, _, err := net.SplitHostPort(opts.listen); err != nil {
			return usage("--listen takes HOST:PORT, not %q", opts.listen)
		}
		return a.withLedger(opts.callFlags, func(m *mount.Mount, call mount.Call) error {
			return runMountServe(ctx, a, m, call, opts)
		})
	})
	return c
}

func runMountServe(ctx context.Context, a *app, m *mount.Mount, call mount.Call, opts mountServeOptions) error {
	if call.Session == "" {
		return usage("no session is named").WithHint("give --session ID or set AFIELD_SESSION")
	}
	l, err := net.Listen("tcp", opts.listen)
	if err != nil {
		return fault.Wrap(err, fault.FSIOError, "mount serve", opts.listen, "cannot listen on %s: %s", opts.listen, err).
			WithHint("choose another address with --listen")
	}
	defer l.Close()
	if addr, ok := l.Addr().(*net.TCPAddr); ok && !addr.IP.IsLoopback() {
		a.note("warning: %s can be reached from other machines, and the page is not encrypted", l.Addr())
	}
	s := &dashboard.Server{Store: m.Store, Session: call.Session, Config: m.Config, Token: dashboard.NewToken(), Wait: call.Wait}
	r := serveResult{"http://" + l.Addr().String() + s.Path(), l.Addr().String(), call.Session}
	if err := a.answer(r, r.URL); err != nil {
		return err
	}
	if opts.open {
		remove, err := a.openPage(r.URL)
		if err != nil {
			a.note("warning: cannot open a browser: %s", err)
		}
		defer remove()
	}
	if err := s.Serve(ctx, l); err != nil {
		return fault.Wrap(err, fault.FSIOError, "mount serve", opts.listen, "cannot serve on %s: %s", opts.listen, err)
	}
	return fault.Aborted(ctx, fault.FSAborted, "mount serve", call.Session)
}

// openPage shows url in the browser. The URL holds a secret, which a command
// line would show to other users; so the browser is given a private file that
// leads there.
func (a *app) openPage(url string) (remove func(), err error) {
	dir := filepath.Join(a.stateDir(), "mount")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return func() {}, err
	}
	f, err := os.CreateTemp(dir, "open-*.html")
	if err != nil {
		return func() {}, err
	}
	remove = func() { os.Remove(f.Name()) }
	_, err = fmt.Fprintf(f, "<!doctype html><meta http-equiv=\"refresh\" content=\"0; url=%s\">\n", url)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = startBrowser(f.Name())
	}
	return remove, err
}

// startBrowser hands a file to the desktop's opener and does not wait for it.
func startBrowser(path string) error {
	opener := "xdg-open"
	if runtime.GOOS == "darwin" {
		opener = "open"
	}
	p, err := exec.LookPath(opener)
	if err != nil {
		return err
	}
	proc, err := os.StartProcess(p, []string{opener, path}, &os.ProcAttr{Files: []*os.File{nil, nil, nil}})
	if err != nil {
		return err
	}
	return proc.Release()
}
