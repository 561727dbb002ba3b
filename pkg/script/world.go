package script

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Hello asks what the world has. ReadHello reads the answer.
func Hello() Call { return call("hello") }

// World is what the programs need to know of a world.
type World struct {
	Home string // as the login says; may be missing
	Dir  string // where programs begin
	// Stat: times come with all their digits. Sum: contents can be summed.
	// Proc: processes can be seen. Without Stat and Sum the programs for files
	// must not be used, without Proc not those for trees.
	Stat, Sum, Proc bool
	Clock           time.Time // to the second
}

// ReadHello reads the answer of Hello.
func ReadHello(a *Answer, c Call) (World, error) {
	f, err := a.Head(c.Nonce, 4)
	if err != nil {
		return World{}, err
	}
	seconds, err := strconv.ParseInt(f[3], 10, 64)
	if err != nil {
		return World{}, fmt.Errorf("clock of the world: %w", err)
	}
	w := World{Home: f[0], Dir: f[1], Clock: time.Unix(seconds, 0)}
	w.Stat = strings.Contains(f[2], "stat")
	w.Sum = strings.Contains(f[2], "cksum")
	w.Proc = strings.Contains(f[2], "proc")
	return w, nil
}

// Space asks for the free space at path. ReadSpace reads the answer.
func Space(path string) Call { return call("space", Word(path)) }

// ReadSpace gives the free bytes.
func ReadSpace(a *Answer, c Call) (int64, error) {
	f, err := a.Head(c.Nonce, 1)
	if err != nil {
		return 0, err
	}
	kib, err := strconv.ParseInt(f[0], 10, 64)
	return kib << 10, err
}
