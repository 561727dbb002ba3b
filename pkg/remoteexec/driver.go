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
// Methods may run at the same time. Errors are *fault.Error. An error with code
// BACKEND_WORLD_GONE proves that nothing runs any more (TE-13).
type Driver interface {
	// Facts is constant for the life of the driver.
	Facts() Facts
	// LookPath searches the effective PATH of the world (remoteexec.md 4). The
	// core has checked the command's shape, races the call against ctx, and
	// checks that the answer is one absolute path.
	LookPath(ctx context.Context, command string, env Env) (string, error)
	// Start starts a program and returns when it is known to run, or why not.
	// If ctx ends before the start request was sent, nothing is sent and the
	// answer is EXEC_CANCELLED (RS-2); from then on ctx has no meaning: the
	// driver bounds the handshake by its own deadline (RS-4), and the core
	// stops what arrives late. A failure after a process may exist leaves
	// nothing behind (RS-6).
	Start(ctx context.Context, spec StartSpec) (Proc, error)
	// StartTerminal does so on a new pseudo-terminal of the given size.
	StartTerminal(ctx context.Context, spec TerminalSpec) (TerminalProc, error)
}

// Facts are what callers, the core and the conformance suite must know of a
// backend.
type Facts struct {
	Backend string
	// Remote: starts take round trips, and a connection can be lost. Without it
	// Start is called before Spawn returns, so that the pid is known at once.
	Remote bool
	// StartFaults: a program that cannot be started is a typed start failure.
	// Without it the program may instead end with 126 or 127.
	StartFaults bool
	// Signals: a death by signal is reported as a fact (OC-3).
	Signals bool
	// Pauses: output that nobody reads stops the program instead of filling
	// our memory. Without it the core applies the ceiling of remoteexec.md 12.
	Pauses bool
	// EndsOutput: the world ends the outputs with its exit report and does not
	// tell whether a descendant still holds one, so a report is never Incomplete.
	EndsOutput bool
	// Terminals: StartTerminal works.
	Terminals bool
	// InputWait: TT-14 can be proven.
	InputWait bool
	// DiesWithOwner: what was started ends soon when our own process is killed
	// (HX-3).
	DiesWithOwner bool
	// Leases: StartSpec.Lease is kept.
	Leases bool
	// ReservedEnv are names that the service refuses to set or remove (EN-11).
	ReservedEnv []string
	// Poll is the cadence of probes for quiescence (TE-10); 0 = 20 ms.
	Poll time.Duration
}

// StartSpec is a checked request. Streams to be passed on are given to the
// child itself where the backend can; otherwise the driver offers pipes and the
// core copies.
type StartSpec struct {
	Argv   []string
	Cwd    string
	Set    map[string]string
	Remove []string
	// Grace is that of Spec, for a world that ends the tree by itself when the
	// connection is lost.
	Grace time.Duration
	// Lease is that of Spec; 0 = none.
	Lease time.Duration
	Stdin StdinMode // StdinIgnore, StdinPipe or StdinInherit
	// InheritStdin, InheritStdout, InheritStderr: pass these on themselves if
	// possible; a driver that did returns nil for that stream of the Proc.
	InheritStdin  io.Reader
	InheritStdout io.Writer
	InheritStderr io.Writer
}

// Proc is a started program. Methods may run at the same time. A Proc may also
// be a Terminator, a Quiescer and a HardKiller.
type Proc interface {
	// PID is greater than 1 (TE-11).
	PID() int
	// Stdin, Stdout, Stderr are nil where the child got a descriptor itself, and
	// Stdin also with StdinIgnore. Reads end with io.EOF, or with an
	// EXEC_TRANSPORT_… error. Closing an output gives the child a broken pipe
	// and ends a read that waits; closing Stdin sends end-of-file and ends a
	// write that waits. Where Facts.Pauses is false the core reads all the time,
	// so a driver may block in handing over a frame.
	Stdin() io.WriteCloser
	Stdout() io.ReadCloser
	Stderr() io.ReadCloser
	// Wait waits for the root's end, however long its pipes stay open
	// (OC-11). It is called once. Its error means that the fate is unknown.
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

// Terminator is a Proc whose world runs the whole ladder itself: TERM, grace,
// KILL, proof. The core then calls neither Signal nor, while it runs, Members.
type Terminator interface {
	// Terminate returns when the tree is proven gone (no survivors, no error),
	// or who survived, or why nothing is known. It may be called again after a
	// failure (TE-12).
	Terminate(ctx context.Context, grace time.Duration) (survivors []int, err error)
}

// Quiescer is a Proc whose world can wait for quiescence in one request, so
// that the core needs no polling.
type Quiescer interface {
	// WaitQuiescent returns nil when no live member is left. It returns soon
	// after ctx ends, with any error.
	WaitQuiescent(ctx context.Context) error
}

// HardKiller is a Proc or TerminalProc that HardStop can reach: one synchronous
// KILL to everything of it, without waiting.
type HardKiller interface {
	HardKill()
}

// TerminalProc is a started program on a terminal. Methods may run at the same
// time, Read and Write once each. It may also be a ForegroundSignaller and a
// HardKiller.
type TerminalProc interface {
	// PID is greater than 1.
	PID() int
	// Read gives the terminal's output and ends with io.EOF.
	Read(p []byte) (int, error)
	// EndOutput says that the program has ended and no more output is awaited:
	// Read gives what is queued, then io.EOF (TT-10).
	EndOutput()
	// Write returns when the terminal has taken the bytes, or soon after ctx
	// ends.
	Write(ctx context.Context, p []byte) (int, error)
	Resize(ctx context.Context, rows, cols int) error
	// Foreground gives nil where there is no foreground group.
	Foreground(ctx context.Context) (*Foreground, error)
	// SignalGroup sends a signal to a group that Foreground named; delivery is
	// proven by the kill's own result (TT-20).
	SignalGroup(ctx context.Context, group int, name string) error
	// Wait waits for the end of the top-level program. It is called once.
	Wait() (Outcome, error)
	// Terminate ends the session's members in the order of TT-23 and returns
	// the ids of survivors. It may be called again after a failure.
	Terminate(ctx context.Context, grace time.Duration) (survivors []int, err error)
	// Close frees the terminal and ends a Read that waits.
	Close() error
}

// ForegroundSignaller is a TerminalProc that inspects and signals in one
// request. It refuses SIGKILL for the top-level program's own group (TT-19).
type ForegroundSignaller interface {
	SignalForeground(ctx context.Context, name string) (group int, err error)
}
