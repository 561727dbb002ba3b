package local

import (
	"os/user"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/afield-dev/afield/pkg/remotefs"
)

// info gives the facts of an entry without names, which cost a look at the
// account files.
func info(st *syscall.Stat_t) *remotefs.Info {
	written, _ := times(st)
	in := &remotefs.Info{
		Version: version(st),
		Type:    kind(st),
		Size:    -1,
		Mode:    int(st.Mode & 0o7777),
		ModTime: time.Unix(written.Unix()),
	}
	if in.Type == remotefs.TypeFile || in.Type == remotefs.TypeSymlink {
		in.Size = st.Size
	}
	return in
}

// named gives the facts with the names of owner and group.
func (d *Driver) named(st *syscall.Stat_t) *remotefs.Info {
	in := info(st)
	in.Owner, in.Group = d.names.user(st.Uid), d.names.group(st.Gid)
	return in
}

func kind(st *syscall.Stat_t) remotefs.Type { return kindOfMode(uint32(st.Mode)) }

// kindOfMode gives the type that a mode tells.
func kindOfMode(mode uint32) remotefs.Type {
	switch mode & syscall.S_IFMT {
	case syscall.S_IFREG:
		return remotefs.TypeFile
	case syscall.S_IFDIR:
		return remotefs.TypeDirectory
	case syscall.S_IFLNK:
		return remotefs.TypeSymlink
	}
	return remotefs.TypeOther
}

// version joins device, inode, size, and the times of content and of status in
// nanoseconds (remotefs.md 6). On Linux before 6.13 two changes of one file
// within a clock tick of 4 to 10 ms may share their times.
func version(st *syscall.Stat_t) string {
	written, changed := times(st)
	var b strings.Builder
	for i, n := range [...]int64{int64(st.Dev), int64(st.Ino), st.Size, written.Nano(), changed.Nano()} {
		if i > 0 {
			b.WriteByte(':')
		}
		b.WriteString(strconv.FormatInt(n, 10))
	}
	return b.String()
}

// accounts remembers the names of users and groups; an account without a name
// has its number.
type accounts struct {
	mu     sync.Mutex
	users  map[uint32]string
	groups map[uint32]string
}

func (a *accounts) user(id uint32) string {
	return a.name(&a.users, id, func(id string) (string, error) {
		u, err := user.LookupId(id)
		if err != nil {
			return "", err
		}
		return u.Username, nil
	})
}

func (a *accounts) group(id uint32) string {
	return a.name(&a.groups, id, func(id string) (string, error) {
		g, err := user.LookupGroupId(id)
		if err != nil {
			return "", err
		}
		return g.Name, nil
	})
}

func (a *accounts) name(known *map[uint32]string, id uint32, look func(string) (string, error)) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if name, ok := (*known)[id]; ok {
		return name
	}
	number := strconv.FormatUint(uint64(id), 10)
	name, err := look(number)
	if err != nil || name == "" {
		name = number
	}
	if *known == nil {
		*known = map[uint32]string{}
	}
	(*known)[id] = name
	return name
}
