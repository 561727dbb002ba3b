package e2b

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/afield-dev/afield/pkg/backend/e2b/wire"
)

// maxScriptOutput bounds what is kept of a script's output.
const maxScriptOutput = 32 << 20

// result is what a script gave.
type result struct {
	pid    int
	stdout []byte
	stderr []byte
	end    wire.EndEvent
}

// said gives the last line of the errors, for messages.
func (r result) said() string {
	text := strings.TrimSpace(string(r.stderr))
	if i := strings.LastIndexByte(text, '\n'); i >= 0 {
		text = text[i+1:]
	}
	if text == "" {
		text = r.end.Status
	}
	return text
}

// denied reports whether the errors of a program say that the world refused.
// A program's status does not tell.
func (r result) denied() bool {
	text := strings.ToLower(string(r.stderr))
	return strings.Contains(text, "permission denied") || strings.Contains(text, "operation not permitted")
}

// scriptEnv is the environment of a script: messages and times that do not
// depend on the sandbox's settings.
func scriptEnv() map[string]string { return map[string]string{"LC_ALL": "C", "TZ": "UTC0"} }

// run starts a program for our own purposes and waits for its end. Arguments
// are passed as they are; they must be UTF-8.
func (s *session) run(ctx context.Context, cmd string, args ...string) (result, error) {
	var r result
	err := s.use(ctx, func(c *wire.Client) error {
		r = result{}
		return runOn(ctx, c, &r, cmd, args)
	})
	return r, err
}

// shell runs a script of ours. It arrives as one argument, its own arguments as
// positional parameters, so nothing is quoted.
func (s *session) shell(ctx context.Context, script string, args ...string) (result, error) {
	return s.run(ctx, "/bin/sh", append([]string{"-c", script, "sh"}, args...)...)
}

func runOn(ctx context.Context, c *wire.Client, r *result, cmd string, args []string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	root := "/"
	no := false
	st, err := c.Open(ctx, wire.MethodStart, wire.StartRequest{
		Process: wire.ProcessConfig{Cmd: cmd, Args: args, Envs: scriptEnv(), Cwd: &root}, Stdin: &no,
	}, keepalive)
	if err != nil {
		return err
	}
	defer st.Close()
	ended := false
	for {
		ev, err := st.NextEvent()
		switch {
		case err == io.EOF && ended:
			return nil
		case err == io.EOF:
			return fmt.Errorf("%s: the stream ended without the program's end", cmd)
		case err != nil && ended:
			return nil
		case err != nil:
			return err
		case ev.Start != nil:
			r.pid = int(ev.Start.PID)
		case ev.Data != nil:
			r.stdout = appendBounded(r.stdout, ev.Data.Stdout)
			r.stderr = appendBounded(r.stderr, ev.Data.Stderr)
		case ev.End != nil:
			r.end, ended = *ev.End, true
		}
	}
}

func appendBounded(dst, p []byte) []byte {
	return append(dst, p[:min(len(p), maxScriptOutput-len(dst))]...)
}
