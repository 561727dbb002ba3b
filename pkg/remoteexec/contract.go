// Package remoteexec is the process contract: programs started by an explicit
// argument vector, bounded output, spill files, termination of whole trees, and
// terminals, with the same semantics on every backend.
//
// Runtime is what consumers, wrappers and the conformance suite (package
// exectest) see. A backend supplies a Driver, and New puts the shared rules on
// top of it once. Rules are numbered in the published specification; comments
// cite them as "OC-7" or "remoteexec.md 9".
package remoteexec

import (
	"context"
	"io"
	"time"
)

// MaxDelay bounds every delay in the product (SP-3).
const MaxDelay = 2147483647 * time.Millisecond

// Runtime is one world's processes. All methods may run at the same time.
// Every error is a *fault.Error with a code EXEC_… or BACKEND_….
type Runtime interface {
	// Facts is constant: what this world can and cannot do.
	Facts() Facts

	// LookPath gives the absolute path of a program in the world
	// (remoteexec.md 4). Explicit entries of env take part.
	LookPath(ctx context.Context, command string, env Env) (string, error)

	// Spawn checks spec and starts the program. The handle is returned at once;
	// a failed start arrives as its outcome's error. When ctx ends the tree is
	// terminated as by Handle.Terminate. The caller needs not close a handle.
	Spawn(ctx context.Context, spec Spec) (Handle, error)

	// OpenTerminal starts a program on a new pseudo-terminal. ctx governs the
	// allocation only (TT-4); the caller ends the terminal with Terminate.
	OpenTerminal(ctx context.Context, spec TerminalSpec) (Terminal, error)

	// Shutdown refuses new work, ends everything that was started here, and
	// waits for it (remoteexec.md 16). It may be called twice.
	Shutdown(ctx context.Context) error

	// HardStop is the last pass of a program that must end now (HX-2): it sends
	// KILL to every tree and terminal still owned and waits for nothing. It
	// never fails or panics, and may be called at any time.
	HardStop()
}

// Env is the explicit environment of a start: Set adds or replaces, Remove
// unsets (a tombstone, EN-4). A name in both is an invalid request.
type Env struct {
	Set    map[string]string
	Remove []string
}

// StdinMode says where the input comes from.
type StdinMode int

const (
	// StdinIgnore reads end-of-file at once.
	StdinIgnore StdinMode = iota
	// StdinPipe gives Handle.Stdin.
	StdinPipe
	// StdinData sends Spec.StdinData, then end-of-file.
	StdinData
	// StdinInherit passes Spec.InheritStdin on: locally the descriptor itself.
	StdinInherit
)

// OutputMode says where an output stream goes.
type OutputMode int

const (
	// OutputCollect keeps the last MaxBytes bytes, and the whole in a spill file
	// if asked.
	OutputCollect OutputMode = iota
	// OutputPipe gives the raw bytes to the caller.
	OutputPipe
	// OutputInherit sends them to Output.To: locally the descriptor itself.
	OutputInherit
)

// Output describes one output stream.
type Output struct {
	Mode     OutputMode
	MaxBytes int64     // of OutputCollect, at least 1
	SpillMax int64     // 0 = no spill file
	To       io.Writer // of OutputInherit; an *os.File is passed on itself where that is possible
}

// Spec is a request to start a program. No field has a default (SP-1).
type Spec struct {
	Argv         []string
	Cwd          string // absolute, in the world
	Env          Env
	Stdin        StdinMode
	StdinData    []byte
	InheritStdin io.Reader
	Stdout       Output
	Stderr       Output
	Grace        time.Duration
	// Lease, unless 0, lets the tree die in the world when our side has been gone
	// for so long, killed or cut off. Where everything dies with its owner that
	// holds anyway; a world that cannot promise it refuses (HX-3).
	Lease time.Duration
	// AllowEnvDrop lets entries that a service reserves be dropped and listed
	// instead of refusing them (EN-11).
	AllowEnvDrop bool
}

// Outcome is how a program ended: exactly one of a code and a signal.
type Outcome struct {
	ExitCode int    // 0 to 255; meaningful when Signal is ""
	Signal   string // "SIGTERM", …; only where the world reports it as a fact
}

