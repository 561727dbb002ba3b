package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
)

// Stream is the answer of a streaming call. One goroutine reads it; Close may
// be called from another.
type Stream struct {
	method string
	body   io.ReadCloser
	r      EnvelopeReader
	out    []byte
}

// Close gives the connection back, cutting the stream if it has not ended.
func (s *Stream) Close() error { return s.body.Close() }

// Next decodes the next message into v, which may be nil: io.EOF at the end of
// the stream, *Error when the server ended it with one, ErrCut when it ended
// without saying so.
func (s *Stream) Next(v any) error {
	payload, err := s.payload()
	if err != nil || v == nil {
		return err
	}
	if err := json.Unmarshal(payload, v); err != nil {
		return fmt.Errorf("%s: unreadable message: %w", s.method, err)
	}
	return nil
}

func (s *Stream) payload() ([]byte, error) {
	flags, payload, err := s.r.Read()
	if err == io.EOF {
		return nil, ErrCut
	}
	if err != nil {
		return nil, err
	}
	if flags&FlagEnd == 0 {
		return payload, nil
	}
	var end struct {
		Error *json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(payload, &end); err != nil {
		return nil, fmt.Errorf("%s: unreadable end of the stream: %w", s.method, err)
	}
	if end.Error != nil {
		return nil, newError(s.method, 200, *end.Error, "")
	}
	return nil, io.EOF
}

// NextEvent gives the next event of a process stream. The bytes of its data are
// valid until the next call.
func (s *Stream) NextEvent() (ProcessEvent, error) {
	payload, err := s.payload()
	if err != nil {
		return ProcessEvent{}, err
	}
	if ev, ok := s.dataEvent(payload); ok {
		return ev, nil
	}
	var msg StartResponse
	if err := json.Unmarshal(payload, &msg); err != nil {
		return ProcessEvent{}, fmt.Errorf("%s: unreadable message: %w", s.method, err)
	}
	return msg.Event, nil
}

// dataEvent decodes a message of output in its usual form without the general
// decoder, which takes ten times as long.
func (s *Stream) dataEvent(payload []byte) (ProcessEvent, bool) {
	rest, ok := bytes.CutPrefix(payload, []byte(`{"event":{"data":{"`))
	if !ok {
		return ProcessEvent{}, false
	}
	rest, ok = bytes.CutSuffix(rest, []byte(`"}}}`))
	if !ok {
		return ProcessEvent{}, false
	}
	name, text, ok := bytes.Cut(rest, []byte(`":"`))
	if !ok {
		return ProcessEvent{}, false
	}
	if need := base64.StdEncoding.DecodedLen(len(text)); cap(s.out) < need {
		s.out = make([]byte, need)
	}
	n, err := base64.StdEncoding.Decode(s.out[:cap(s.out)], text)
	if err != nil {
		return ProcessEvent{}, false
	}
	data := &DataEvent{}
	switch string(name) {
	case "stdout":
		data.Stdout = s.out[:n]
	case "stderr":
		data.Stderr = s.out[:n]
	case "pty":
		data.PTY = s.out[:n]
	default:
		return ProcessEvent{}, false
	}
	return ProcessEvent{Data: data}, true
}
