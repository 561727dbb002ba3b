// Package cmd is the command line of afield: one file per command, each of
// which parses flags into an options struct and hands it to a function that
// knows no flags.
//
// Rules of output: the result goes to stdout and nothing else does; all other
// words go to stderr; colour, tables and progress appear on a terminal only.
package cmd

import (
	"io"
	"os"

	"github.com/mattn/go-isatty"
)

// Streams are what a command reads from and writes to, and the facts of the
// process around it. Tests make their own.
type Streams struct {
	In      io.Reader
	Out     io.Writer
	Err     io.Writer
	Environ []string
	Dir     func() (string, error) // the directory in which afield was started
	// Terminal reports whether a stream of the three is a terminal.
	Terminal func(stream any) bool
}

// SystemStreams are those of this process.
func SystemStreams() *Streams {
	return &Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		Environ:  os.Environ(),
		Dir:      os.Getwd,
		Terminal: isTerminal,
	}
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// getenv gives a variable of the environment, "" when it is not set.
func (s *Streams) getenv(name string) string {
	for i := len(s.Environ) - 1; i >= 0; i-- {
		if e := s.Environ[i]; len(e) > len(name) && e[len(name)] == '=' && e[:len(name)] == name {
			return e[len(name)+1:]
		}
	}
	return ""
}