// Report is what is known after settlement beside the outcome.
type Report struct {
	Outcome    Outcome
	Started    bool
	Incomplete bool // of any stream
	Stdout     StreamReport
	Stderr     StreamReport
	EnvDropped []string // EN-11
}

// StreamReport is what is known of one output stream after settlement.
type StreamReport struct {
	// Bytes is what came through our hands; -1 where the child wrote to a
	// descriptor of ours itself, or the caller reads the raw stream.
	Bytes int64
	// Truncated: bytes before the collected window are gone from memory.
	Truncated bool
	// Incomplete: the drain after the exit ran out, because a descendant holds
	// the stream (OC-8), or the connection was lost.
	Incomplete bool
	// SpillPath is the file with the whole stream, while it stands intact; it
	// lies in the world SpillWorld: "host".
	SpillPath  string
	SpillWorld string
	// Err is why the stream ended before its end, where that is known:
	// EXEC_OUTPUT_OVERFLOW, a lost connection, or the failure of the writer that
	// the output was passed on to.
	Err error
}

// Stream is an output stream.
type Stream int

// The output streams.
const (
	Stdout Stream = 1
	Stderr Stream = 2
)

// Handle is a started program. Settled (Done is closed) and quiescent (no live
// member of the tree) are two facts. Methods may run at the same time.
type Handle interface {
	// PID is the process id in the world, or 0 while it is unknown (SP-6).
	PID() int
	// Started is closed once the program runs or its start has failed.
	Started() <-chan struct{}
	// Stdin is the input with StdinPipe, else nil. A write waits until the world
	// has taken the bytes, also while the start is pending (SI-5); after
	// Terminate it is dropped (SI-8), after the exit it fails (SI-9). Close sends
	// end-of-file. One write at a time.
	Stdin() io.WriteCloser
	// Pipe is the raw stream with OutputPipe, else nil. It ends with io.EOF
	// after the last byte, or with an error if the connection was lost. The
	// caller closes it; closing early gives the child a broken pipe.
	Pipe(s Stream) io.ReadCloser
	// Collected is the reader with OutputCollect, else nil.
	Collected(s Stream) *Collected
	// Done is closed at settlement.
	Done() <-chan struct{}
	// Wait waits for settlement or the end of ctx. The error says that the
	// program could not be started or that its fate is unknown (OC-2).
	Wait(ctx context.Context) (Report, error)
	// Terminate asks for TERM, grace, KILL on the whole tree and returns at
	// once. Only the first call counts (TE-3).
	Terminate()
	// WaitForExit waits until the tree is quiescent: true, or until ctx ends:
	// false (TE-8). Its error is EXEC_CLEANUP_FAILED with the survivors.
	WaitForExit(ctx context.Context) (bool, error)
	// Survivors lists the live members of the tree that can be seen now.
	Survivors() []int
}

// TerminalSpec is a request to start a program on a terminal.
type TerminalSpec struct {
	Argv  []string
	Cwd   string
	Env   Env
	Rows  int // 1 to 65535
	Cols  int
	Grace time.Duration
}

// Foreground is the foreground process group of a terminal (TT-13, TT-14).
type Foreground struct {
	ProcessGroupID int
	InputWaiting   bool // proven; false means not proven
}

// Terminal is a program on a pseudo-terminal.
type Terminal interface {
	PID() int
	// Write sends bytes exactly (TT-8): EXEC_SESSION_EXITED after the end,
	// EXEC_SESSION_CLOSING after Terminate began.
	io.Writer
	// Read gives the terminal's output in order and ends with io.EOF.
	io.Reader
	Resize(ctx context.Context, rows, cols int) error
	// Foreground gives nil when there is no foreground group.
	Foreground(ctx context.Context) (*Foreground, error)
	// Signal sends one of SIGINT, SIGTERM, SIGKILL, SIGTSTP, SIGHUP to the
	// foreground group and gives its id (TT-17 to TT-21).
	Signal(ctx context.Context, name string) (int, error)
	Done() <-chan struct{}
	// Wait gives how the top-level program ended.
	Wait(ctx context.Context) (Outcome, error)
	// Terminate ends every visible member of the terminal's session and
	// returns when nothing of it is left or in flight (TT-22).
	Terminate(ctx context.Context) error
}
