package profile

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
)

// Bounds of a secret (plugins.md 17).
const (
	maxSecretBytes     = 64 << 10
	secretCommandLimit = 10 * time.Second
)

// Secrets resolves references, once each, and masks what they gave. All methods
// may run at the same time.
type Secrets struct {
	// Environ is the caller's environment, also of commands.
	Environ []string
	// Dir is the caller's directory, Home the caller's home.
	Dir  string
	Home string

	limit    time.Duration // of a command; 0 = secretCommandLimit
	mu       sync.Mutex
	resolved map[string]string
	masks    []string
}

// Resolve gives the secret of a reference; name is the field, for messages. An
// empty secret counts as absent: "" for a default, an error for what somebody
// wrote.
func (s *Secrets) Resolve(ctx context.Context, name string, r Reference) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if secret, ok := s.resolved[name]; ok {
		return secret, nil
	}
	secret, err := s.find(ctx, name, r)
	if err != nil {
		return "", err
	}
	if secret == "" && !r.Default {
		return "", missing(name, r, "it is empty or not set")
	}
	if s.resolved == nil {
		s.resolved = map[string]string{}
	}
	s.resolved[name] = secret
	s.addMasks(secret)
	return secret, nil
}

func (s *Secrets) find(ctx context.Context, name string, r Reference) (string, error) {
	switch {
	case r.Env != "":
		return environ(s.Environ).get(r.Env), nil
	case r.File != "":
		return s.readFile(name, r)
	case r.Command != nil:
		return s.runCommand(ctx, name, r)
	}
	return "", nil
}

// missing says that a reference leads nowhere, by name and never by value.
func missing(name string, r Reference, why string) *fault.Error {
	return fault.New(fault.ProfileSecretMissing, "open", "", "%s refers to %s (%s): %s", name, r, r.origin.place(), why)
}

// String gives the reference as it is written in a profile.
func (r Reference) String() string {
	switch {
	case r.Env != "":
		return "${" + r.Env + "}"
	case r.File != "":
		return "{file: " + r.File + "}"
	case len(r.Command) > 0:
		return "{command: [" + r.Command[0] + ", …]}"
	}
	return ""
}

// readFile reads a key file that only its owner, the caller, can read. The
// checks are on the opened file, so a link counts as what it leads to.
func (s *Secrets) readFile(name string, r Reference) (string, error) {
	path := s.absolute(r)
	content, info, err := readBounded(path, maxSecretBytes, false)
	switch {
	case err != nil:
		return "", missing(name, r, reasonOf(err))
	case info.Mode().Perm()&0o077 != 0:
		return "", missing(name, r, "group or others may use the file").WithHint("chmod 600 %s", path)
	case !ownedByCaller(info.Sys()):
		return "", missing(name, r, "the file belongs to somebody else")
	case len(content) > maxSecretBytes:
		return "", missing(name, r, "the file is larger than 64 KiB")
	}
	return withoutNewline(content), nil
}

func ownedByCaller(sys any) bool {
	st, ok := sys.(*syscall.Stat_t)
	return ok && int(st.Uid) == syscall.Geteuid()
}

func withoutNewline(content []byte) string { return strings.TrimSuffix(string(content), "\n") }

// absolute gives the path of a key file: ~ is the home directory, and a
// relative path is joined to the directory of the profile that has it.
func (s *Secrets) absolute(r Reference) string {
	if rest, ok := strings.CutPrefix(r.File, "~/"); ok && s.Home != "" {
		return filepath.Join(s.Home, rest)
	}
	if filepath.IsAbs(r.File) {
		return r.File
	}
	if r.origin.isFile() {
		return filepath.Join(filepath.Dir(r.origin.Source), r.File)
	}
	return filepath.Join(s.Dir, r.File)
}

// runCommand runs a command of the user's in a group of its own and takes its
// output. Nothing of the group is left afterwards.
func (s *Secrets) runCommand(ctx context.Context, name string, r Reference) (string, error) {
	limit := s.limit
	if limit == 0 {
		limit = secretCommandLimit
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out := &capped{max: maxSecretBytes}
	cmd := exec.CommandContext(limited, r.Command[0], r.Command[1:]...)
	cmd.Env, cmd.Dir, cmd.Stdout = s.Environ, s.Dir, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if cmd.Process != nil {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	switch {
	case ctx.Err() != nil:
		return "", fault.Aborted(ctx, fault.ExecCancelled, "open", "")
	case limited.Err() != nil:
		return "", missing(name, r, "the command did not end within "+limit.String())
	case out.over:
		return "", missing(name, r, "the command gave more than 64 KiB")
	case err != nil:
		return "", missing(name, r, "the command failed: "+reasonOfExec(err))
	}
	return withoutNewline(out.kept.Bytes()), nil
}

func reasonOfExec(err error) string {
	var failed *exec.Error
	if errors.As(err, &failed) {
		return failed.Err.Error()
	}
	return reasonOf(err)
}

// capped keeps at most max bytes and notes that there were more.
type capped struct {
	kept bytes.Buffer
	max  int
	over bool
}

func (c *capped) Write(p []byte) (int, error) {
	if c.kept.Len()+len(p) > c.max {
		c.over = true
		return len(p), nil
	}
	return c.kept.Write(p)
}
