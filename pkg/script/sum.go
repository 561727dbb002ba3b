package script

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
	"strconv"
)

// Sum is the checksum of cksum(1), which every POSIX world has: a CRC of 32 bits
// over the content and its length. It tells whether all of the content arrived;
// the transport guards against everything else. The zero value is ready.
//
// It is the CRC that the library has, with the bits of each byte and those of the
// register the other way round.
type Sum struct {
	crc uint32 // as the library keeps it
	n   int64
}

// Write adds content. It never fails.
func (s *Sum) Write(p []byte) (int, error) {
	s.n += int64(len(p))
	s.add(p)
	return len(p), nil
}

func (s *Sum) add(p []byte) {
	var turned [4096]byte
	for len(p) > 0 {
		n := turn(turned[:], p)
		s.crc = ^crc32.Update(^s.crc, crc32.IEEETable, turned[:n])
		p = p[n:]
	}
}

// turn copies bytes with their bits in the other order.
func turn(to, from []byte) int {
	n := min(len(to), len(from))
	i := 0
	for ; i+8 <= n; i += 8 {
		v := binary.LittleEndian.Uint64(from[i:])
		binary.LittleEndian.PutUint64(to[i:], bits.ReverseBytes64(bits.Reverse64(v)))
	}
	for ; i < n; i++ {
		to[i] = bits.Reverse8(from[i])
	}
	return n
}

// Len is the number of bytes.
func (s *Sum) Len() int64 { return s.n }

// String is the sum in decimal, as cksum prints it.
func (s *Sum) String() string {
	whole := *s
	for n := s.n; n > 0; n >>= 8 {
		whole.add([]byte{byte(n)})
	}
	return strconv.FormatUint(uint64(^bits.Reverse32(whole.crc)), 10)
}
