package wire

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Methods of the process service.
const (
	MethodProcessList = "/process.Process/List"
	MethodStart       = "/process.Process/Start"
	MethodConnect     = "/process.Process/Connect"
	MethodUpdate      = "/process.Process/Update"
	MethodSendInput   = "/process.Process/SendInput"
	MethodStreamInput = "/process.Process/StreamInput"
	MethodSendSignal  = "/process.Process/SendSignal"
	MethodCloseStdin  = "/process.Process/CloseStdin"
)

// StatusSignal begins the status of an end by a signal.
const StatusSignal = "signal: "

// Size is the size of a terminal.
type Size struct {
	Cols uint32 `json:"cols,omitempty"`
	Rows uint32 `json:"rows,omitempty"`
}

// PTY asks for a terminal, or for a new size of it.
type PTY struct {
	Size *Size `json:"size,omitempty"`
}

// ProcessConfig is a program and how to start it.
type ProcessConfig struct {
	Cmd  string            `json:"cmd,omitempty"`
	Args []string          `json:"args,omitempty"`
	Envs map[string]string `json:"envs,omitempty"`
	Cwd  *string           `json:"cwd,omitempty"`
}

// ProcessInfo is an entry of a process list.
type ProcessInfo struct {
	Config ProcessConfig `json:"config"`
	PID    uint32        `json:"pid,omitempty"`
	Tag    *string       `json:"tag,omitempty"`
}

// Selector names a process, by id or by tag. Tags are not reliable.
type Selector struct {
	PID *uint32 `json:"pid,omitempty"`
	Tag *string `json:"tag,omitempty"`
}

// ByPID selects by process id.
func ByPID(pid int) Selector {
	id := uint32(pid)
	return Selector{PID: &id}
}

// ListResponse is the answer of List.
type ListResponse struct {
	Processes []ProcessInfo `json:"processes,omitempty"`
}

// StartRequest starts a program. Stdin absent means a pipe.
type StartRequest struct {
	Process ProcessConfig `json:"process"`
	PTY     *PTY          `json:"pty,omitempty"`
	Tag     *string       `json:"tag,omitempty"`
	Stdin   *bool         `json:"stdin,omitempty"`
}

// ConnectRequest attaches to a running program; nothing is replayed.
type ConnectRequest struct {
	Process Selector `json:"process"`
}

// StartResponse is a message of Start and of Connect.
type StartResponse struct {
	Event ProcessEvent `json:"event"`
}

// ProcessEvent has exactly one field set.
type ProcessEvent struct {
	Start     *StartEvent `json:"start,omitempty"`
	Data      *DataEvent  `json:"data,omitempty"`
	End       *EndEvent   `json:"end,omitempty"`
	Keepalive *struct{}   `json:"keepalive,omitempty"`
}

// StartEvent is the first message.
type StartEvent struct {
	PID uint32 `json:"pid,omitempty"`
}

// DataEvent has exactly one field set.
type DataEvent struct {
	Stdout []byte `json:"stdout,omitempty"`
	Stderr []byte `json:"stderr,omitempty"`
	PTY    []byte `json:"pty,omitempty"`
}

// EndEvent says how the program ended: Exited with a code, or by the signal
// that Status names, with -1 as code.
type EndEvent struct {
	ExitCode int32   `json:"exitCode,omitempty"`
	Exited   bool    `json:"exited,omitempty"`
	Status   string  `json:"status,omitempty"`
	Error    *string `json:"error,omitempty"`
}

// UpdateRequest gives a terminal a new size.
type UpdateRequest struct {
	Process Selector `json:"process"`
	PTY     *PTY     `json:"pty,omitempty"`
}

// ProcessInput has exactly one field set: Stdin for pipes, PTY for terminals.
type ProcessInput struct {
	Stdin []byte `json:"stdin,omitempty"`
	PTY   []byte `json:"pty,omitempty"`
}

// SendInputRequest writes once. The daemon logs its content.
type SendInputRequest struct {
	Process Selector     `json:"process"`
	Input   ProcessInput `json:"input"`
}

// StreamInputRequest is a message of StreamInput; Start comes first.
type StreamInputRequest struct {
	Start     *InputStart `json:"start,omitempty"`
	Data      *InputData  `json:"data,omitempty"`
	Keepalive *struct{}   `json:"keepalive,omitempty"`
}

// InputStart names the process of an input stream.
type InputStart struct {
	Process Selector `json:"process"`
}

// InputData is a piece of input.
type InputData struct {
	Input ProcessInput `json:"input"`
}

// SendSignalRequest sends a signal to one process.
type SendSignalRequest struct {
	Process Selector `json:"process"`
	Signal  Signal   `json:"signal,omitempty"`
}

// CloseStdinRequest ends the input of a program without a terminal.
type CloseStdinRequest struct {
	Process Selector `json:"process"`
}

// Signal is a signal the daemon can send: 9 and 15, no other.
type Signal int

// The signals.
const (
	SignalKill Signal = 9
	SignalTerm Signal = 15
)

// MarshalJSON writes the name of the enum.
func (s Signal) MarshalJSON() ([]byte, error) {
	switch s {
	case SignalKill:
		return []byte(`"SIGNAL_SIGKILL"`), nil
	case SignalTerm:
		return []byte(`"SIGNAL_SIGTERM"`), nil
	}
	return []byte(strconv.Itoa(int(s))), nil
}

// UnmarshalJSON reads the name or the number.
func (s *Signal) UnmarshalJSON(b []byte) error {
	switch strings.Trim(string(b), `"`) {
	case "SIGNAL_SIGKILL":
		*s = SignalKill
	case "SIGNAL_SIGTERM":
		*s = SignalTerm
	case "SIGNAL_UNSPECIFIED":
		*s = 0
	default:
		return json.Unmarshal(b, (*int)(s))
	}
	return nil
}
