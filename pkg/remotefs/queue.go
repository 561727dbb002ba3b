package remotefs

import (
	"context"
	"sync"
)

// Locker serialises mutations of one key, in order of arrival; different keys
// never wait for each other (remotefs.md 9). Lock waits until the key is free
// or ctx ends, and then gives the error of ctx. A *NoLockError says that there
// can be no lock here. The lock ends with the call of unlock.
type Locker interface {
	Lock(ctx context.Context, key string) (unlock func(), err error)
}

// queues is a Locker for the goroutines of one process. The zero value is
// ready.
type queues struct {
	mu      sync.Mutex
	waiting map[string][]chan struct{} // of held keys, in order of arrival
}

func (q *queues) Lock(ctx context.Context, key string) (func(), error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	turn := q.enter(key)
	if turn == nil {
		return func() { q.leave(key) }, nil
	}
	select {
	case <-turn:
		return func() { q.leave(key) }, nil
	case <-ctx.Done():
		q.giveUp(key, turn)
		return nil, ctx.Err()
	}
}

// enter takes a free key and gives nil, or queues up.
func (q *queues) enter(key string) chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting == nil {
		q.waiting = map[string][]chan struct{}{}
	}
	line, held := q.waiting[key]
	if !held {
		q.waiting[key] = nil
		return nil
	}
	turn := make(chan struct{})
	q.waiting[key] = append(line, turn)
	return turn
}

// leave hands the key to the next in line, or frees it.
func (q *queues) leave(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	line := q.waiting[key]
	if len(line) == 0 {
		delete(q.waiting, key)
		return
	}
	q.waiting[key] = line[1:]
	close(line[0])
}

// giveUp leaves the line, or passes on a turn that came at the same moment.
func (q *queues) giveUp(key string, turn chan struct{}) {
	q.mu.Lock()
	line := q.waiting[key]
	for i, other := range line {
		if other == turn {
			q.waiting[key] = append(line[:i:i], line[i+1:]...)
			q.mu.Unlock()
			return
		}
	}
	q.mu.Unlock()
	q.leave(key)
}

// NoLockError says that a lock cannot be had where it should be: a state
// directory that is read-only or on a disk without locks (design.md 4.23).
type NoLockError struct{ Err error }

func (e *NoLockError) Error() string { return "no lock: " + e.Err.Error() }

// Unwrap gives the cause.
func (e *NoLockError) Unwrap() error { return e.Err }
