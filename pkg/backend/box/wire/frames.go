package wire

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Stream names an output of a session.
type Stream int

// The outputs. With a terminal everything is Stdout.
const (
	Stdout Stream = 1
	Stderr Stream = 2
)

// Start is the first frame of a session.
type Start struct {
	Type string   `json:"type"`
	Argv []string `json:"argv"`
	TTY  bool     `json:"tty,omitempty"`
	Cwd  string   `json:"cwd"` // absolute
	Rows int      `json:"rows,omitempty"`
	Cols int      `json:"cols,omitempty"`
	Env  []string `json:"env,omitempty"` // K=V, over the box's own environment
}

// clientFrame is any later frame to the server.
type clientFrame struct {
	Type    string `json:"type"`
	Data    []byte `json:"data,omitempty"`
	Rows    int    `json:"rows,omitempty"`
	Cols    int    `json:"cols,omitempty"`
	Signal  string `json:"signal,omitempty"`
	GraceMs int64  `json:"graceMs,omitempty"`
}

// serverFrame is any frame from the server.
type serverFrame struct {
	Type    string          `json:"type"`
	PID     json.RawMessage `json:"pid"`
	ExecID  string          `json:"execId"`
	Data    string          `json:"data"`
	Code    json.RawMessage `json:"code"`
	Message string          `json:"message"`
}

// maxFrame bounds one frame that is not output. Output is decoded as it comes,
// whatever the size of its frame.
const maxFrame = 1 << 20

// stdinPiece is the most input that one frame carries.
const stdinPiece = 32 << 10

// errCorrupt marks a frame that breaks the protocol. Unknown frames do not.
var errCorrupt = errors.New("a frame of the session is damaged")

// frameReader decodes the frames of a session. Output goes to a function in
// pieces; other frames are handed out.
type frameReader struct {
	buf   *bufio.Reader
	piece []byte
}

func newFrameReader() *frameReader {
	return &frameReader{buf: bufio.NewReaderSize(nil, 64<<10), piece: make([]byte, 48<<10)}
}

// read takes one frame from r. ok is false for output and for what is to be
// ignored.
func (f *frameReader) read(r io.Reader, out func(Stream, []byte)) (frame serverFrame, ok bool, err error) {
	f.buf.Reset(r)
	if s, n := f.outputPrefix(); s != 0 {
		_, _ = f.buf.Discard(n)
		return frame, false, f.output(s, out)
	}
	text, err := io.ReadAll(io.LimitReader(f.buf, maxFrame+1))
	if err != nil {
		return frame, false, err
	}
	if len(text) > maxFrame {
		return f.largeFrame(text, out)
	}
	if json.Unmarshal(text, &frame) != nil {
		return frame, false, nil
	}
	return f.classify(frame, out)
}

// outputPrefix recognises a frame of output by its first bytes as the server
// writes them, and gives their number. A frame with other spacing or order of
// fields takes the general way.
func (f *frameReader) outputPrefix() (Stream, int) {
	const stdout, stderr = `{"type":"stdout","data":"`, `{"type":"stderr","data":"`
	head, _ := f.buf.Peek(len(stdout))
	switch string(head) {
	case stdout:
		return Stdout, len(stdout)
	case stderr:
		return Stderr, len(stderr)
	}
	return 0, 0
}

// output decodes base64 up to the closing quote and hands it out in pieces.
func (f *frameReader) output(s Stream, out func(Stream, []byte)) error {
	body := &untilQuote{r: f.buf}
	dec := base64.NewDecoder(base64.StdEncoding, body)
	for {
		n, err := dec.Read(f.piece)
		if n > 0 {
			out(s, f.piece[:n])
		}
		if err == io.EOF {
			break
		}
		var bad base64.CorruptInputError
		if errors.As(err, &bad) || errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("%w: output is not base64", errCorrupt)
		}
		if err != nil {
			return err
		}
	}
	if !body.closed {
		return fmt.Errorf("%w: output without an end", errCorrupt)
	}
	_, err := io.Copy(io.Discard, f.buf)
	return err
}

// untilQuote reads up to a closing quote, which it takes away.
type untilQuote struct {
	r      *bufio.Reader
	closed bool
}

func (u *untilQuote) Read(p []byte) (int, error) {
	if u.closed {
		return 0, io.EOF
	}
	if u.r.Buffered() == 0 {
		if _, err := u.r.Peek(1); err != nil {
			return 0, err
		}
	}
	have, _ := u.r.Peek(min(u.r.Buffered(), len(p)))
	n := bytes.IndexByte(have, '"')
	if n < 0 {
		return u.r.Read(p[:len(have)])
	}
	u.closed = true
	copy(p, have[:n])
	_, _ = u.r.Discard(n + 1)
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// classify decodes output that came the general way and passes the rest on.
func (f *frameReader) classify(frame serverFrame, out func(Stream, []byte)) (serverFrame, bool, error) {
	stream := Stdout
	switch frame.Type {
	case "stderr":
		stream = Stderr
		fallthrough
	case "stdout":
		data, err := base64.StdEncoding.DecodeString(frame.Data)
		if err != nil {
			return frame, false, fmt.Errorf("%w: output is not base64", errCorrupt)
		}
		if len(data) > 0 {
			out(stream, data)
		}
		return frame, false, nil
	case "started", "exit", "error":
		return frame, true, nil
	}
	return frame, false, nil
}

// maxOddFrame bounds a frame of output that is not written as the server writes
// them and therefore must be held whole.
const maxOddFrame = 100 << 20

func (f *frameReader) largeFrame(head []byte, out func(Stream, []byte)) (serverFrame, bool, error) {
	rest, err := io.ReadAll(io.LimitReader(f.buf, maxOddFrame))
	if err != nil {
		return serverFrame{}, false, err
	}
	var frame serverFrame
	if json.Unmarshal(append(head, rest...), &frame) != nil {
		return frame, false, nil
	}
	return f.classify(frame, out)
}

// integer reads a plain decimal integer.
func integer(raw json.RawMessage) (int, bool) {
	var n int
	if len(raw) == 0 || raw[0] == 'n' || json.Unmarshal(raw, &n) != nil {
		return 0, false
	}
	return n, true
}
