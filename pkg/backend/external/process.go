package external

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/provider"
)

const (
	stderrKept = 64 << 10        // of the program's stderr, in bytes
	stderrTail = 4 << 10         // shown with a failure, in bytes
	stopWait   = 2 * time.Second // from end of input to TERM, and from TERM to KILL
	window     = 1 << 20         // credit of each port, in bytes: streams need not stop for each other
)

// process is the provider's program with its connection.
type process struct {
	argv   []string
	cmd    *exec.Cmd
	conn   *provider.Conn
	stderr *tail
	exited chan struct{} // closed when it has ended
	ended  chan struct{} // closed when its group has been signalled for the last time
	reaped chan struct{} // closed when it has been waited for
	guard  *guard
	once   sync.Once
}

// start runs the program and connects to it.
func start(ctx context.Context, argv, pass []string, req backend.OpenRequest) (*process, error) {
	p, stream, err := launch(ctx, argv, pass, req)
	if err != nil {
		return nil, err
	}
	p.conn = provider.NewConn(stream, provider.Options{
		Hello: provider.Hello{Name: "afield", Window: window, Features: []string{"log"}},
		Log:   func(l provider.Log) { req.Log.Info("provider", "level", l.Level, "msg", l.Msg) },
	})
	return p, nil
}

// launch runs the program in a process group of its own and waits for its start
// line, as long as ctx allows.
func launch(ctx context.Context, argv, pass []string, req backend.OpenRequest) (*process, io.ReadWriteCloser, error) {
	if len(argv) == 0 || argv[0] == "" {
		return nil, nil, fault.New(fault.ProfileInvalid, "start", "", "argv of the external provider names no program")
	}
	depth, err := nextDepth(req.Environ)
	if err != nil {
		return nil, nil, err
	}
	nonce := newNonce()
	p := &process{argv: argv, stderr: &tail{max: stderrKept}, exited: make(chan struct{}), ended: make(chan struct{}), reaped: make(chan struct{})}
	p.cmd = exec.Command(argv[0], argv[1:]...)
	p.cmd.Dir = req.HostDir
	p.cmd.Env = environment(req.Environ, pass, nonce, depth)
	p.cmd.SysProcAttr = ownGroup()
	p.cmd.Stderr = p.stderr
	p.cmd.WaitDelay = stopWait // a child of the program may hold its stderr
	in, out, err := pipes(p.cmd)
	if err == nil {
		err = p.run()
	}
	if err != nil {
		return nil, nil, notStarted(argv[0], err)
	}
	p.guard = startGuard(p.cmd.Process.Pid)
	stream, err := p.awaitStart(ctx, in, out, nonce, req)
	if err != nil {
		p.stop()
		return nil, nil, p.explain(err)
	}
	return p, stream, nil
}

// run starts the program and waits for its end beside the caller, on one
// thread: the kernel sends the parent-death signal when the thread ends that
// has started the child. Until its group has been signalled for the last time
// the program is not reaped, so that the group's id stays ours.
func (p *process) run() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			awaitExit(p.cmd)
		}
		close(p.exited)
		if err == nil {
			<-p.ended
			p.cmd.Wait()
		}
		close(p.reaped)
	}()
	return <-started
}

// pipes are ours: those of exec.Cmd are closed by Wait, which may lose what the
// program said last.
func pipes(cmd *exec.Cmd) (in io.WriteCloser, out io.ReadCloser, err error) {
	childIn, in, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	out, childOut, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	enlarge(in.(*os.File))
	enlarge(out.(*os.File))
	cmd.Stdin, cmd.Stdout = childIn, childOut
	return in, out, nil
}

func notStarted(program string, err error) error {
	reason := err
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		reason = pathError.Err
	}
	return fault.Wrap(err, fault.PluginStartFailed, "start", program, "cannot start the provider %q: %s", program, reason)
}

