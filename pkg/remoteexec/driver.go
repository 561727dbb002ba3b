package remoteexec

import (
	"context"
	"io"
	"time"
)

// Driver is what a backend supplies; New builds the contract on it. A driver
// starts programs, moves raw bytes, delivers signals to trees and tells whether
// one lives. It knows nothing of caps, spill files, drains or ladders.
//
// Methods may run at the same time. Errors are *fault.Error.
type Driver interface {
	// Facts is constant for the life of the driver.
	Facts() Facts
	// LookPath searches the effective PATH of the world (remoteexec.md 4). The
	// core has checked the command's shape.
	LookPath(ctx context.Context, command string, env Env) (string, error)
	// Start starts a program and returns when it is known to run, or why not.
	Start(ctx context.Context, spec StartSpec) (Proc, error)
	// StartTerminal does so on a new pseudo-terminal of the given size.
	StartTerminal(ctx context.Context, spec TerminalSpec) (TerminalProc, error)
}

// Facts are what the conformance suite and the core must know of a backend.
type Facts struct {
	Backend string
	// Remote: starts take round trips, and a connection can be lost.
	Remote bool
	// Signals: a death by signal is reported as a fact (OC-3).
	Signals bool
	// Pauses: output that nobody reads stops the program instead of filling
	// our memory. Without it the core applies the ceiling of remoteexec.md 12.
	Pauses bool
	// InputWait: TT-14 can be proven.
	InputWait bool
	// ReservedEnv are names that the service refuses to set or remove (EN-11).
	ReservedEnv []string
	// Poll is the cadence of probes for quiescence (TE-10).
	Poll time.Duration
}

// StartSpec is a checked request. Files that are set are given to the child
// itself where the backend can; otherwise the driver offers pipes and the core
// copies.
type StartSpec struct {
	Argv   []string
	Cwd    string
	Set    map[string]string
	Remove []string
	Grace  time.Duration // what the world should apply if it ends the tree for us
	Stdin  StdinMode     // StdinIgnore, StdinPipe or StdinInherit
	// InheritStdin, InheritStdout, InheritStderr: pass these on themselves if
	// possible; a driver that did returns nil for that stream of the Proc.
	InheritStdin  io.Reader
	InheritStdout io.Writer
	InheritStderr io.Writer
}

// Proc is a started program.
type Proc interface {
	PID() int
	// Stdin, Stdout, Stderr are nil where the child got a descriptor itself.
	// Reads end with io.EOF, or with an EXEC_TRANSPORT_… error. Closing an
	// output gives the child a broken pipe.
	Stdin() io.WriteCloser
	Stdout() io.ReadCloser
	Stderr() io.ReadCloser
	// Wait waits for the root's end, however long its pipes stay open
	// (OC-11). It is called once.
	Wait() (Outcome, error)
	// Signal sends SIGTERM or SIGKILL to the whole tree. An error means that
	// the delivery is not proven.
	Signal(ctx context.Context, name string) error
	// Members lists the live members of the tree, the root included. An empty
	// list proves quiescence; an error proves nothing.
	Members(ctx context.Context) ([]int, error)
	// Release frees what is held for Signal and Members once the tree is known
	// to be gone. Nothing is signalled or probed after it (TE-4).
	Release()
}

// TerminalProc is a started program on a terminal.
type TerminalProc interface {
	PID() int
	io.ReadWriteCloser
	Resize(ctx context.Context, rows, cols int) error
	Foreground(ctx context.Context) (*Foreground, error)
	// SignalGroup sends a signal to a group that Foreground named; delivery is
	// proven by the kill's own result (TT-20).
	SignalGroup(ctx context.Context, group int, name string) error
	Wait() (Outcome, error)
	// Terminate ends the session's members in the order of TT-23 and returns
	// the ids of survivors.
	Terminate(ctx context.Context, grace time.Duration) (survivors []int, err error)
}
