package keeper

import (
	"time"

	"github.com/afield-dev/afield/pkg/remoteexec"
)

// Kind is what a held program is.
type Kind string

// The kinds of held programs.
const (
	KindTerminal Kind = "terminal"
	KindShell    Kind = "shell" // a terminal with a persistent shell
	KindJob      Kind = "job"
)

// Hold asks for a program to be held.
type Hold struct {
	Label string `json:"label,omitempty"`
	// RetainBytes are the last bytes kept of each output.
	RetainBytes int64 `json:"retainBytes"`
	// SpillBytes bounds the file that has the whole of an output of a job; 0 = none.
	SpillBytes int64 `json:"spillBytes,omitempty"`
	// Record is a file of the host, absolute, that gets a recording of the
	// terminal in asciicast v2; "" = none.
	Record string `json:"record,omitempty"`
	// Shell makes the terminal's program a persistent shell.
	Shell bool `json:"shell,omitempty"`
}

// Info is what is known of a held program. Facts that are not known are null.
type Info struct {
	ID        string    `json:"id"`
	Name      *string   `json:"name"`
	PID       int       `json:"pid"`
	Kind      Kind      `json:"kind"`
	Backend   string    `json:"backend"`
	StartedAt time.Time `json:"startedAt"`
	Argv      []string  `json:"argv"`
	// State is running, stopping, completed, killed, or failed: its fate is not
	// known.
	State string `json:"state"`
	ExitFacts
	// Offset is the number of bytes that the program has written; of a job, on
	// its standard output.
	Offset int64 `json:"offset"`
	// Problem says why the fate is not known.
	Problem *string `json:"problem"`
}

// ExitFacts say how a program has ended; both are null while it runs or where
// nobody knows.
type ExitFacts struct {
	ExitCode *int    `json:"exitCode"`
	Signal   *string `json:"signal"`
}

func exitFacts(o remoteexec.Outcome) ExitFacts {
	if o.Signal != "" {
		return ExitFacts{Signal: &o.Signal}
	}
	return ExitFacts{ExitCode: &o.ExitCode}
}

// The parameters and results of the methods held.*; content travels on the ports.
type (
	heldParams struct {
		ID      string `json:"id"`
		Port    int    `json:"port,omitempty"`
		From    int64  `json:"from,omitempty"`
		Max     int64  `json:"maxBytes,omitempty"`
		WaitMs  int64  `json:"waitMs,omitempty"`
		EOF     bool   `json:"eof,omitempty"`
		Input   bool   `json:"input,omitempty"`
		Rows    int    `json:"rows,omitempty"`
		Cols    int    `json:"cols,omitempty"`
		Signal  string `json:"signal,omitempty"`
		Command string `json:"command,omitempty"`
	}
	// ReadResult is the result of a read; the bytes are those before NextOffset.
	ReadResult struct {
		From       int64 `json:"from"`
		NextOffset int64 `json:"nextOffset"`
		Lossy      bool  `json:"lossy"`
		// Ended: nothing is added any more.
		Ended bool `json:"ended"`
		Info  Info `json:"info"`
	}
	groupResult struct {
		ProcessGroupID int  `json:"processGroupId"`
		InputWaiting   bool `json:"inputWaiting"`
	}
	heldList struct {
		Held []Info `json:"held"`
	}
	stopResult struct {
		Stopped bool `json:"stopped"`
	}
)
