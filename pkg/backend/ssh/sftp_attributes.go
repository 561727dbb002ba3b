package ssh

import (
	"encoding/binary"
	"errors"

	"github.com/pkg/sftp"
)

// named is an entry of a directory with its own facts.
type named struct {
	name  string
	facts sftp.FileStat
}

// appendNames reads the names of one piece of a directory.
func appendNames(all []named, body []byte) ([]named, error) {
	r := fields{body}
	for range r.number() {
		n := named{name: r.text()}
		r.text() // a line made for people
		n.facts = r.attributes()
		if r.rest == nil {
			return nil, errors.New("a directory of the SFTP server cannot be read")
		}
		all = append(all, n)
	}
	return all, nil
}

// fields reads the fields of a packet. After one that is cut short rest is nil
// and all further ones are zero.
type fields struct{ rest []byte }

func (f *fields) take(n int) []byte {
	if f.rest == nil || len(f.rest) < n {
		f.rest = nil
		return nil
	}
	p := f.rest[:n:n]
	f.rest = f.rest[n:]
	return p
}

func (f *fields) number() uint32 {
	if p := f.take(4); p != nil {
		return binary.BigEndian.Uint32(p)
	}
	return 0
}

func (f *fields) text() string { return string(f.take(int(f.number()))) }

// attributes reads the facts of an entry, as far as the flags say they are there.
func (f *fields) attributes() (a sftp.FileStat) {
	flags := f.number()
	if flags&1 != 0 {
		a.Size = uint64(f.number())<<32 | uint64(f.number())
	}
	if flags&2 != 0 {
		a.UID, a.GID = f.number(), f.number()
	}
	if flags&4 != 0 {
		a.Mode = f.number()
	}
	if flags&8 != 0 {
		a.Atime, a.Mtime = f.number(), f.number()
	}
	if flags&(1<<31) != 0 {
		for range f.number() {
			f.text()
			f.text()
			if f.rest == nil {
				break
			}
		}
	}
	return a
}
