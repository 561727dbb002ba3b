package ledger

import (
	"encoding/json"
	"fmt"
	"time"
)

// format is the version of journal, snapshot and meta file.
const format = 1

// Op is what an event records.
type Op string

// The operations. Base and File open a journal: the state that its events
// build on.
const (
	OpBase    Op = "base"
	OpFile    Op = "file"
	OpRead    Op = "read"
	OpWrote   Op = "wrote"
	OpEdited  Op = "edited"
	OpForget  Op = "forget"
	OpCompact Op = "compact"
	OpRewind  Op = "rewind"
	OpContext Op = "context"
)

// Event is one line of the journal.
type Event struct {
	V   int       `json:"v"`
	Seq int64     `json:"seq"` // last seq of the session after the event
	At  time.Time `json:"at"`
	Op  Op        `json:"op"`

	// Used and Window are what the caller reported with this call.
	Used   *int64 `json:"used,omitempty"`
	Window *int64 `json:"window,omitempty"`

	// File is the complete state of a file after the event.
	File *Entry `json:"file,omitempty"`
	// Forget names the file that a forget dropped; All: every file.
	Forget string `json:"forget,omitempty"`
	All    bool   `json:"all,omitempty"`
	// Booked is what the event adds to the session's totals.
	Booked *Totals `json:"booked,omitempty"`
	// Compact says which carriers left the conversation.
	Compact *Carriers `json:"compact,omitempty"`
	// Base is the state of the session at the beginning of the journal.
	Base *Base `json:"base,omitempty"`

	end int64 // offset behind its line
}

// Carriers is a set of messages.
type Carriers struct {
	All     bool       `json:"all,omitempty"`
	Through *int64     `json:"through,omitempty"` // this one and all before
	List    [][2]int64 `json:"list,omitempty"`    // first and last of spans
}

// Has reports whether seq is in the set.
func (c Carriers) Has(seq int64) bool {
	if c.All || c.Through != nil && seq <= *c.Through {
		return true
	}
	for _, span := range c.List {
		if seq >= span[0] && seq <= span[1] {
			return true
		}
	}
	return false
}

// Base is the state of a session without its files.
type Base struct {
	// Generation is random and new with each rewriting of the journal.
	Generation string `json:"generation"`
	Seq        int64  `json:"seq"`
	Used       int64  `json:"used"`   // or Unknown
	Window     int64  `json:"window"` // or Unknown
	// Shift is the context used before a compaction until the first report
	// after it, or Unknown.
	Shift int64 `json:"shift"`
	Totals
	// Counted: the session has mounted something.
	Counted bool `json:"counted"`
}

// encode gives the line of e.
func (e Event) encode() ([]byte, error) {
	e.V = format
	line, err := json.Marshal(e)
	return append(line, '\n'), err
}

// foreignError says that a file was written by another version of afield.
type foreignError struct {
	file    string
	version int
}

func (e *foreignError) Error() string {
	return fmt.Sprintf("%s has format %d, this afield knows %d", e.file, e.version, format)
}

// decode reads a line.
func decode(line []byte) (Event, error) {
	var e Event
	err := json.Unmarshal(line, &e)
	if e.V != format && e.V != 0 {
		return e, &foreignError{"the journal", e.V}
	}
	if err == nil && e.V == 0 {
		err = fmt.Errorf("a line without version")
	}
	return e, err
}