// duplex joins the two pipes into one stream.
type duplex struct {
	io.Reader
	in  io.WriteCloser
	out io.Closer
}

func (d duplex) Write(p []byte) (int, error) { return d.in.Write(p) }

func (d duplex) Close() error {
	return errors.Join(d.in.Close(), d.out.Close())
}

// awaitStart waits for the start line and gives the stream behind it.
func (p *process) awaitStart(ctx context.Context, in io.WriteCloser, out io.ReadCloser, nonce string, req backend.OpenRequest) (io.ReadWriteCloser, error) {
	p.cmd.Stdin.(*os.File).Close()
	p.cmd.Stdout.(*os.File).Close()
	r := bufio.NewReaderSize(out, 4*provider.MaxData)
	started := make(chan error, 1)
	go func() {
		noise, err := provider.AwaitStart(r, nonce)
		if noise != "" {
			req.Log.Info("the provider printed before its start line", "text", noise)
		}
		if err != nil && noise != "" {
			err = fmt.Errorf("%w; it printed %q", err, first(noise, 200))
		}
		started <- err
	}()
	var err error
	select {
	case err = <-started:
	case <-ctx.Done():
		err = fmt.Errorf("it did not start within its limit: %w", context.Cause(ctx))
	}
	if err != nil {
		in.Close()
		out.Close()
		return nil, err
	}
	return duplex{r, in, out}, nil
}

// environment is what a provider gets of ours: names that every program needs,
// those that the profile names, and the protocol's own (plugins.md 28).
func environment(environ, pass []string, nonce string, depth int) []string {
	env := []string{"AFIELD_PROVIDER=1", "AFIELD_NONCE=" + nonce, fmt.Sprintf("AFIELD_DEPTH=%d", depth)}
	for _, e := range environ {
		name, _, _ := strings.Cut(e, "=")
		if isPlain(name) || slices.Contains(pass, name) {
			env = append(env, e)
		}
	}
	return env
}

func isPlain(name string) bool {
	switch name {
	case "PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR",
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR":
		return true
	}
	return strings.HasPrefix(name, "LC_")
}

// stop ends the program: end of input, then TERM and KILL to its group.
func (p *process) stop() {
	p.once.Do(func() {
		if p.conn != nil {
			p.conn.Close()
		}
		for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
			select {
			case <-p.exited:
			case <-time.After(stopWait):
			}
			// The group outlives its leader where the program left children.
			syscall.Kill(-p.cmd.Process.Pid, signal)
		}
		close(p.ended)
		<-p.reaped
		p.guard.stop()
	})
}

// explain adds how the program ended and the last it said to the error of a
// start that failed.
func (p *process) explain(err error) error {
	if code := fault.CodeOf(err); code != "" && code != fault.PluginCrashed && code != fault.PluginStartFailed {
		return err
	}
	text := fmt.Sprintf("the provider %q did not start: %s", p.argv[0], err)
	if state := p.cmd.ProcessState; state != nil {
		text += fmt.Sprintf(" (%s)", state)
	}
	if said := p.stderr.text(); said != "" {
		text += fmt.Sprintf("; its last words: %s", clip(said, stderrTail))
	}
	return fault.Wrap(err, fault.PluginStartFailed, "start", p.argv[0], "%s", text)
}

// first keeps the beginning of a text.
func first(s string, n int) string {
	return strings.ToValidUTF8(s[:min(n, len(s))], "\uFFFD")
}

// clip keeps the end of a text.
func clip(s string, n int) string {
	s = strings.TrimSpace(s)
	return strings.ToValidUTF8(s[max(0, len(s)-n):], "\uFFFD")
}

// tail keeps the last bytes that are written to it.
type tail struct {
	mu  sync.Mutex
	max int
	b   []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if over := len(t.b) - t.max; over > 0 {
		t.b = append(t.b[:0], t.b[over:]...)
	}
	return len(p), nil
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b)
}
