// Package shell runs command strings on top of a remoteexec.Runtime: with a
// deadline, an environment for programs that are not watched, a rendered text
// of the result, and jobs in the background (remoteexec.md 15).
//
// It is a layer for callers of the library; afield exec takes only its grace and
// spill bound from the settings here.
package shell

import (
	"time"

	"github.com/afield-dev/afield/pkg/fault"
)

// Settings are the defaults and caps of the layer (SH-2): the profile block
// exec:, checked where it is loaded.
type Settings struct {
	Timeout        time.Duration // of a command that asks for none
	MaxTimeout     time.Duration // cap of what a command may ask for
	MaxOutputBytes int64         // kept in memory of each stream
	MaxSpillBytes  int64         // kept in a file of each stream
	Grace          time.Duration // between TERM and KILL
}

// Defaults gives the settings of a profile that names none.
func Defaults() Settings {
	return Settings{
		Timeout: 120_000 * time.Millisecond, MaxTimeout: 600_000 * time.Millisecond,
		MaxOutputBytes: 64_000, MaxSpillBytes: 67_108_864, Grace: 3_000 * time.Millisecond,
	}
}

// timeout is the effective deadline (SH-3); nil asks for the default.
func (s Settings) timeout(requested *time.Duration) (time.Duration, error) {
	want := s.Timeout
	if requested != nil {
		want = *requested
	}
	if want <= 0 {
		return 0, fault.New(fault.ExecInvalidSpec, "shell", "", "a timeout of %v is not positive", want)
	}
	return min(want, s.MaxTimeout), nil
}
