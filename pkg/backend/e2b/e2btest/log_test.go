package e2btest

import (
	"testing"
	"time"
)

// Requests that overlap count once, those that wait for one another each; one
// without an answer yet is none that another could have waited for.
func TestSequence(t *testing.T) {
	at := func(from, to int) Entry {
		e := Entry{Start: time.Unix(int64(from), 0)}
		if to > 0 {
			e.End = time.Unix(int64(to), 0)
		}
		return e
	}
	for want, log := range map[int][]Entry{
		0: {},
		1: {at(1, 9), at(2, 4), at(3, 8)},
		2: {at(1, 3), at(1, 5), at(4, 6), at(7, 0)},
		3: {at(6, 7), at(1, 2), at(3, 9), at(3, 5)},
	} {
		if got := Sequence(log); got != want {
			t.Errorf("got %d, want %d: %v", got, want, log)
		}
	}
}
