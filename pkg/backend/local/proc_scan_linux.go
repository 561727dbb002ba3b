package local

import (
	"bytes"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// stat is what /proc/PID/stat tells of a process.
type stat struct {
	pid     int
	state   byte
	ppid    int
	pgrp    int
	session int
	tpgid   int
	start   uint64 // clock ticks since boot; with pid the identity of a process
}

// ident names a process for good: a process id may be used again (TT-24).
type ident struct {
	pid   int
	start uint64
}

func (s stat) ident() ident { return ident{s.pid, s.start} }

// live says that the process still runs code.
func (s stat) live() bool { return s.state != 'Z' && s.state != 'X' && s.state != 'x' }

// parseStat reads the line of /proc/PID/stat. The name in its second field may
// hold blanks and parentheses, so the rest counts from the last ")" (TT-13).
func parseStat(line []byte) (stat, bool) {
	open, end := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if open < 2 || end < open {
		return stat{}, false
	}
	rest := bytes.Fields(line[end+1:])
	if len(rest) < 20 || len(rest[0]) != 1 {
		return stat{}, false
	}
	s := stat{state: rest[0][0]}
	ok := number(line[:open-1], &s.pid) && number(rest[1], &s.ppid) && number(rest[2], &s.pgrp) &&
		number(rest[3], &s.session) && number(rest[5], &s.tpgid)
	start, err := strconv.ParseUint(string(rest[19]), 10, 64)
	s.start = start
	return s, ok && err == nil
}

func number(text []byte, into *int) bool {
	n, err := strconv.Atoi(string(text))
	*into = n
	return err == nil
}

// readSmall reads a file of /proc. A process that ends meanwhile is an error
// like any other.
func readSmall(path string, buf []byte) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	n := 0
	for {
		m, err := unix.Read(fd, buf[n:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, err
		}
		if n += m; m == 0 || n == len(buf) {
			return buf[:n], nil
		}
	}
}

// statOf looks at one process.
func statOf(pid int) (stat, bool) {
	var buf [1024]byte
	line, err := readSmall("/proc/"+strconv.Itoa(pid)+"/stat", buf[:])
	if err != nil {
		return stat{}, false
	}
	return parseStat(line)
}

// everyone looks at all processes of the system.
func everyone() []stat {
	var all []stat
	for _, pid := range numbersIn("/proc") {
		if s, ok := statOf(pid); ok {
			all = append(all, s)
		}
	}
	return all
}

// numbersIn lists the names of a directory that are numbers.
func numbersIn(dir string) []int {
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	var out []int
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil {
			out = append(out, n)
		}
	}
	return out
}

// childrenOf lists the direct children of a process by its threads' own lists.
// ok is false where the kernel keeps none.
func childrenOf(pid int, buf []byte) (children []int, ok bool) {
	dir := "/proc/" + strconv.Itoa(pid) + "/task"
	for _, tid := range numbersIn(dir) {
		list, err := readSmall(dir+"/"+strconv.Itoa(tid)+"/children", buf)
		if err != nil || len(list) == len(buf) {
			continue
		}
		ok = true
		for _, word := range bytes.Fields(list) {
			if n, err := strconv.Atoi(string(word)); err == nil {
				children = append(children, n)
			}
		}
	}
	return children, ok
}

// descendants lists everything below a process. A list may lack entries while
// the tree changes; two equal ones in a row are exact, since an entry is only
// missed when one that was listed before it has just gone.
func descendants(pid int) (found []stat, ok bool) {
	buf := make([]byte, 64<<10)
	queue, ok := childrenOf(pid, buf)
	seen := map[int]bool{pid: true}
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		s, there := statOf(next)
		if !there || seen[next] {
			continue
		}
		seen[next] = true
		found = append(found, s)
		if s.live() {
			below, _ := childrenOf(next, buf)
			queue = append(queue, below...)
		}
	}
	return found, ok
}

// sameProcesses compares two listings.
func sameProcesses(a, b []stat) bool {
	if len(a) != len(b) {
		return false
	}
	order := func(a, b stat) int { return a.pid - b.pid }
	slices.SortFunc(a, order)
	slices.SortFunc(b, order)
	return slices.EqualFunc(a, b, func(x, y stat) bool { return x.ident() == y.ident() && x.live() == y.live() })
}

// pidfdSignal sends a signal to exactly that process, never to a later one with
// its id.
func pidfdSignal(who ident, sig unix.Signal) error {
	fd, err := unix.PidfdOpen(who.pid, 0)
	if err == unix.ENOSYS {
		return killChecked(who, sig)
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if now, ok := statOf(who.pid); !ok || now.start != who.start {
		return unix.ESRCH
	}
	return unix.PidfdSendSignal(fd, sig, nil, 0)
}

func killChecked(who ident, sig unix.Signal) error {
	if now, ok := statOf(who.pid); !ok || now.start != who.start {
		return unix.ESRCH
	}
	return unix.Kill(who.pid, sig)
}
