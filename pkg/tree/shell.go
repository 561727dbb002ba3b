package tree

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
	"github.com/afield-dev/afield/pkg/remotefs"
	"github.com/afield-dev/afield/pkg/script"
)

// grace is what a program of ours gets between TERM and KILL.
const grace = 2 * time.Second

// Shell arranges entries by programs of package script, which it runs through
// the world's process contract: each method is one start.
type Shell struct{ procs remoteexec.Runtime }

var _ remotefs.Arranger = (*Shell)(nil)

// NewShell makes a Shell of a world's processes.
func NewShell(procs remoteexec.Runtime) *Shell { return &Shell{procs} }

// Run is a program that is running.
type Run struct {
	handle remoteexec.Handle
	out    io.ReadCloser
	*script.Answer
}

// Start starts a program; with input Run.Stdin takes what follows Call.Input.
func (s *Shell) Start(ctx context.Context, c script.Call, input bool) (*Run, error) {
	spec := remoteexec.Spec{
		Argv: c.Argv(), Cwd: "/", Grace: grace,
		Stdout: remoteexec.Output{Mode: remoteexec.OutputPipe},
		Stderr: remoteexec.Output{Mode: remoteexec.OutputCollect, MaxBytes: 4096},
	}
	if input {
		spec.Stdin = remoteexec.StdinPipe
	}
	h, err := s.procs.Spawn(ctx, spec)
	if err != nil {
		return nil, err
	}
	out := h.Pipe(remoteexec.Stdout)
	return &Run{handle: h, out: out, Answer: script.NewAnswer(out)}, nil
}

// Stdin is the input of a program that was started with one.
func (r *Run) Stdin() io.WriteCloser { return r.handle.Stdin() }

// Stop ends the program; End is to be called nevertheless.
func (r *Run) Stop() { r.handle.Terminate() }

// End waits for the end of the program and releases it. failed is why its
// answer could not be read, nil if it could.
func (r *Run) End(ctx context.Context, failed error) error {
	if failed != nil {
		r.handle.Terminate()
	} else {
		_, _ = io.Copy(io.Discard, r.out) // closing before the end would be a broken pipe
	}
	r.out.Close()
	report, err := r.handle.Wait(context.WithoutCancel(ctx))
	var refused *script.Failure
	switch {
	case failed == nil && err == nil && report.Outcome == remoteexec.Outcome{}:
		return nil
	case errors.As(failed, &refused):
		return refusal(refused)
	case err != nil:
		return err
	case failed != nil && !errors.Is(failed, io.ErrUnexpectedEOF) && !errors.Is(failed, script.ErrNoMarker):
		return failed
	}
	return &fault.Error{Code: fault.FSIOError, Err: errors.New(r.said(failed))}
}

// said gives the last line of the program's messages.
func (r *Run) said(failed error) string {
	chunk, err := r.handle.Collected(remoteexec.Stderr).ReadText(0)
	text := strings.TrimSpace(chunk.Text)
	if err == nil && text != "" {
		return text[strings.LastIndexByte(text, '\n')+1:]
	}
	if failed != nil {
		return failed.Error()
	}
	return "the program in the world failed"
}

// refusal gives the refusal of a program its code.
func refusal(f *script.Failure) error {
	switch f.Kind {
	case script.NotFound:
		return &fault.Error{Code: fault.FSNotFound, Err: f}
	case script.NotDirectory:
		return &fault.Error{Code: fault.FSNotDirectory, Err: f}
	case script.NotRegular:
		return &fault.Error{Code: fault.FSNotRegularFile, Err: f}
	case script.Guard:
		return &fault.Error{Code: fault.FSPermissionDenied, Err: f,
			Message: "refusing to remove what is or holds the root or home directory", Hint: "name what is inside it"}
	}
	if errno := f.Unwrap(); errno != nil {
		return errno
	}
	return &fault.Error{Code: fault.FSIOError, Err: f}
}

// ask runs a program and reads its answer.
func (s *Shell) ask(ctx context.Context, c script.Call, read func(*script.Answer) error) error {
	r, err := s.Start(ctx, c, false)
	if err != nil {
		return err
	}
	return r.End(ctx, read(r.Answer))
}

// do runs a program whose answer has no fields.
func (s *Shell) do(ctx context.Context, c script.Call) error {
	return s.ask(ctx, c, func(a *script.Answer) error { return script.ReadDone(a, c) })
}

// make runs a program that says whether it made something.
func (s *Shell) make(ctx context.Context, c script.Call) (made bool, err error) {
	err = s.ask(ctx, c, func(a *script.Answer) (err error) {
		made, err = script.ReadMade(a, c)
		return err
	})
	return made, err
}

// Mkdir makes a directory.
func (s *Shell) Mkdir(ctx context.Context, path string, mode int, parents bool) (bool, error) {
	return s.make(ctx, script.Mkdir(path, mode, parents))
}

// Remove removes an entry.
func (s *Shell) Remove(ctx context.Context, path string, recursive bool) error {
	return s.do(ctx, script.Remove(path, recursive))
}

// Move renames.
func (s *Shell) Move(ctx context.Context, from, to string, noReplace bool) error {
	return s.do(ctx, script.Move(from, to, noReplace))
}

// Copy copies.
func (s *Shell) Copy(ctx context.Context, from, to string, noReplace bool) error {
	return s.do(ctx, script.Copy(from, to, noReplace))
}

// Chmod sets permission bits.
func (s *Shell) Chmod(ctx context.Context, path string, mode int, recursive bool) error {
	return s.do(ctx, script.Chmod(path, mode, recursive))
}

// Link makes a symbolic link.
func (s *Shell) Link(ctx context.Context, text, path string) error {
	return s.do(ctx, script.Symlink(text, path))
}

// Touch sets the time of modification.
func (s *Shell) Touch(ctx context.Context, path string, at time.Time, exist bool) (bool, error) {
	return s.make(ctx, script.Touch(path, at, exist))
}

// Walk visits everything below a directory.
func (s *Shell) Walk(ctx context.Context, path string, o remotefs.WalkOptions, visit func(remotefs.Node) error) error {
	c := script.Walk(path, o.Names, o.Depth, o.Skip)
	var stopped error
	err := s.ask(ctx, c, func(a *script.Answer) error {
		trouble, err := script.ReadWalk(a, c, func(f script.Found) error {
			stopped = visit(nodeOf(f))
			return stopped
		})
		if err == nil && trouble != "" {
			stopped = visit(remotefs.Node{Type: remotefs.TypeOther, Err: errors.New(trouble)})
			err = stopped
		}
		return err
	})
	if stopped != nil {
		return stopped
	}
	return err
}

// nodeOf gives an entry in the words of the contract.
func nodeOf(f script.Found) remotefs.Node {
	n := remotefs.Node{Path: f.Path, Type: remotefs.TypeOther, Size: f.Size, Mode: f.Mode, ModTime: f.ModTime,
		State: f.State, Link: f.Link}
	switch f.Kind {
	case 'f':
		n.Type = remotefs.TypeFile
	case 'd':
		n.Type = remotefs.TypeDirectory
	case 'l':
		n.Type = remotefs.TypeSymlink
	}
	return n
}
