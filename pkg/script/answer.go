package script

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"
)

// ErrNoMarker says that a program did not answer: the world runs something else
// in its place, or has no shell.
var ErrNoMarker = errors.New("no answer from the shell in the world")

// maxField bounds one field of an answer; maxNoise what may come before it.
const (
	maxField = 1 << 20
	maxNoise = 4 << 20
)

// Kind says why a program refused.
type Kind string

// The kinds. Sys is a failed command with its text.
const (
	NotFound      Kind = "notfound"
	NotDirectory  Kind = "notdir"
	NotRegular    Kind = "notregular"
	TooLarge      Kind = "toolarge"
	Exists        Kind = "exists" // a regular file has the name
	Odd           Kind = "odd"    // something else has the name
	Stale         Kind = "stale"
	Gone          Kind = "gone" // the version to replace is not there at all
	Short         Kind = "short"
	Lost          Kind = "lost" // what was staged is not there
	Link          Kind = "link" // a no-replace link failed, and nothing has the name
	NotExecutable Kind = "notexecutable"
	Moved         Kind = "moved" // the login's home is another than Call.Home
	Guard         Kind = "guard" // it is or holds the root or home directory
	Sys           Kind = "sys"
)

// Failure is the refusal of a program. It unwraps to the system error that its
// text names.
type Failure struct {
	Kind Kind
	Text string
}

// Error gives the kind and the text of the command that failed.
func (f *Failure) Error() string {
	if f.Text == "" {
		return string(f.Kind)
	}
	return strings.TrimSpace(f.Text)
}

// Unwrap gives the system error, or nil.
func (f *Failure) Unwrap() error {
	switch f.Kind {
	case NotFound:
		return fs.ErrNotExist
	case NotDirectory:
		return syscall.ENOTDIR
	case Sys, Link:
		return errnoOf(f.Text)
	default:
		return nil
	}
}

// errnoOf finds the system error that a command's message names. The messages
// are those of the C locale, which GNU, busybox and the shells share.
func errnoOf(text string) error {
	for _, known := range []struct {
		text  string
		errno syscall.Errno
	}{
		{"Permission denied", syscall.EACCES},
		{"Operation not permitted", syscall.EPERM},
		{"No such file or directory", syscall.ENOENT},
		{"Not a directory", syscall.ENOTDIR},
		{"Is a directory", syscall.EISDIR},
		{"Directory not empty", syscall.ENOTEMPTY},
		{"cannot overwrite directory", syscall.EISDIR},
		{"No space left on device", syscall.ENOSPC},
		{"Disk quota exceeded", syscall.EDQUOT},
		{"Read-only file system", syscall.EROFS},
		{"File name too long", syscall.ENAMETOOLONG},
		{"Too many levels of symbolic links", syscall.ELOOP},
		{"File exists", syscall.EEXIST},
		{"Device or resource busy", syscall.EBUSY},
		{"Input/output error", syscall.EIO},
	} {
		if strings.Contains(text, known.text) {
			return known.errno
		}
	}
	return nil
}

// Answer reads what a program prints. It is for one goroutine.
type Answer struct {
	*bufio.Reader
}

// NewAnswer reads from r.
func NewAnswer(r io.Reader) *Answer { return &Answer{bufio.NewReaderSize(r, 64<<10)} }

// Begin skips what stands before the nonce and gives the rest of its line. It
// fails with ErrNoMarker when the stream ends first, and with the stream's own
// error when that failed.
func (a *Answer) Begin(nonce string) (string, error) {
	for seen := 0; seen < maxNoise; {
		line, err := a.ReadSlice('\n')
		seen += len(line)
		if at := bytes.Index(line, []byte(nonce)); at >= 0 && err == nil {
			return string(bytes.TrimSpace(line[at+len(nonce):])), nil
		}
		if errors.Is(err, io.EOF) {
			return "", ErrNoMarker
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return "", err
		}
	}
	return "", ErrNoMarker
}

// Field gives the next field, which ends with a NUL.
func (a *Answer) Field() (string, error) {
	var field []byte
	for {
		part, err := a.ReadSlice(0)
		field = append(field, part...)
		if err == nil {
			return string(field[:len(field)-1]), nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return "", unexpected(err)
		}
		if len(field) > maxField {
			return "", fmt.Errorf("a field of the answer is longer than %d bytes", maxField)
		}
	}
}

// Head reads the nonce, the status and n further fields. A refusal of the
// program comes as a *Failure.
func (a *Answer) Head(nonce string, n int) ([]string, error) {
	if _, err := a.Begin(nonce); err != nil {
		return nil, err
	}
	return a.Status(n)
}

// Status reads the status and n further fields.
func (a *Answer) Status(n int) ([]string, error) {
	status, err := a.Field()
	if err != nil {
		return nil, err
	}
	if kind, refused := strings.CutPrefix(status, "E"); refused {
		text, err := a.Field()
		if err != nil {
			return nil, err
		}
		return nil, &Failure{Kind: Kind(kind), Text: text}
	}
	if status != "ok" {
		return nil, fmt.Errorf("answer begins with %.20q", status)
	}
	fields := make([]string, n)
	for i := range fields {
		if fields[i], err = a.Field(); err != nil {
			return nil, err
		}
	}
	return fields, nil
}

// unexpected turns an early end into an error.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
