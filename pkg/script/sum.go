package script

import (
	"strconv"
	"sync"
)

// Sum is the checksum of cksum(1), which every POSIX world has: a CRC of 32 bits
// over the content and its length. It tells whether all of the content arrived;
// the transport guards against everything else. The zero value is ready.
type Sum struct {
	crc uint32
	n   int64
}

const polynomial = 0x04C11DB7

// table is made at the first use.
var table = sync.OnceValue(func() *[256]uint32 {
	var t [256]uint32
	for i := range t {
		c := uint32(i) << 24
		for range 8 {
			if c&(1<<31) != 0 {
				c = c<<1 ^ polynomial
			} else {
				c <<= 1
			}
		}
		t[i] = c
	}
	return &t
})

// Write adds content. It never fails.
func (s *Sum) Write(p []byte) (int, error) {
	t, crc := table(), s.crc
	for _, b := range p {
		crc = crc<<8 ^ t[byte(crc>>24)^b]
	}
	s.crc, s.n = crc, s.n+int64(len(p))
	return len(p), nil
}

// Len is the number of bytes.
func (s *Sum) Len() int64 { return s.n }

// String is the sum in decimal, as cksum prints it.
func (s *Sum) String() string {
	t, crc := table(), s.crc
	for n := s.n; n > 0; n >>= 8 {
		crc = crc<<8 ^ t[byte(crc>>24)^byte(n)]
	}
	return strconv.FormatUint(uint64(^crc), 10)
}
