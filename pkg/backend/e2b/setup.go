package e2b

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"

	"github.com/afield-dev/afield/pkg/backend/e2b/wire"
	"github.com/afield-dev/afield/pkg/fault"
)

// setupScript makes the private folder and, in $2 if that is not empty, the
// working directory, and tells what is needed later. The folder must be a real
// directory of this user (OW-4, RS-14).
const setupScript = `
d=$HOME/.afield
mkdir -m 700 -p -- "$d" "$d/st" "$d/run" || exit 3
for x in "$d" "$d/st" "$d/run"; do
  [ -d "$x" ] && [ ! -h "$x" ] && [ -O "$x" ] && chmod 700 -- "$x" || { echo "$x is not a private directory" >&2; exit 4; }
done
if [ -n "$1" ]; then mkdir -p -- "$1" || exit 5; fi
printf '%s\0%s\0%s\0' "$d" "$HOME" "$PATH"
`

// prepared gives the setup of the sandbox, doing it first if no command has
// done it yet. Several callers wait for one attempt.
func (s *session) prepared(ctx context.Context) (*setup, error) {
	for {
		if _, err := s.dial(ctx); err != nil {
			return nil, err
		}
		s.mu.Lock()
		if s.rec.Setup != nil {
			defer s.mu.Unlock()
			return s.rec.Setup, nil
		}
		wait, mine := s.ready, s.ready == nil
		if mine {
			s.ready = make(chan struct{})
		}
		s.mu.Unlock()
		if mine {
			return s.prepare(ctx)
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// root gives our folder in a sandbox that is prepared.
func (s *session) root() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rec.Setup.Root
}

// prepare runs the script and looks at the environment at the same time.
func (s *session) prepare(ctx context.Context) (*setup, error) {
	set, err := s.learn(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.ready)
	s.ready = nil
	if err != nil {
		return nil, err
	}
	rec := *s.rec
	rec.Setup = set
	client := s.client
	s.keep(&rec)
	s.client = client
	return set, nil
}

func (s *session) learn(ctx context.Context) (*setup, error) {
	cwd := ""
	if s.made {
		cwd = s.cfg.cwd
	}
	var envs map[string]string
	var envErr error
	var wg sync.WaitGroup
	wg.Go(func() {
		envErr = s.use(ctx, func(c *wire.Client) (err error) { envs, err = c.Envs(ctx); return err })
	})
	r, err := s.shell(ctx, setupScript, cwd)
	wg.Wait()
	if err == nil {
		err = envErr
	}
	if err != nil {
		return nil, notPrepared(s.diagnose(err))
	}
	parts := strings.Split(string(r.stdout), "\x00")
	if !r.end.Exited || r.end.ExitCode != 0 || len(parts) != 4 || !path.IsAbs(parts[0]) || !path.IsAbs(parts[1]) {
		return nil, world(fmt.Errorf("%s", r.said()), fault.BackendProtocol, "the e2b sandbox could not be prepared: %s", r.said()).
			WithHint("the template needs a POSIX shell, mkdir and a home directory that its user can write")
	}
	return &setup{Root: parts[0], Home: parts[1], Path: parts[2], Scrub: credentials(envs)}, nil
}

// notPrepared gives the code and the next step of a setup that the daemon has
// refused; what says something of the sandbox as a whole stays as it is.
func notPrepared(err error) error {
	var e *wire.Error
	if fault.CodeOf(err) != "" || !errors.As(err, &e) {
		return err
	}
	return world(err, fault.BackendProtocol, "the e2b sandbox could not be prepared: %s", detail(e)).
		WithHint("look at the sandbox with `afield sandbox info`, or use another one")
}

// credentials gives the names that EN-1 keeps from programs.
func credentials(envs map[string]string) []string {
	var names []string
	for n := range envs {
		up := strings.ToUpper(n)
		secret := strings.HasPrefix(up, "DSH_") || strings.HasPrefix(up, "AFIELD_")
		for _, word := range []string{"KEY", "PASSWORD", "SECRET", "TOKEN"} {
			secret = secret || strings.Contains(up, word)
		}
		if secret {
			names = append(names, n)
		}
	}
	return sorted(names)
}
