// Package provider is the provider protocol: own frames on one duplex byte
// stream, with credit-based flow control, by which a world is served to another
// process. The same protocol serves plugins, afield serve, the keeper and the
// far end of an ssh connection.
//
// Conn is the connection of either side, Stream one call on it. The protocol is
// specified in plugins.md part E; comments cite its sections.
package provider

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Bounds of the protocol (plugins.md 32).
const (
	headerSize    = 12
	pingSize      = 8         // body of PING and PONG, in bytes: the answers to a flood stay small
	MaxBody       = 1 << 20   // largest body of a frame, in bytes
	MaxData       = 64 << 10  // largest body of a DATA frame
	DefaultWindow = 256 << 10 // credit of each port at the start, in bytes
	MinWindow     = 16 << 10
	MaxWindow     = 16 << 20
	MaxStreams    = 256 // open at the same time
)

// Kind is the kind of a frame. Kinds up to lastCritical must be known.
type Kind uint8

// The kinds of frames (plugins.md 32).
const (
	KindHello  Kind = 1
	KindCall   Kind = 2
	KindData   Kind = 3
	KindWindow Kind = 4
	KindEvent  Kind = 5
	KindEnd    Kind = 6
	KindCancel Kind = 7
	KindClose  Kind = 8
	KindPing   Kind = 9
	KindPong   Kind = 10
	KindLog    Kind = 11
	KindGoAway Kind = 12

	lastCritical Kind = 31
)

// flagFIN says that no more content follows on the port.
const flagFIN = 1

// Port is one direction of content of a stream.
type Port uint8

// The ports.
const (
	PortInput  Port = 0
	PortFirst  Port = 1
	PortSecond Port = 2

	portCount = 3
)

// Frame is one message. Body belongs to the receiver.
type Frame struct {
	Stream uint32
	Kind   Kind
	Port   Port
	FIN    bool
	Body   []byte
}

// ErrProtocol is wrapped by every error of a peer that broke the protocol.
var ErrProtocol = errors.New("provider protocol error")

func protocolError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrProtocol, fmt.Sprintf(format, args...))
}

// ReadFrame reads one frame. It never allocates more than the body that the
// header announces, at most MaxBody. A clean end before a header is io.EOF.
func ReadFrame(r io.Reader) (Frame, error) {
	var h [headerSize]byte
	if n, err := io.ReadFull(r, h[:]); err != nil {
		if n > 0 && errors.Is(err, io.ErrUnexpectedEOF) {
			return Frame{}, protocolError("the connection ended inside a frame header")
		}
		return Frame{}, err
	}
	f := Frame{Stream: binary.BigEndian.Uint32(h[4:]), Kind: Kind(h[8]), Port: Port(h[9]), FIN: h[11]&flagFIN != 0}
	length := binary.BigEndian.Uint32(h[:])
	if err := checkHeader(f, length, h[:]); err != nil {
		return Frame{}, err
	}
	f.Body = make([]byte, length)
	if _, err := io.ReadFull(r, f.Body); err != nil {
		return Frame{}, protocolError("the connection ended inside a frame of %d bytes", length)
	}
	return f, nil
}

func checkHeader(f Frame, length uint32, raw []byte) error {
	switch {
	case length > MaxBody:
		return protocolError("a frame of %d bytes is over the limit of %d%s", length, MaxBody, quoteNoise(raw))
	case f.Kind == 0 || f.Kind > KindGoAway && f.Kind <= lastCritical:
		return protocolError("unknown frame kind %d%s", f.Kind, quoteNoise(raw))
	case f.Kind == KindData && length > MaxData:
		return protocolError("a DATA frame of %d bytes is over the limit of %d", length, MaxData)
	case (f.Kind == KindPing || f.Kind == KindPong) && length != pingSize:
		return protocolError("a PING or PONG of %d bytes instead of %d", length, pingSize)
	case f.Kind <= lastCritical && f.Port >= portCount:
		return protocolError("unknown port %d", f.Port)
	}
	return nil
}

// quoteNoise shows bytes that cannot be a frame, if they are text: most often
// somebody printed to standard output.
func quoteNoise(b []byte) string {
	for _, c := range b {
		if c < ' ' && c != '\n' && c != '\t' && c != '\r' || c > '~' {
			return ""
		}
	}
	return fmt.Sprintf("; the peer printed to standard output after the start of the protocol: %q", b)
}

// AppendFrame puts a frame at the end of dst.
func AppendFrame(dst []byte, f Frame) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(f.Body)))
	dst = binary.BigEndian.AppendUint32(dst, f.Stream)
	dst = append(dst, byte(f.Kind), byte(f.Port), 0, 0)
	if f.FIN {
		dst[len(dst)-1] = flagFIN
	}
	return append(dst, f.Body...)
}
