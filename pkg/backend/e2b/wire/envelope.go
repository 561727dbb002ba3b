package wire

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Flags of an envelope.
const (
	FlagCompressed = 1
	FlagEnd        = 2
)

// MaxEnvelope bounds the payload of one message that is read.
const MaxEnvelope = 64 << 20

// ErrCut says that a stream ended without its end message: a failure of the
// connection, never a success.
var ErrCut = errors.New("the connection was cut before the end of the stream")

// AppendEnvelope appends a message with its header.
func AppendEnvelope(dst []byte, flags byte, payload []byte) []byte {
	dst = append(dst, flags)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(payload)))
	return append(dst, payload...)
}

// EnvelopeReader reads messages. The payload of one is valid until the next
// Read.
type EnvelopeReader struct {
	R   io.Reader
	buf []byte
}

// Read gives the next message, io.EOF when the stream ends between two, and
// ErrCut when it ends inside one.
func (r *EnvelopeReader) Read() (flags byte, payload []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r.R, head[:]); err != nil {
		if err == io.ErrUnexpectedEOF {
			err = ErrCut
		}
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > MaxEnvelope {
		return 0, nil, fmt.Errorf("a message of %d bytes exceeds the limit of %d", n, MaxEnvelope)
	}
	if uint32(cap(r.buf)) < n {
		r.buf = make([]byte, n)
	}
	payload = r.buf[:n]
	if _, err := io.ReadFull(r.R, payload); err != nil {
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			err = ErrCut
		}
		return 0, nil, err
	}
	if head[0]&FlagCompressed != 0 {
		payload, err = gunzip(payload)
	}
	return head[0], payload, err
}

func gunzip(p []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(p))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(z, MaxEnvelope))
}

// gunzipBody undoes the compression of a body, beginning with the first read.
type gunzipBody struct {
	body io.ReadCloser
	z    *gzip.Reader
}

func (g *gunzipBody) Read(p []byte) (int, error) {
	if g.z == nil {
		z, err := gzip.NewReader(g.body)
		if err != nil {
			return 0, err
		}
		g.z = z
	}
	return g.z.Read(p)
}

func (g *gunzipBody) Close() error { return g.body.Close() }
