package local

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/afield-dev/afield/pkg/remoteexec"
)

// streams are the three descriptors of a child and our ends of its pipes.
type streams struct {
	files [3]*os.File // the child's
	own   [3]bool     // ours to close after the start
	ours  [3]*os.File // nil where the child has a descriptor itself
}

// openStreams makes pipes, or passes descriptors on themselves.
func openStreams(spec remoteexec.StartSpec) (streams, error) {
	var s streams
	if err := s.openStdin(spec); err != nil {
		return s, err
	}
	if err := s.openOutput(1, spec.InheritStdout); err != nil {
		return s, err
	}
	return s, s.openOutput(2, spec.InheritStderr)
}

func (s *streams) openStdin(spec remoteexec.StartSpec) error {
	file, passed := spec.InheritStdin.(*os.File)
	var err error
	switch {
	case spec.Stdin == remoteexec.StdinIgnore:
		s.own[0] = true
		s.files[0], err = os.Open(os.DevNull)
	case spec.Stdin == remoteexec.StdinInherit && passed:
		s.files[0] = file
	default:
		s.own[0] = true
		s.files[0], s.ours[0], err = pipe(false)
	}
	return err
}

func (s *streams) openOutput(i int, to any) error {
	if file, passed := to.(*os.File); passed {
		s.files[i] = file
		return nil
	}
	var err error
	s.own[i] = true
	s.ours[i], s.files[i], err = pipe(true)
	return err
}

// pipe makes a pipe whose end of ours can be waited for without a thread; the
// child's end blocks, as programs expect.
func pipe(weRead bool) (r, w *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, os.NewSyscallError("pipe2", err)
	}
	ours := fds[1]
	if weRead {
		ours = fds[0]
	}
	unix.SetNonblock(ours, true)
	return os.NewFile(uintptr(fds[0]), "|0"), os.NewFile(uintptr(fds[1]), "|1"), nil
}

// child gives the descriptors that the child gets.
func (s *streams) child() []uintptr {
	return []uintptr{s.files[0].Fd(), s.files[1].Fd(), s.files[2].Fd()}
}

// closeChild closes the child's ends that are ours to close.
func (s *streams) closeChild() {
	for i, f := range s.files {
		if s.own[i] && f != nil {
			f.Close()
			s.own[i] = false
		}
	}
}

func (s *streams) closeAll() {
	s.closeChild()
	for _, f := range s.ours {
		if f != nil {
			f.Close()
		}
	}
}
