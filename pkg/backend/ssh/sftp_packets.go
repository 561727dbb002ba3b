package ssh

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"sync"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
)

// The parts of the protocol that are spoken without the library: it asks for the
// pieces of a directory one after the other.
const (
	packetClose   = 4
	packetOpenDir = 11
	packetReadDir = 12
	packetStatus  = 101
	packetHandle  = 102
	packetName    = 104

	ownIDs     = 1 << 31  // the library counts from 1
	maxPacket  = 1 << 20  // no answer is larger
	readAhead  = 32       // pieces of a directory asked for at once
	statusEOF  = 1        // of packetStatus
	bufferSize = 64 << 10 // of what goes to the library
)

// packets shares one channel between the library and requests of our own, which
// have ids of their own. Methods may run at the same time.
type packets struct {
	s      *session
	toLib  *io.PipeWriter
	libEnd *io.PipeReader

	write sync.Mutex // held for a whole packet
	left  int        // what is missing of the library's packet under way

	mu   sync.Mutex
	last uint32
	mine map[uint32]chan<- packet // answers that somebody awaits
	err  error                    // why no more answers come
}

// packet is an answer without its length and id.
type packet struct {
	kind byte
	body []byte
	err  error
}

func newPackets(s *session) *packets {
	p := &packets{s: s, mine: map[uint32]chan<- packet{}, last: ownIDs}
	p.libEnd, p.toLib = io.Pipe()
	go p.receive()
	return p
}

// Read gives the library its answers.
func (p *packets) Read(b []byte) (int, error) { return p.libEnd.Read(b) }

// Write sends what the library writes: the head of a packet, which begins with
// its length, then what else belongs to it. The library writes one packet at a
// time.
func (p *packets) Write(b []byte) (int, error) {
	if p.left == 0 {
		p.write.Lock()
		p.left = 4 + int(binary.BigEndian.Uint32(b))
	}
	n, err := p.s.Write(b)
	if p.left -= len(b); p.left <= 0 || err != nil {
		p.left = 0
		p.write.Unlock()
	}
	return n, err
}

// Close ends the channel.
func (p *packets) Close() error {
	p.s.close()
	return nil
}

// receive hands each answer to whom it belongs.
func (p *packets) receive() {
	var head [9]byte
	for {
		if _, err := io.ReadFull(p.s, head[:]); err != nil {
			p.fail(err)
			return
		}
		size, id := binary.BigEndian.Uint32(head[:4]), binary.BigEndian.Uint32(head[5:])
		if size < 5 || size > maxPacket {
			p.fail(errors.New("a packet of the SFTP server has an impossible length"))
			return
		}
		rest := io.LimitReader(p.s, int64(size)-5)
		var err error
		if id > ownIDs && head[4] != 2 { // 2 = VERSION, which has no id
			err = p.deliver(id, head[4], rest, size-5)
		} else {
			err = p.forward(head[:], rest)
		}
		if err != nil {
			p.fail(err)
			return
		}
	}
}

func (p *packets) deliver(id uint32, kind byte, r io.Reader, n uint32) error {
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return err
	}
	p.mu.Lock()
	to := p.mine[id]
	delete(p.mine, id)
	p.mu.Unlock()
	if to != nil {
		to <- packet{kind: kind, body: body}
	}
	return nil
}

func (p *packets) forward(head []byte, rest io.Reader) error {
	if _, err := p.toLib.Write(head); err != nil {
		return err
	}
	_, err := io.CopyBuffer(onlyWriter{p.toLib}, rest, make([]byte, bufferSize))
	return err
}

// fail ends all that waits.
func (p *packets) fail(err error) {
	p.toLib.CloseWithError(err)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
	for id, to := range p.mine {
		to <- packet{err: err}
		delete(p.mine, id)
	}
}

// ask sends requests of one kind with the same argument in one write and gives
// where their answers come, in order. Each has room for its answer.
func (p *packets) ask(kind byte, argument string, count int) ([]<-chan packet, error) {
	var out []byte
	answers := make([]<-chan packet, count)
	p.mu.Lock()
	if p.err != nil {
		p.mu.Unlock()
		return nil, p.err
	}
	for i := range answers {
		p.last++
		answer := make(chan packet, 1)
		p.mine[p.last], answers[i] = answer, answer
		out = binary.BigEndian.AppendUint32(out, uint32(1+4+4+len(argument)))
		out = append(out, kind)
		out = binary.BigEndian.AppendUint32(out, p.last)
		out = binary.BigEndian.AppendUint32(out, uint32(len(argument)))
		out = append(out, argument...)
	}
	p.mu.Unlock()
	p.write.Lock()
	defer p.write.Unlock()
	_, err := p.s.Write(out)
	return answers, err
}

// await gives one answer.
func await(ctx context.Context, from <-chan packet) (packet, error) {
	select {
	case a := <-from:
		return a, a.err
	case <-ctx.Done():
		return packet{}, context.Cause(ctx)
	}
}

// readDir gives the entries of a directory with their own facts, in two round
// trips whatever their number, as long as readAhead pieces hold them.
func (p *packets) readDir(ctx context.Context, dir string) ([]named, error) {
	opened, err := p.ask(packetOpenDir, dir, 1)
	if err != nil {
		return nil, err
	}
	a, err := await(ctx, opened[0])
	if err != nil {
		return nil, err
	}
	var h struct{ Handle string }
	if a.kind != packetHandle || ssh.Unmarshal(append([]byte{}, a.body...), &h) != nil {
		return nil, a.status()
	}
	defer p.ask(packetClose, h.Handle, 1)
	var all []named
	for {
		pieces, err := p.ask(packetReadDir, h.Handle, readAhead)
		if err != nil {
			return nil, err
		}
		for _, piece := range pieces {
			a, err := await(ctx, piece)
			switch {
			case err != nil:
				return nil, err
			case a.kind == packetName:
				if all, err = appendNames(all, a.body); err != nil {
					return nil, err
				}
			case a.isEOF():
				return all, nil
			default:
				return nil, a.status()
			}
		}
	}
}

func (a packet) isEOF() bool {
	return a.kind == packetStatus && len(a.body) >= 4 && binary.BigEndian.Uint32(a.body) == statusEOF
}

// status gives a refusal as the library gives it.
func (a packet) status() error {
	if a.kind != packetStatus || len(a.body) < 4 {
		return errors.New("the SFTP server gives an answer of another kind")
	}
	return &sftp.StatusError{Code: binary.BigEndian.Uint32(a.body)}
}
