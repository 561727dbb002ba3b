// Package search finds files by name and lines by pattern in a world
// (remotefs.md 18): by ripgrep beside the files where the world has it, else by a
// walk with the same semantics and Go's regular expressions. Answers are bounded
// and in byte order of the paths.
package search

import (
	"context"
	"errors"
	"path"
	"strings"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// Limits are the bounds of a search; see the block fs.search of a profile.
type Limits struct {
	RawOutput int64 // bytes of ripgrep's output, or of one file for the fallback
	Stderr    int64
	Timeout   time.Duration // of the whole search
	Grace     time.Duration // between TERM and KILL
}

// Searcher searches one world. Methods may run at the same time. Errors are
// *fault.Error, SEARCH_… unless the world itself failed.
type Searcher struct {
	Files remotefs.FS
	// Procs runs ripgrep; nil: only the fallback is used.
	Procs remoteexec.Runtime
	// Walker looks through trees for the fallback; nil: ripgrep alone.
	Walker remotefs.Arranger
	// Cwd is the directory that patterns and relative paths belong to, canonical.
	Cwd    string
	Limits Limits
	// Fallback is set by a search that did without ripgrep.
	Fallback bool
}

// vcs are the folders of version control that glob leaves out.
func vcs() []string { return []string{".git", ".svn", ".hg", ".bzr", ".jj", ".sl"} }

// bounded applies the time of a search.
func (s *Searcher) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.Limits.Timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, s.Limits.Timeout, fault.ErrDeadline)
}

// errNoProgram says that the world has no ripgrep.
var errNoProgram = errors.New("no rg in the world")

// ripgrep runs rg and gives its output; found is false when rg says that there
// was nothing.
func (s *Searcher) ripgrep(ctx context.Context, op string, args []string) (out []byte, found bool, err error) {
	if s.Procs == nil {
		return nil, false, errNoProgram
	}
	h, err := s.Procs.Spawn(ctx, remoteexec.Spec{
		Argv: append([]string{"rg"}, args...), Cwd: s.Cwd, Grace: s.Limits.Grace,
		Stdout: remoteexec.Output{Mode: remoteexec.OutputCollect, MaxBytes: s.Limits.RawOutput},
		Stderr: remoteexec.Output{Mode: remoteexec.OutputCollect, MaxBytes: s.Limits.Stderr},
	})
	if err != nil {
		return nil, false, s.startFailed(ctx, op, err)
	}
	report, err := h.Wait(context.WithoutCancel(ctx))
	switch {
	case ctx.Err() != nil:
		return nil, false, fault.Aborted(ctx, fault.SearchAborted, op, "")
	case err != nil:
		return nil, false, s.startFailed(ctx, op, err)
	case report.Outcome.Signal == "" && report.Outcome.ExitCode == 127:
		return nil, false, errNoProgram
	}
	messages, _ := h.Collected(remoteexec.Stderr).ReadText(0)
	if err := verdict(op, report, messages.Text); err != nil {
		return nil, false, err
	}
	chunk, err := h.Collected(remoteexec.Stdout).ReadFrom(0)
	return chunk.Bytes, report.Outcome.ExitCode == 0, err
}

// startFailed tells a world without ripgrep from one that failed.
func (s *Searcher) startFailed(ctx context.Context, op string, err error) error {
	switch {
	case ctx.Err() != nil:
		return fault.Aborted(ctx, fault.SearchAborted, op, "")
	case fault.Is(err, fault.ExecProgramNotFound):
		return errNoProgram
	}
	return err
}

// verdict gives the failure that status and messages of rg tell (case 299, 300).
func verdict(op string, r remoteexec.Report, messages string) error {
	text := strings.TrimSpace(messages)
	switch o := r.Outcome; {
	case o.Signal != "":
		return fault.New(fault.SearchFailed, op, "", "the search was ended by %s", o.Signal)
	case o.ExitCode > 1 && invalidPattern(text):
		return fault.New(fault.SearchInvalidPattern, op, "", "the pattern cannot be used: %s", text)
	case o.ExitCode > 1 && strings.HasPrefix(text, "No files were searched"):
		return nil
	case o.ExitCode > 1:
		return fault.New(fault.SearchFailed, op, "", "the search failed: %s", text)
	case r.Stdout.Truncated || r.Stdout.Incomplete:
		return overflow(op)
	}
	return nil
}

func invalidPattern(text string) bool {
	return strings.Contains(text, "regex parse error") || strings.Contains(text, "error parsing glob")
}

// overflow says that there was more output than is looked at.
func overflow(op string) error {
	return fault.New(fault.SearchRawOutputOverflow, op, "", "the search gave more output than is looked at").
		WithHint("narrow the pattern or the path, or raise fs.search.rawOutputMaxBytes")
}

// Display gives a path as it is shown: relative to the working directory when
// it is inside, "." for that itself, else unchanged (case 305).
func Display(cwd, p string) string {
	if !path.IsAbs(p) {
		return path.Clean(p)
	}
	p = path.Clean(p)
	switch {
	case p == cwd:
		return "."
	case remotefs.PathContains(cwd, p):
		return strings.TrimPrefix(p, strings.TrimSuffix(cwd, "/")+"/")
	}
	return p
}

// failed gives an error of the fallback the code of a search.
func failed(ctx context.Context, op string, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fault.Aborted(ctx, fault.SearchAborted, op, "")
	}
	switch code := fault.CodeOf(err); {
	case strings.HasPrefix(string(code), "SEARCH_"), strings.HasPrefix(string(code), "BACKEND_"):
		return err
	}
	return fault.Wrap(err, fault.SearchFailed, op, "", "the search failed: %s", err)
}
